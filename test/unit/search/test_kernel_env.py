"""The gymnasium environment: what gymnasium checks, masks, vectors of environments, storing, and clear errors."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

import pdojo.env
from pdojo.env import ID, KernelEnv, kernel_env
from pdojo.errors import IllegalMove, PdojoError, UsageError
from search_games import TextCosts

ROOT = Path(__file__).parents[3]


USUAL: dict[str, Any] = {"kernel": "softmax:4x8", "machine": "x86-64-avx2", "evaluator": "analytical", "offered": 8}
OPENED = ExitStack()


@pytest.fixture(autouse=True)
def all_are_closed() -> Iterator[None]:
    """Closed databases and evaluators after each test."""
    with OPENED:
        yield


def environment(**options: Any) -> KernelEnv:
    return OPENED.enter_context(closing(kernel_env(**{**USUAL, **options})))


def made(**options: Any) -> gymnasium.Env[Any, Any]:
    """What an agent of somebody else makes."""
    return OPENED.enter_context(closing(gymnasium.make(ID, **{**USUAL, **options})))


OPTIONS: dict[str, dict[str, Any]] = {
    "usual": {},
    "all": {"offered": None},
    "successors": {"successors": True},
    "scale": {"scale": 5.0},
    "trace": {"trace": "join_scopes@m:0\n"},
}
USUAL_GAMES = [
    *((granularity, "step", "usual") for granularity in ("single", "everywhere", "both", "edits")),
    *(("single", "end", "all"), ("everywhere", "step", "successors"), ("single", "end", "scale")),
    ("edits", "end", "trace"),
]
GAMES = [
    pytest.param(*game, marks=() if game in USUAL_GAMES else pytest.mark.slow)
    for game in product(("single", "everywhere", "both", "edits"), ("step", "end"), OPTIONS)
    if game[::2] != ("edits", "all")
]


def test_edits_are_never_offered_all() -> None:
    with pytest.raises(UsageError, match="not all edits of a trace can be offered"):
        made(granularity="edits", offered=None)


@pytest.mark.parametrize(("granularity", "reward", "name"), GAMES)
def test_gymnasium_accepts_it(granularity: str, reward: str, name: str, tmp_path: Path) -> None:
    """Each granularity, and each option with one of them."""
    options = OPTIONS[name]
    if "trace" in options:
        path = tmp_path / "some.trace"
        path.write_text(f"# pdojo trace 1\n{options['trace']}")
        options = {"trace": str(path)}
    env = made(granularity=granularity, reward=reward, **options)
    check_env(env.unwrapped)


def test_a_runtime_is_accepted_too() -> None:
    """Known costs are not measured again, so that the same actions have the same rewards."""
    env = made(machine=None, evaluator="runtime", threads=1)
    check_env(env.unwrapped)


def test_the_mask_has_what_is_offered() -> None:
    env = environment(capacity=12, successors=True)
    observation, info = env.reset(seed=1)
    assert observation["action_mask"].tolist() == [1] * 9 + [0] * 4
    assert len(info["moves"]) == len(info["locations"]) == 9
    assert (info["moves"][0], info["locations"][0]) == ("stop", "")
    np.testing.assert_array_equal(observation["successors"][0], observation["features"])
    assert not observation["successors"][9:].any()
    before = observation["program"]
    for action in (9, 12, 13, -1):
        observation, reward, terminated, truncated, info = env.step(action)
        assert (reward, terminated, truncated, info["illegal"]) == (0.0, False, False, True)
        assert observation["program"] == before
    wanted = observation["successors"][3]
    observation, _, _, _, info = env.step(3)
    assert (info["illegal"], info["trace"] != []) == (False, True)
    np.testing.assert_array_equal(observation["features"], wanted)


def test_what_has_no_room_is_counted() -> None:
    env = environment(offered=None, capacity=5, longest=40)
    observation, info = env.reset(seed=0)
    assert len(info["moves"]) == 6
    assert info["left_out"] == len(env.episode.offers) - 6 > 0
    assert info["is_cut"]
    assert len(observation["program"]) == 40
    _, reward, _, _, info = env.step(7)
    assert (reward, info["illegal"]) == (0.0, True)


def test_seeds_repeat_and_differ() -> None:
    env, other = environment(), environment()
    first, second = env.reset(seed=4)[1], other.reset(seed=4)[1]
    assert first == second
    assert env.step(2)[4] == other.step(2)[4]
    assert env.reset(seed=5)[1]["moves"] != first["moves"]
    assert env.reset(seed=4)[1] == first
    assert env.reset()[1]["moves"] != first["moves"]
    unseeded = {tuple(environment().reset()[1]["moves"]) for _ in range(3)}
    assert len(unseeded) == 3


def test_info_says_what_happened() -> None:
    env = environment(horizon=2)
    _, info = env.reset(seed=0)
    assert (info["status"], info["unit"], info["runtime"] > 0, info["trace"]) == ("Ok", "cycles", True, [])
    wanted = info["moves"][4]
    _, reward, terminated, truncated, info = env.step(4)
    assert (info["move"], terminated, truncated) == (wanted, False, False)
    assert reward > 0
    assert info["fingerprint"] == env.episode.game.fingerprint
    *_, terminated, truncated, info = env.step(1)
    assert (terminated, truncated, len(info["trace"])) == (False, True, 2)
    _, info = env.reset(options={"trace": ["join_scopes@m:0"]})
    assert info["trace"] == ["join_scopes@m:0"]


def test_forks_validate_and_replay() -> None:
    env = environment()
    env.reset(seed=0)
    env.step(1)
    fork = env.fork()
    ahead = fork.step(2)[4]
    assert len(env.episode.game.trace.steps) < len(fork.episode.game.trace.steps)
    fork.close()
    assert env.step(2)[4] == ahead
    assert env.validate().is_ok
    _, info = env.replay(["join_scopes@m:0", "join_scopes@m:0"])
    assert (info["status"], len(info["trace"])) == ("Ok", 2)
    with pytest.raises(IllegalMove, match="move 0 of the trace, reuse_dims@e:0"):
        env.replay(["reuse_dims@e:0"])


def outcomes(env: gymnasium.Env[Any, Any], actions: list[int]) -> list[Any]:
    """What actions lead to, without the arrays of the observations, and then the latest random numbers."""
    told = [env.step(action)[1:] for action in actions]
    return [*told, env.action_space.sample(), int(env.unwrapped.np_random.integers(1 << 30))]


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_deep_copy_is_an_independent_game(wrapped: bool) -> None:
    env = made(offered=4) if wrapped else environment(offered=4)
    env.reset(seed=0)
    env.action_space.seed(1)
    env.step(1)
    copies = [copy.deepcopy(env) for _ in range(3)]
    expected = outcomes(env, [2, 1])
    env.reset(seed=5)
    for one in copies:
        inner, original = one.unwrapped, env.unwrapped
        assert isinstance(inner, KernelEnv)
        assert isinstance(original, KernelEnv)
        assert len(inner.episode.game.trace.steps) == 1
        shared = [name for name, value in vars(inner).items() if value is vars(original)[name]]
        assert {type(vars(inner)[name]) for name in shared} <= {bool, int, type(None)}
    assert outcomes(copies[0], [2, 1]) == expected
    copies[0].close()
    env.close()
    env.close()
    with pytest.raises(UsageError, match="the environment was closed"):
        env.reset()
    assert outcomes(copies[1], [2, 1]) == expected
    again = copy.deepcopy(copies[1])
    copies[1].close()
    again.reset(seed=0)
    again.close()
    assert outcomes(copies[2], [2, 1]) == expected
    copies[2].close()


class Closing(TextCosts):
    """Costs that cannot be copied, and that must be closed once."""

    closed = 0

    def __deepcopy__(self, memo: object) -> Closing:
        raise TypeError("processes cannot be copied")

    def close(self) -> None:
        self.closed += 1


def test_the_last_copy_closes_the_evaluator() -> None:
    costs = Closing()
    env = made(evaluator=costs)
    env.reset(seed=0)
    one, other = copy.deepcopy(env), copy.deepcopy(env)
    del other
    env.close()
    assert costs.closed == 0
    one.reset(seed=3)
    one.close()
    one.close()
    assert costs.closed == 1


@pytest.mark.parametrize("mode", ["ansi", "html"])
def test_rendering(mode: str) -> None:
    env = environment(render_mode=mode)
    env.reset(seed=0)
    env.replay(["join_scopes@m:0"])
    shown = env.render()
    assert "join_scopes@m:0" in shown
    assert "softmax on x86-64-avx2: 0 actions taken" in shown
    assert ("<pre>" in shown) == (mode == "html")
    with pytest.raises(UsageError, match="render_mode='ansi' or 'html'"):
        environment().render()


def test_shared_memory_is_refused() -> None:
    """Texts in it would never change."""
    with pytest.raises(ValueError, match="shared_memory=False"):
        AsyncVectorEnv([made] * 2)


@pytest.mark.parametrize("vector", [SyncVectorEnv, partial(AsyncVectorEnv, shared_memory=False)], ids=["sync", "async"])
def test_vectors(vector: Any) -> None:
    """Each environment does what it does alone, under the same seed."""
    # Processes that begin afresh import the module in front of the colon, which registers the name.
    envs = vector([partial(gymnasium.make, f"pdojo.env:{ID}", **{**USUAL, "horizon": 3})] * 2)
    observations, _ = envs.reset(seed=[1, 2])
    assert len(observations["program"]) == 2
    actions = np.array([1, 2])
    steps = [envs.step(actions) for _ in range(3)]
    rewards = [step[1].tolist() for step in steps]
    observations, _, _, truncated, infos = steps[-1]
    assert truncated.tolist() == [True, True]
    assert infos["status"].tolist() == ["Ok", "Ok"]
    envs.close()
    for number, seed in enumerate((1, 2)):
        alone = environment(horizon=3)
        alone.reset(seed=seed)
        assert [alone.step(int(actions[number]))[1] for _ in range(3)] == [each[number] for each in rewards]
        assert observations["program"][number] == alone.episode.game.text


def test_a_stored_environment_goes_on() -> None:
    env, again = environment(), environment()
    env.reset(seed=3)
    env.step(1)
    stored = json.loads(json.dumps(env.to_json()))
    _, info = again.restore(stored)
    assert info["trace"] == [str(move) for move in env.episode.game.trace.moves]
    assert again.to_json() == stored
    for action in (2, 1):
        assert env.step(action)[1:] == again.step(action)[1:]
    assert env.reset()[1] == again.reset()[1]
    assert env.np_random.random() == again.np_random.random()
    with pytest.raises(UsageError, match="other rules than this environment"):
        environment(offered=7).restore(stored)
    del stored["numbers"]
    with pytest.raises(UsageError, match="no state of random numbers"):
        again.restore(stored)


def test_costs_survive_a_kill(tmp_path: Path) -> None:
    """A process that is killed loses nothing: another one goes on from its file and its database."""
    program = f"""
import json, os, signal
from pathlib import Path
from pdojo.env import kernel_env
env = kernel_env("softmax:4x8", "x86-64-avx2", evaluator="analytical", offered=8, database={str(tmp_path / "db")!r})
env.reset(seed=3)
env.step(1)
Path({str(tmp_path / "state")!r}).write_text(json.dumps(env.to_json()))
env.step(2)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -9
    again = environment(database=tmp_path / "db")
    _, info = again.restore(json.loads((tmp_path / "state").read_text()))
    straight = environment()
    straight.reset(seed=3)
    _, _, _, _, there = straight.step(1)
    assert info == {**there, "move": ""}
    assert again.step(2)[1:3] == straight.step(2)[1:3]


def test_an_evaluator_of_ones_own() -> None:
    costs = TextCosts()
    env = environment(evaluator=costs)
    env.reset(seed=0)
    env.step(1)
    assert len(costs.evaluated) == 2


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"kernel": "sofmax"}, "did you mean 'softmax'"),
        ({"machine": "x86"}, "unknown machine 'x86'"),
        ({"evaluator": "cycles"}, "knows nothing about programs for x86-64-avx2"),
        ({"granularity": "coarse"}, "unknown granularity 'coarse'"),
        ({"capacity": -1}, "needs 'capacity' of at least 1"),
        ({"longest": 0}, "needs 'longest' of at least 1"),
        ({"render_mode": "human"}, "unknown render mode 'human'; known are ansi, html"),
        ({"trace": "missing.trace"}, "missing.trace"),
        ({"expert": "best"}, "unknown pass 'best'"),
    ],
)
def test_wrong_options(options: dict[str, Any], text: str) -> None:
    with pytest.raises(PdojoError, match=text):
        environment(**options)


def test_wrong_calls() -> None:
    env = environment()
    with pytest.raises(UsageError, match="unknown option 'start' of reset; known is trace"):
        env.reset(options={"start": 1})
    env.reset(seed=0)
    env.step(0)
    with pytest.raises(UsageError, match="the episode is over"):
        env.step(0)
    env.close()
    with pytest.raises(UsageError, match="was closed"):
        env.reset(seed=0)


def test_one_clear_error_without_gymnasium() -> None:
    program = """
import sys
sys.modules["gymnasium"] = None
from pdojo.errors import UsageError
import pdojo.search.environment
try:
    import pdojo.env
except UsageError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "pdojo.env needs gymnasium: pip install 'pdojo[env]'\n"


def test_the_registration_happens_once() -> None:
    assert ID in gymnasium.registry
    assert pdojo.env.kernel_env is kernel_env


@pytest.mark.parametrize(("agent", "granularity"), [("random_agent", "single"), ("bandit", "everywhere")])
def test_example_agents(agent: str, granularity: str) -> None:
    """They find something faster than the start, the same in every process."""
    script = str(ROOT / "examples" / "agents" / f"{agent}.py")
    few = ["--episodes", "6", "--horizon", "6", "--granularity", granularity]
    runs = [
        subprocess.run([sys.executable, script, "softmax:4x8", *few], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert runs[0].stdout == runs[1].stdout
    first, *moves = runs[0].stdout.splitlines()
    assert float(first.split()[1]) > 1.0
    assert len(moves) == int(first.split()[-2])
