"""Processes that make proposals: they propose the same, die without harm, and end with their parent."""

from __future__ import annotations

import gc
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pdojo_tools import tune

import pdojo
from pdojo.backends.common import processes as pool_module
from pdojo.backends.common.processes import ATTEMPTS, Pool
from pdojo.budget import Budget
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.errors import MeasurementError, UsageError
from pdojo.kernels import workload
from pdojo.names import strategy_names
from pdojo.search.contract.evaluation import JSON, Candidate, Evaluation, Listener
from pdojo.search.contract.node import Node, SharedEvaluation, States
from pdojo.search.contract.strategy import Breeder, Parents
from pdojo.search.engine import executor as children
from pdojo.search.engine.executor import LocalExecutor, ProcessExecutor
from pdojo.search.engine.search import search
from pdojo.search.evaluators.analytical import Analytical
from pdojo.search.neighbourhoods import neighbourhood
from pdojo.search.neighbourhoods.mutate import Mutate
from pdojo.search.strategies import strategy
from pdojo.transforms.game import Game

MACHINE = machine("x86-64-zen4")
BREEDERS = ("sample", "evolve", "elites", "model")


def plain() -> Game:
    return Game(with_alignment(workload("softmax:8x16").instantiate(), 64), MACHINE)


def node(game: Game, states: States, parent: Node | None = None) -> Node:
    (evaluation,) = Analytical(MACHINE).evaluate([Candidate.of(game)])
    moves = tuple(step.resolved for step in game.trace.steps)
    made = Node(0 if parent is None else 1, moves, game.fingerprint, parent, SharedEvaluation(evaluation), states)
    states.put(made, game)
    return made


def family() -> list[Parents]:
    """Neighbours of a descendant, and of its crosses with another one."""
    start, random = plain(), Random(1)
    states = States(start)
    root = node(start, states)
    one, other = start, start
    for _ in range(6):
        one, other = (Mutate().neighbour(each, random) or each for each in (one, other))
    first, second = (node(each, states, root) for each in (one, other))
    seconds = (None, second, second, None, second)
    return [Parents(first, each, number) for number, each in enumerate(seconds)]


@pytest.fixture
def two() -> Iterator[ProcessExecutor]:
    made = ProcessExecutor(Mutate(), plain(), 2, alone=0)
    yield made
    made.pool.close()


def told(made: Iterator[Game | None]) -> list[tuple[str, str]]:
    return [("", "") if one is None else (one.fingerprint, str(one.trace)) for one in made]


def test_children_are_the_same_in_every_process(two: ProcessExecutor) -> None:
    wanted = family()
    here = told(LocalExecutor(Mutate()).of(wanted))
    assert told(two.of(wanted)) == here
    assert len(two.pool.processes) == 2
    assert len({fingerprint for fingerprint, _ in here}) > 3
    # The crosses are not all made into neighbours.
    assert told(two.of(reversed(wanted))) == here[::-1]


def test_a_process_that_dies_is_replaced(two: ProcessExecutor) -> None:
    wanted = family()
    made = two.of(wanted)
    first = next(made)
    before = two.pool.processes
    # The pool ends the others.
    os.kill(before[0], signal.SIGKILL)
    assert told(iter([first, *made])) == told(LocalExecutor(Mutate()).of(wanted))
    assert not set(before) & set(two.pool.processes)


@pytest.mark.parametrize("name", BREEDERS)
def test_searches_do_not_depend_on_the_number_of_processes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "model":
        pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    monkeypatch.setattr(children, "ALONE", 0.0)
    # The model is asked from the 25th program on.
    budget = 28 if name == "model" else 12

    def found(proposers: int) -> list[tuple[int, float, str]]:
        near = neighbourhood("heuristic" if name == "sample" else "mutate")
        result = search(
            plain(), Analytical(MACHINE), strategy(name, budget), near, Budget(budget), 3, proposers=proposers
        )
        assert result.best is not None
        return [(row.number, row.cost, str(result.best.trace)) for row in result.history]

    rows = found(1)
    assert len(rows) == budget + 1
    assert found(2) == rows


def test_identifiers_of_a_kernel_reach_the_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "ALONE", 0.0)
    moved = plain()
    moved.apply("join_scopes@m:0")
    moved.apply("tile_scope@m:1{size=4}")
    # Its identifiers are not those of its text.
    start = Game(moved.kernel, MACHINE)
    again = Game(parse_notation(start.text)[0], MACHINE)
    assert [node.id for node in start.program.nest.scopes] != [s.id for s in again.program.nest.scopes]

    def costs(proposers: int) -> list[float]:
        found = search(
            start.fork(), Analytical(MACHINE), strategy("evolve"), Mutate(), Budget(10), 1, proposers=proposers
        )
        return [row.cost for row in found.history]

    assert costs(2) == costs(1)


def test_nothing_is_under_way_while_programs_are_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "ALONE", 0.0)
    pools, busy = list[Pool](), list[int]()
    begin = Pool.__init__

    def noted(pool: Pool, *arguments: Any) -> None:
        begin(pool, *arguments)
        pools.append(pool)

    class Looking(Analytical):
        def evaluate(self, candidates: Sequence[Candidate], listener: Listener | None = None) -> list[Evaluation]:
            busy.extend(sum(not job.done() for job in pool._jobs) for pool in pools)  # pyright: ignore[reportPrivateUsage]
            return super().evaluate(candidates, listener)

    monkeypatch.setattr(Pool, "__init__", noted)
    # The last batch is cut short: more was drawn than is asked for.
    search(plain(), Looking(MACHINE), strategy("evolve"), Mutate(), Budget(10), 1, proposers=2)
    assert len(busy) >= 2
    assert not any(busy)


def test_breeders_are_those_that_propose_batches() -> None:
    for name in strategy_names():
        if name in ("model", "perfllm"):
            pytest.importorskip({"model": "sklearn", "perfllm": "torch"}[name], reason="a package is missing")
        made = strategy(name)
        assert isinstance(made, Breeder) == (made.batch > 1) == (name in BREEDERS)


def test_calls_are_answered_in_order_or_raise() -> None:
    pool = Pool(2, gc.enable)
    try:
        assert list(pool.map(math.sqrt, [k * k for k in range(20)])) == list(range(20))
        with pytest.raises(ValueError, match=r"domain|nonnegative"):
            list(pool.map(math.sqrt, [1, -1, 2]))
        with pytest.raises(MeasurementError, match=f"{ATTEMPTS} processes died over 7"):
            list(pool.map(os._exit, [7, 8]))
        assert list(pool.map(math.sqrt, [4])) == [2]
    finally:
        pool.close()
    assert pool.processes == []


class OddError(Exception):
    """Is pickled, and cannot be made again from that."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} {two}")


def test_exceptions_that_cannot_be_pickled_are_told() -> None:
    def odd(_: int) -> None:
        raise OddError("one", "two")

    with pytest.raises(RuntimeError, match="OddError: one two"):
        pool_module._answered(odd, 1)  # pyright: ignore[reportPrivateUsage]


def test_a_rest_ends_what_is_under_way(tmp_path: Path) -> None:
    pool = Pool(2, gc.enable)
    try:
        paths = [tmp_path / str(number) for number in range(20)]
        commands = [["sh", "-c", f"sleep 0.05; touch {path}"] for path in paths]
        made = pool.map(subprocess.check_call, commands)
        next(made)
        pool.rest()
        touched = [path.exists() for path in paths]
        # What had begun has ended, and what had not does not begin any more.
        assert touched == sorted(touched, reverse=True)
        assert sum(touched) <= 5
        time.sleep(0.2)
        assert [path.exists() for path in paths] == touched
        made.close()
        pool.map(subprocess.check_call, commands[-1:])
        pool.rest()
        assert paths[-1].exists()
    finally:
        pool.close()


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="this system has no /proc")
def test_the_signal_of_ctrl_c_is_blocked_from_the_start() -> None:
    pool = Pool(2, gc.enable)
    try:
        waiting = pool.map(time.sleep, [60] * 2)
        for process in pool.processes:
            status = Path(f"/proc/{process}/status").read_text()
            (blocked,) = (line.split()[1] for line in status.splitlines() if line.startswith("SigBlk"))
            assert int(blocked, 16) & 1 << signal.SIGINT - 1
        assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    finally:
        pool.close()
    waiting.close()


SEARCH = """
import pdojo
from pdojo.search.engine import executor as children
from pdojo.backends.common import processes as pool_module
from pdojo.search.neighbourhoods.mutate import Mutate

children.ALONE = 0.0
print("runs")
found = pdojo.tune(
    "softmax:8x16", "x86-64-zen4", search="evolve", neighbourhood={near}, evaluator="analytical", start="plain",
    evaluations=10, seed=1, measure=False, proposers=2,
)
print("evaluations", len(found.found.result.history) - 1)
"""


def test_neighbourhoods_that_no_process_can_import_are_named() -> None:
    script = """
from pdojo.search.engine.executor import ProcessExecutor
from pdojo.search.neighbourhoods.mutate import Mutate
from pdojo.errors import UsageError

class Own(Mutate):
    pass

try:
    ProcessExecutor(Own(), None, 2, 0)
except UsageError as error:
    print(error)
"""
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert told.startswith("the neighbourhood 'mutate' is not defined in a file")


def test_scripts_need_no_guard_and_files_of_a_folder_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "signal.py").write_text("raise ValueError('this is not the signal module')\n")
    # As from standard input, which no process can read again.
    script = SEARCH.format(near="'mutate'")
    done = subprocess.run(
        [sys.executable, "-P", "-"], input=script, capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert done.stdout == "runs\nevaluations 10\n"
    assert "Traceback" not in done.stderr


def is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def ended(processes: list[int]) -> bool:
    deadline = time.monotonic() + 20
    while any(map(is_alive, processes)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(is_alive, processes))


def test_busy_processes_end_at_once() -> None:
    pool = Pool(2, gc.enable)
    waiting = pool.map(time.sleep, [600] * 4)
    deadline = time.monotonic() + 20
    while len(pool.processes) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    processes = pool.processes
    assert len(processes) == 2
    pool.close()
    assert ended(processes)
    waiting.close()


PARENT = """
import gc, math, time
from pdojo.backends.common.processes import Pool

if __name__ == "__main__":
    pool = Pool(2, gc.enable)
    list(pool.map(math.sqrt, range(8)))
    print(*pool.processes, flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="this system has no /proc")
def test_processes_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    parent = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    processes = [int(word) for word in parent.stdout.readline().split()]
    assert processes
    assert all(map(is_alive, processes))
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert ended(processes)


class Bound(Mutate):
    """A neighbourhood that cannot be pickled."""

    def __init__(self) -> None:
        super().__init__()
        self.settings_now = lambda: self.settings

    @property
    def settings(self) -> JSON:
        return {}


def test_mistakes_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    budget, costs = Budget(1), Analytical(MACHINE)
    with pytest.raises(UsageError, match="'mutate' cannot be sent to other processes"):
        search(plain(), costs, strategy("evolve"), Bound(), budget, 1, proposers=2)
    with pytest.raises(UsageError, match="'anneal' proposes one program at a time"):
        search(plain(), costs, strategy("anneal"), Mutate(), budget, 1, proposers=2)
    for wrong in (0, -1, 2**31 - 1, 2.0, "2", True):
        with pytest.raises(UsageError, match=f"1 to 1024 processes propose, not {wrong!r}"):
            search(plain(), costs, strategy("evolve"), Mutate(), budget, 1, proposers=wrong)  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="proposers belongs to a search"):
        pdojo.tune("dot:4x16", proposers=2)
    assert tune.main(["dot:4x16", "--machine", "snitch", "--search", "anneal", "--proposers", "2"]) == 2
    assert "'anneal' proposes one program at a time" in capsys.readouterr().err
    assert tune.main(["dot:4x16", "--machine", "snitch", "--proposers", "2"]) == 2
    assert "--proposers belongs to a search" in capsys.readouterr().err
