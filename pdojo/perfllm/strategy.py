"""PerfLLM as a strategy: an agent plays episodes, and learns from the runtime after each move (paper section 3)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from random import Random
from typing import Any

from pdojo.dialect.machines.registry import host
from pdojo.errors import UsageError
from pdojo.passes.passes import run_pass
from pdojo.perfllm.agent import Agent, Moment
from pdojo.perfllm.archive import WHOLE, Archive, ArchivedPath
from pdojo.perfllm.encoders import encoder
from pdojo.perfllm.learner import import_torch
from pdojo.perfllm.policy import identity_of, load_policy
from pdojo.perfllm.replay import STOP, Visit
from pdojo.perfllm.schema import COUNT, ListSchema, Schema
from pdojo.perfllm.screening import Screen
from pdojo.perfllm.settings import Settings
from pdojo.perfllm.storing import dump, load
from pdojo.search.contract.evaluation import JSON
from pdojo.search.contract.neighbourhood import Neighbourhood
from pdojo.search.contract.node import Node, Proposal
from pdojo.search.contract.strategy import StrategyKind, StrategyOptions
from pdojo.search.neighbourhoods.lengths import lengths
from pdojo.search.neighbourhoods.mutate import Mutate
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move

PASSING = ("Timeout",)
"""Failures after which an episode goes on: the program may be slow only because it is unfinished."""
STOPS = 128
"""Number of episodes in a row that stop at once, after which the search ends."""
MATES = 2
"""Number of best programs whose moves a state's edits may take."""


@dataclass(frozen=True)
class _Menu:
    """The offers of a state."""

    moves: tuple[Move, ...]
    """The trace of the state."""
    mates: Sequence[Sequence[Move]]
    """Traces whose moves the state's edits may take."""
    look: int
    """Number of the look that drew the offers."""
    evaluations: int
    """Number of the latest evaluation before that look."""
    visit: Visit
    moment: Moment | None
    """The offers as drawn; None after a restore, until they are drawn again."""


class PerfLLM:
    """Q-learning over programs; each proposal is the next move of an episode.

    The neighbourhood is ignored, except for the learned proposals of `mutate`, which then draw the offers.

    The reward of a move is c / T: T is the cost afterwards, c the cost of the search's root.
    """

    name = "perfllm"
    batch = 1

    def __init__(self, steps: int = 1000, settings: Settings | None = None) -> None:
        import_torch()
        self.steps = steps
        """The budget, over which exploration decreases."""
        self.agent_settings = settings = settings or Settings()
        reader = encoder(settings.encoder, host())
        self._encoded_by = reader.name
        self._policy = None
        if settings.policy:
            self._policy = load_policy(settings.policy, settings, reader.name, reader.size)
        self._screen = Screen(settings.screen) if settings.screen else None

    @property
    def settings(self) -> JSON:
        """The hyper-parameters, and identities of the encoder and of the named files."""
        given = self.agent_settings
        files = {"policy": given.policy, "screen": given.screen}
        identities = {name: identity_of(path) if path else "" for name, path in files.items()}
        return {**given.to_json(), **identities, "steps": self.steps, "encoded by": self._encoded_by}

    def start(self, root: Node, neighbourhood: Neighbourhood, random: Random) -> None:
        """Begin the first episode at the root."""
        self._root = root
        self._near = neighbourhood if isinstance(neighbourhood, Mutate) else None
        reader = encoder(self.agent_settings.encoder, root.game.machine)
        self._agent = Agent(self.agent_settings, reader, random, self._policy, self._screen)
        self._shown = deque(_moves_of_pass(root.game) if self.agent_settings.demonstrations else ())
        """Remaining moves of a demonstration."""
        self._random = random
        self._scale = root.cost if 0 < root.cost < inf else 1.0
        self.episodes = 0
        """Number of episodes begun."""
        self._made = 0
        """Number of moves made in this episode."""
        self._path: list[Node] = []
        """The states of the episode, in order, the root first."""
        given = self.agent_settings
        self._archive: Archive[Node] = Archive(given.elites, given.patience, self._worth(root))
        """Paths without the root."""
        self._known = {root.fingerprint}
        """Programs with a cost, keyed by fingerprint."""
        self._menus: dict[str, _Menu] = {}
        """The offers of some states, keyed by fingerprint, the latest last; only with `fresh`."""
        self._asked: int | None = None
        self._latest = self._looked = root.number
        self._begin()

    def ask(self) -> Proposal | None:
        """The program after the agent's next move; stopping begins another episode at once."""
        if self._asked is not None:
            return None
        for _ in range(STOPS):
            action = self._chosen()
            if action == STOP:
                self._agent.observe(self._moment, STOP, self._reward(self._node), None)
                self._begin()
                continue
            self._asked = action
            return Proposal(self._moment.offers[action].state(), self._node)
        return None

    def _chosen(self) -> int:
        """The demonstrated action, else the agent's."""
        if self._shown:
            self._shown.popleft()
            if self._moment.shown is not None:
                return self._moment.shown
            # A move that is illegal ends the demonstration.
            self._shown.clear()
        epsilon = self._agent.epsilon(self._latest / max(1, self.steps))
        return self._agent.choose(self._moment, epsilon, self._actions())

    def _actions(self) -> list[int] | None:
        """The allowed actions; with `fresh`, the actions that lead to programs without a cost; None for all.

        Stopping at the start of an episode is excluded, as it would say nothing new.
        """
        if not self.agent_settings.fresh:
            return None
        new = self._new(self._moment.visit)
        return [STOP, *new] if self._made or not new else new

    def _new(self, visit: Visit) -> list[int]:
        return [action for action, after in enumerate(visit.offers, start=1) if after not in self._known]

    def _moment_of(self, node: Node) -> Moment:
        """The offers of a state; with `fresh`, the earlier ones until half of them have a cost."""
        # Offers of a demonstration include its move, which a later draw would miss.
        if not self.agent_settings.fresh or self._shown:
            return self._look(node.game)
        menu = self._menus.pop(node.fingerprint, None)
        if menu is None or menu.moves != node.moves or 2 * len(self._new(menu.visit)) < len(menu.visit.offers):
            mates = [one.path[-1].moves for one in self._archive.drawn(MATES, self._random)]
            moment = self._look(node.game, mates)
        else:
            mates, self._looked = menu.mates, menu.evaluations
            moment = menu.moment or self._look(node.game, mates, menu.look, menu.evaluations)
        self._menus[node.fingerprint] = _Menu(node.moves, mates, moment.look, self._looked, moment.visit, moment)
        if len(self._menus) > 1 + self.agent_settings.elites:
            del self._menus[next(iter(self._menus))]
        return moment

    def _look(
        self,
        game: Game,
        mates: Sequence[Sequence[Move]] = (),
        again: int | None = None,
        evaluations: int | None = None,
    ) -> Moment:
        self._looked = self._latest if evaluations is None else evaluations
        near = None if self._near is None else self._near.after(self._looked)
        shown = self._shown[0] if self._shown else None
        return self._agent.look(game, shown=shown, mates=mates, again=again, near=near)

    def tell(self, node: Node) -> None:
        """Learn from the cost of the program, and continue from it."""
        assert self._asked is not None
        action, self._asked = self._asked, None
        self._latest = max(self._latest, node.number)
        moment, reward = self._moment, self._reward(node)
        self._known.add(node.fingerprint)
        self._path.append(node)
        is_best = self._archive.tell(self._worth(node), node.fingerprint, self._path[1:])
        self._made += 1
        is_over = self._made >= self.agent_settings.horizon and not self._shown
        goes_on = node.evaluation.is_ok or node.evaluation.failure in PASSING
        # Making edits takes long, so it happens only if another action follows here, now or probably soon.
        looks = goes_on and (not self.agent_settings.fresh or is_best or not is_over)
        following = self._moment_of(node) if looks else None
        self._agent.observe(moment, action, reward, following, [menu.visit for menu in self._menus.values()])
        if is_over or following is None:
            self._shown.clear()
            self._begin()
        else:
            self._node, self._moment = node, following

    # Keeping

    def save(self) -> bytes:
        """The agent, the episode, and the best programs. Valid while no proposal waits for `tell`."""
        assert self._asked is None
        state = {
            "agent": self._agent.state(),
            "episodes": self.episodes,
            "made": self._made,
            "latest": self._latest,
            "path": [_stored(node) for node in self._path],
            "elites": [_stored_elite(one) for one in self._archive.elites],
            "champions": [_stored_elite(one) for one in self._archive.champions],
            "waited": self._archive.waited,
            "menus": [_stored_menu(menu) for menu in self._menus.values()],
            "look": self._moment.look,
            "looked": self._looked,
            "shown": [str(move) for move in self._shown],
        }
        return dump(state)

    def restore(self, data: bytes, nodes: Mapping[int, Node]) -> None:
        """Restore the strategy from `save`; `nodes` are the first nodes of the programs, by number.

        Raises UsageError for other data.
        """
        state = load(data, {**_SCHEMA, "agent": self._agent.schema()})
        self._agent.restore(state["agent"])
        self.episodes, self._made, self._latest = (state[name] for name in ("episodes", "made", "latest"))
        self._path = _restored(state["path"], nodes)
        self._archive.elites = [_restored_elite(stored, nodes) for stored in state["elites"]]
        self._archive.champions = [_restored_elite(stored, nodes) for stored in state["champions"]]
        self._archive.waited = state["waited"]
        self._known |= {node.fingerprint for node in nodes.values()}
        menus = [_restored_menu(stored) for stored in state["menus"]]
        self._menus = {menu.visit.state: menu for menu in menus}
        self._shown = deque(Move.parse(text) for text in state["shown"])
        self._node = self._path[-1]
        menu = self._menus.get(self._node.fingerprint)
        mates = menu.mates if menu is not None and menu.look == state["look"] else ()
        self._moment = self._look(self._node.game, mates, state["look"], state["looked"])

    def _reward(self, node: Node) -> float:
        return 0.0 if node.cost == inf else self._scale / max(node.cost, 1e-300)

    def _worth(self, node: Node) -> float:
        """The cost of a program with a penalty for longer code; less is better."""
        parsimony = self.agent_settings.parsimony
        return node.cost * (1 + parsimony * lengths(node.game)[1]) if parsimony and node.cost < inf else node.cost

    def _begin(self) -> None:
        """Begin an episode at the root, or in a state on the path to one of the best programs."""
        self.episodes += 1
        self._made = 0
        self._path = [self._root]
        if not self._shown and self._random.random() < self.agent_settings.resume_best:
            whole = 1.0 if self.agent_settings.fresh else WHOLE
            self._path = [self._root, *self._archive.prefix(self._random, whole)]
        self._node = self._path[-1]
        self._moment = self._moment_of(self._node)


_PATH = ListSchema((ListSchema((COUNT,), str),), ListSchema((COUNT,), str))
"""Schema of a path with at least one node."""
_ELITES = [ListSchema((float, *_PATH.head), _PATH.rest)]
_SCHEMA: Mapping[str, Schema] = {
    **dict.fromkeys(("episodes", "made", "latest", "waited", "look", "looked"), COUNT),
    **dict.fromkeys(("elites", "champions"), _ELITES),
    "path": _PATH,
    "menus": [ListSchema((COUNT, COUNT, str, [str], [str]), [str])],
    "shown": [str],
}
"""Schema of the saved state, without the agent's."""


def _moves_of_pass(game: Game) -> list[Move]:
    """The moves of the heuristic pass in a state, located by identifier."""
    game = game.fork()
    before = len(game.trace.steps)
    run_pass("heuristic", game)
    return [step.resolved for step in game.trace.steps[before:]]


def _stored(node: Node) -> list[Any]:
    return [node.number, *map(str, node.moves)]


def _stored_menu(menu: _Menu) -> list[Any]:
    traces = ([str(move) for move in moves] for moves in (menu.moves, *menu.mates))
    return [menu.look, menu.evaluations, menu.visit.state, list(menu.visit.offers), *traces]


def _restored_menu(stored: Sequence[Any]) -> _Menu:
    look, evaluations, state, offers, *traces = stored
    moves, *mates = (tuple(map(Move.parse, trace)) for trace in traces)
    return _Menu(moves, mates, look, evaluations, Visit(state, tuple(offers)), None)


def _stored_elite(elite: ArchivedPath[Node]) -> list[Any]:
    return [elite.cost, *(_stored(node) for node in elite.path)]


def _restored_elite(stored: Sequence[Any], nodes: Mapping[int, Node]) -> ArchivedPath[Node]:
    cost, *path = stored
    found = _restored(path, nodes)
    return ArchivedPath(cost, found[-1].fingerprint, tuple(found))


def _restored(stored: Sequence[Sequence[Any]], nodes: Mapping[int, Node]) -> list[Node]:
    """The nodes of an episode. A known program may have another trace than its first node.

    Raises UsageError for an unknown number, NotationError for a text that is no move.
    """
    found: list[Node] = []
    for number, *texts in stored:
        parent = found[-1] if found else None
        if number not in nodes:
            raise UsageError(f"there is no program {number}")
        found.append(replace(nodes[number], moves=tuple(Move.parse(text) for text in texts), parent=parent))
    return found


def _made(steps: int, options: StrategyOptions | None) -> PerfLLM:
    return PerfLLM(steps, None if options is None else Settings.from_json(dict(options)))


STRATEGY = StrategyKind(_made, lambda text: Settings.parse(text).to_json())
