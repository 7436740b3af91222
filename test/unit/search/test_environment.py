"""Episodes: offered actions, rewards, ends, forks, replay, validation, storing. No gymnasium is needed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import pytest

import pdojo
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.errors import IllegalMove, MeasurementError, UsageError
from pdojo.kernels import workload
from pdojo.passes.passes import run_pass
from pdojo.search.contract.evaluation import Evaluation, Evaluator
from pdojo.search.database import Database
from pdojo.search.environment.actions import Action, actions_of
from pdojo.search.environment.episode import Episode, Transition
from pdojo.search.environment.reward_model import HARMLESS, RewardModel
from pdojo.search.environment.rules import Rules
from pdojo.search.environment.validation import validate
from pdojo.search.evaluators.analytical import Analytical
from pdojo.search.evaluators.cycles import Cycles
from pdojo.search.neighbourhoods.lengths import lengths
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move
from pdojo.transforms.trace import Trace
from search_games import TextCosts, Weather, start

TRACES = Path(pdojo.__file__).parent / "kernels" / "traces"


def softmax(name: str = "x86-64-avx512") -> Game:
    return Game(workload("softmax:8x32").instantiate(), machine(name))


OPENED = ExitStack()


@pytest.fixture(autouse=True)
def all_are_closed() -> Iterator[None]:
    """Closed databases and evaluators after each test."""
    with OPENED:
        yield


def priced(state: Game, evaluator: Evaluator, database: Database | None = None) -> RewardModel:
    return OPENED.enter_context(closing(RewardModel(state, evaluator, database=database)))


def episode_of(game: Game | None = None, seed: int = 0, **rules: Any) -> Episode:
    state = game or softmax()
    return Episode(state, priced(state, Analytical(state.machine)), Rules(**rules), seed)


class Judged(TextCosts):
    """Every program but the start has the given failure, or half the cost if there is none."""

    def __init__(self, plain: str, failure: str) -> None:
        super().__init__()
        self.plain, self.failure = plain, failure

    def cost(self, text: str) -> Evaluation:
        if text == self.plain:
            return Evaluation(8.0)
        return Evaluation.failed(self.failure, {"message": "planted"}) if self.failure else Evaluation(4.0)


def judged(failure: str = "", **rules: Any) -> Episode:
    state = start()
    return Episode(state, priced(state, Judged(state.text, failure)), Rules(**rules))


# Offers


def test_all_legal_moves_are_offered_on_request() -> None:
    game = softmax()
    offered = episode_of(game, offered=None).offers
    assert offered[0].is_stop
    assert [offer.label for offer in offered[1:]] == list(map(str, game.moves()))


def test_moves_on_unused_memory_are_left_out() -> None:
    game = Game(workload("matmul:8x8x8").instantiate(), machine("x86-64-avx512"))
    game.apply(next(move for move in game.moves() if move.name == "contract"))
    labels = [offer.label for offer in episode_of(game, offered=None).offers]
    on_t = [str(move) for move in game.moves() if move.at.partition(":")[0] == "t"]
    assert on_t
    assert not {*on_t} & {*labels}


def test_offers_lead_where_they_say() -> None:
    for granularity in ("single", "everywhere"):
        episode = episode_of(granularity=granularity, offered=12)
        before = episode.game.text
        for offer in episode.offers:
            state = offer.state()
            assert (offer.text, offer.fingerprint) == (state.text, state.fingerprint)
            played = episode.game.fork()
            for move in offer.moves:
                played.apply(move)
            assert played.text == state.text
            assert len(state.trace.steps) == len(offer.moves)
        assert episode.game.text == before


def test_offers_stay_valid_after_the_episode_went_on() -> None:
    episode, other = episode_of(offered=8), episode_of(offered=8)
    wanted = [(offer.text, offer.moves) for offer in other.offers]
    old = episode.offers
    for _ in range(3):
        episode.step(1)
    assert [(offer.text, offer.moves) for offer in old] == wanted


def test_successors_are_computed_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    episode = episode_of(offered=8)
    offers = episode.offers
    assert offers[3].text
    monkeypatch.setattr(type(episode.game.program), "copy", None)
    assert offers[3].text
    with pytest.raises(TypeError):
        _ = [offer.text for offer in offers[4:]]


def test_offers_are_different_and_as_many_as_asked_for() -> None:
    for granularity in ("single", "everywhere", "both"):
        labels = [offer.label for offer in episode_of(granularity=granularity, offered=16).offers]
        assert len(labels) == len({*labels}) == 17


def test_large_families_do_not_crowd_out_the_others() -> None:
    """Half of the legal moves belong to few families; the draw gives each family the same share."""
    game = Game(workload("matmul:64x64x64").instantiate(), machine("x86-64-avx512"))
    every = Counter(offer.family for offer in episode_of(game, offered=None).offers[1:])
    largest, count = every.most_common(1)[0]
    assert count > 0.2 * every.total()
    for granularity in ("single", "everywhere"):
        drawn = Counter(
            episode_of(game, seed, granularity=granularity, offered=1).offers[1].family for seed in range(60)
        )
        assert drawn[largest] < 0.2 * drawn.total()
        assert len(drawn) >= 0.5 * len(every)


def test_both_granularities_beside_each_other() -> None:
    offers = episode_of(granularity="both", offered=None).offers[1:]
    runs = [offer for offer in offers if offer.is_run]
    singles = [offer.label for offer in offers if not offer.is_run]
    assert singles == [offer.label for offer in episode_of(offered=None).offers[1:]]
    assert runs
    assert {offer.label for offer in runs} < {
        offer.label for offer in episode_of(granularity="everywhere", offered=None).offers
    }


def test_edits_lead_where_they_say() -> None:
    """An edit leads to a valid trace of another program; earlier moves may have gone."""
    episode = episode_of(granularity="edits", offered=12, seed=1)
    for _ in range(3):
        episode.step(1)
    before = episode.game.text
    labels, shorter = set[str](), 0
    for offer in episode.offers[1:]:
        state = offer.state()
        assert (offer.family, offer.moves, offer.is_stop) == ("edit", (), False)
        assert (offer.text, offer.fingerprint) == (state.text, state.fingerprint)
        assert offer.text != before
        again = Game(episode.start.plain, episode.start.machine)
        assert not again.become(step.resolved for step in state.trace.steps)
        assert again.text == state.text
        labels.add(offer.label)
        assert offer.label.startswith("edit ")
        shorter += len(state.trace.steps) < len(episode.game.trace.steps)
    assert len(labels) == 12
    assert shorter
    assert len({offer.fingerprint for offer in episode.offers}) == 13
    assert episode.game.text == before
    episode.step(5)
    with pytest.raises(UsageError, match="not all edits of a trace can be offered"):
        Rules(None, "edits")


def test_edits_take_moves_from_mates() -> None:
    """A state without the last moves of a mate, but with one of its own: its edits have all of them in some cross."""
    naive = softmax()
    run_pass("naive", naive)
    mate = tuple(step.resolved for step in naive.trace.steps)
    state = softmax()
    state.apply("tile_scope@y:1{size=4}")
    own = state.trace.steps[0].resolved
    assert not state.become([own, *mate[:-4]])

    def drawn(mates: tuple[tuple[Move, ...], ...]) -> list[Action]:
        return actions_of(state, Rules(12, "edits"), Random(7), mates)[1:]

    def whole(offers: list[Action]) -> int:
        traces = ([step.resolved for step in offer.state().trace.steps] for offer in offers)
        return sum({own, *mate} <= set(trace) for trace in traces)

    assert whole(drawn((mate,)))
    assert not whole(drawn(()))
    assert [offer.label for offer in drawn((mate,))] == [offer.label for offer in drawn((mate,))]


# Runs


def act(episode: Episode, label: str) -> Transition:
    return episode.step([offer.label for offer in episode.offers].index(label))


def test_everywhere_reaches_the_fused_program_in_fewer_actions() -> None:
    naive = Game(workload("softmax:8x32").instantiate(), machine("x86-64-avx512"))
    run_pass("naive", naive)
    coarse = episode_of(granularity="everywhere", offered=None)
    for label in ("join_scopes@*", "reuse_dims@*"):
        act(coarse, label)
    assert coarse.game.text == naive.program.text
    fine = episode_of(offered=None)
    for move in naive.trace.moves:
        act(fine, str(move))
    assert fine.game.text == coarse.game.text
    assert (fine.steps, coarse.steps) == (8, 2)
    assert len(coarse.game.trace.steps) == 8


def test_a_run_takes_each_place_once_unless_its_family_finishes_programs() -> None:
    episode = episode_of(granularity="everywhere", offered=None)
    (tiled,) = [offer for offer in episode.offers if offer.label == "tile_scope@*{size=4}"]
    places = [move.at for move in tiled.moves]
    assert len(places) == len({*places}) == len(episode.game.program.nest.scopes)


def test_runs_do_not_make_programs_too_long() -> None:
    game = Game(workload("softmax:64x512").instantiate(), machine("x86-64-avx512"))
    episode = episode_of(game, granularity="everywhere", offered=None)
    act(episode, "unroll@*")
    assert len(episode.game.trace.steps) > 1
    assert lengths(episode.game)[1] <= 256


# Rewards and ends


def test_a_reward_after_each_step_is_the_speed_up() -> None:
    episode = judged()
    assert episode.price == (1.0, 8.0, "Ok", "")
    found = episode.step(1)
    assert (found.reward, found.price.runtime, found.terminated, found.truncated) == (2.0, 4.0, False, False)
    stopped = episode.step(0)
    assert (stopped.reward, stopped.terminated) == (2.0, True)


def test_a_reward_at_the_end_asks_for_no_other_cost() -> None:
    episode = judged(reward="end", scale=2.0)
    first = episode.step(1)
    assert (first.reward, first.price.status) == (0.0, "unmeasured")
    assert episode.prices.asked == 0
    assert episode.step(0).reward == 2.0 / 4.0
    assert episode.prices.asked == 1


def test_the_horizon_truncates_and_the_stop_terminates() -> None:
    episode = judged(horizon=2, reward="end")
    episode.step(1)
    last = episode.step(1)
    assert (last.reward, last.terminated, last.truncated) == (2.0, False, True)
    with pytest.raises(UsageError, match="the episode is over: reset first"):
        episode.step(0)
    episode.reset()
    assert not episode.is_over
    episode.step(1)
    stopped = episode.step(0)
    assert (stopped.terminated, stopped.truncated) == (True, False)


@pytest.mark.parametrize("failure", ["WrongResult", "Crash", "CompileError", "Trap", *HARMLESS])
def test_failures(failure: str) -> None:
    found = judged(failure).step(1)
    assert (found.reward, found.terminated) == (0.0, failure not in HARMLESS)
    assert found.price.status == failure
    assert found.price.why


@pytest.mark.parametrize("action", [-1, 9, 10**9])
def test_an_illegal_index_does_nothing(action: int) -> None:
    episode = judged(offered=8, horizon=2)
    labels = [offer.label for offer in episode.offers]
    found = episode.step(action)
    assert (found.reward, found.illegal, found.terminated, found.truncated) == (0.0, True, False, False)
    assert [offer.label for offer in episode.offers] == labels
    assert not episode.game.trace.steps
    assert episode.step(action).truncated


def test_a_start_without_cost_needs_a_scale() -> None:
    state = start()
    prices = priced(state, Judged("", "NoModel"))
    with pytest.raises(MeasurementError, match=r"'text' gives the first program no cost \(planted\); pass scale="):
        _ = Episode(state, prices).price
    assert Episode(state, prices, Rules(scale=1.0)).price == (0.0, inf, "NoModel", "planted")


def test_known_costs_are_not_asked_for_again(tmp_path: Path) -> None:
    state, costs = start(), TextCosts()
    with Database(tmp_path / "db") as database:
        for _ in range(2):
            episode = Episode(state, priced(state, costs, database=database), Rules(offered=4))
            for _ in range(3):
                episode.reset(seed=1)
                for _ in range(3):
                    episode.step(1)
    assert len(costs.evaluated) == len({*costs.evaluated}) == 4
    assert not costs.checked


def test_timed_programs_run_beside_the_start_with_checked_results() -> None:
    """A machine that is slower by the minute changes no reward: both sides of a ratio are from the same turns."""
    state = start()
    weather = Weather(drift=0.5)
    episode = Episode(state, priced(state, weather), Rules(offered=None))
    found = episode.step(next(k for k, offer in enumerate(episode.offers) if "unroll" in offer.label))
    true = weather.true_time(state.text) / weather.true_time(episode.game.text)
    assert found.reward == pytest.approx(true, rel=0.05)
    assert weather.heats[-1][1] == state.fingerprint
    assert all(inputs is not None for *_, inputs in weather.heats)


def test_cycles_on_snitch() -> None:
    state = Game(workload("relu:4x8").instantiate(), machine("snitch"))
    prices = priced(state, Cycles(state.machine, state.plain, workers=1))
    episode = Episode(state, prices, Rules(offered=None))
    unrolled = next(k for k, offer in enumerate(episode.offers) if offer.family == "unroll")
    found = episode.step(unrolled)
    assert found.price.status == "Ok"
    assert found.price.runtime == int(found.price.runtime)
    assert found.reward == prices.cost(state).cost / found.price.runtime
    assert episode.validate(3).is_ok
    prices.close()
    with pytest.raises(UsageError, match="was closed"):
        prices.cost(state)


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        ({"granularity": "all"}, "unknown granularity 'all'"),
        ({"reward": "steps"}, "unknown reward 'steps'; did you mean 'step'?"),
        ({"offered": 0}, "an episode needs 'offered' of at least 1, not 0"),
        ({"horizon": 0}, "an episode needs 'horizon' of at least 1, not 0"),
        ({"scale": -1.0}, "the scale of rewards is a positive number, not -1"),
    ],
)
def test_wrong_rules(rules: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        Rules(**rules)


# Repeating, forking, replaying


def walk(episode: Episode, actions: list[int]) -> list[object]:
    found: list[object] = []
    for action in actions:
        labels = tuple(offer.label for offer in episode.offers)
        found.append((labels, episode.step(action), episode.game.fingerprint))
    return found


@pytest.mark.parametrize("granularity", ["single", "everywhere", "both"])
def test_episodes_repeat_with_their_seed(granularity: str) -> None:
    first, second = (episode_of(granularity=granularity, offered=8) for _ in range(2))
    for episode in (first, second):
        episode.reset(seed=5)
    assert walk(first, [1, 2, 3]) == walk(second, [1, 2, 3])
    first.reset()
    second.reset(seed=5)
    assert [o.label for o in first.offers] != [o.label for o in second.offers]
    second.reset()
    assert walk(first, [4, 5]) == walk(second, [4, 5])


def test_a_fork_is_independent() -> None:
    episode = episode_of(offered=8)
    episode.step(1)
    fork = episode.fork()
    before = episode.game.fingerprint, episode.steps, len(episode.game.trace.steps)
    walked = walk(fork, [2, 3])
    assert (episode.game.fingerprint, episode.steps, len(episode.game.trace.steps)) == before
    assert walk(episode, [2, 3]) == walked
    fork.reset(seed=9)
    assert len(episode.game.trace.steps) == 3


def test_a_library_trace_is_replayed() -> None:
    trace = Trace.load(TRACES / "softmax-x86-64-avx512.trace")
    game = pdojo.tune("softmax", "x86-64-avx512", expert=None, measure=False).tuning.game.fork()
    episode = episode_of(game)
    price = episode.replay(trace)
    assert [str(move) for move in episode.game.trace.moves] == [str(move) for move in trace.moves]
    assert price.status == "Ok"
    assert price.reward > 1.0
    assert episode.steps == 0


def test_a_trace_that_does_not_apply_changes_nothing() -> None:
    episode = episode_of(offered=8)
    episode.step(1)
    before = episode.game.text, episode.number, episode.steps
    trace = Trace.parse("reuse_dims@e:0\n")
    with pytest.raises(IllegalMove, match="move 0 of the trace, reuse_dims@e:0: "):
        episode.replay(trace)
    with pytest.raises(IllegalMove, match="move 0 of the trace, reuse_dims@e:0: "):
        episode.reset(trace=trace)
    assert (episode.game.text, episode.number, episode.steps) == before


# Validation


@pytest.mark.parametrize("name", ["host", "neoverse-v2"])
def test_validation_finds_a_wrong_result(name: str) -> None:
    game = Game(workload("softmax:4x8").instantiate(), machine(name))
    assert validate(game, 1).is_ok
    assert validate(game).seed != validate(game).seed
    wrong = pdojo.parse(game.text.replace("e[{0},{1}] / s[{0}]", "e[{0},{1}] * s[{0}]"))
    game.apply(game.moves()[0])
    assert validate(game, 1).is_ok
    # As if the rewrite of the move were wrong.
    game.programs.positions[-1].program = Program(wrong, game.machine)
    found = validate(game, 1)
    assert (found.status, found.ran) == ("WrongResult", name == "host")
    assert "y" in found.summary


# Storing


@pytest.mark.parametrize("granularity", ["single", "everywhere"])
def test_a_stored_episode_goes_on(granularity: str) -> None:
    state = softmax()
    episode = episode_of(state, 3, granularity=granularity, offered=8)
    episode.reset()
    walk(episode, [1, 99, 2])
    stored = json.loads(json.dumps(episode.to_json()))
    again = Episode.from_json(stored, softmax(), priced(state, Analytical(state.machine)))
    assert again.to_json() == stored
    assert walk(again, [3, 4, 0]) == walk(episode, [3, 4, 0])
    over = Episode.from_json(again.to_json(), state, again.prices)
    assert over.is_over
    for each in (again, episode):
        each.reset()
    assert walk(again, [1]) == walk(episode, [1])


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"format": 2}, "has format 2; this pdojo reads format 1"),
        ({"kernel": "0"}, "one of another kernel or machine"),
        ({"machine": "snitch"}, "one of another kernel or machine"),
        ({"offers": ["stop"]}, "was offered other actions"),
        ({"rules": {"offers": 3}}, "these are no rules of episodes: offers"),
        ({"seed": None}, "this is no stored episode"),
        ({"trace": 7}, "this is no stored episode"),
    ],
)
def test_what_is_no_stored_episode(change: dict[str, Any], text: str) -> None:
    state = softmax()
    stored = episode_of(state, offered=4).to_json()
    with pytest.raises(UsageError, match=text):
        Episode.from_json({**stored, **change}, state, priced(state, Analytical(state.machine)))
    with pytest.raises(UsageError, match="this is no stored episode"):
        Episode.from_json({}, state, priced(state, Analytical(state.machine)))
