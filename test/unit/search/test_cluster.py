"""Costs from a Ray cluster on this machine: shared between workers, which are killed meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_alone import needs_ray, processors_alone
from pdojo.backends.common.cores import core_count, core_order
from pdojo.backends.measure import MeasuredProgram
from pdojo.dialect.intrinsic import Intrinsic
from pdojo.dialect.machines.registry import host, machine
from pdojo.dialect.notation import parse_notation
from pdojo.errors import LoweringError, MeasurementError, UsageError
from pdojo.search.contract.evaluation import Candidate
from pdojo.search.contract.racing import TimingRequest
from pdojo.search.database import Database
from pdojo.search.evaluators.cluster import Cluster, Connection, OnCluster, pool, worker
from pdojo.search.evaluators.cluster.pool import common
from pdojo.search.evaluators.cluster.processors import claim
from pdojo.search.evaluators.runtime import RuntimeEvaluator
from pdojo.transforms.game import Game, fingerprint_of

TEXT = """
kernel double(x) -> (y)
x f32 [64, 100] heap
y f32 [64, 100] heap

64 100 y[{0},{1}] = x[{0},{1}] + x[{0},{1}]
"""
PLAIN = parse_notation(TEXT)[0]
DEADLY = Intrinsic(
    "deadly",
    "kernel deadly(x, y) -> (y)\nx f32 [4] heap\ny f32 [4] heap\n\n4 y[{0}] = x[{0}] + x[{0}]\n",
    {
        "llvm": """
declare i32 @getppid()
declare i32 @kill(i32, i32)

define void @deadly(ptr %x, ptr %y) alwaysinline {
  %parent = call i32 @getppid()
  %done = call i32 @kill(i32 %parent, i32 9)
  ret void
}
"""
    },
)
"""An instruction that kills the worker whose process runs it."""
ONE = replace(host(), threads=1)

two_processors = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two workers need two processors")


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with Connection("local") as found:
        yield found


@pytest.fixture
def alone() -> Iterator[None]:
    with processors_alone():
        yield


@pytest.fixture
def cluster(connection: Connection, alone: None) -> Iterator[Cluster]:
    found = Cluster(connection, replace(ONE, intrinsics=(DEADLY,)), most=2)
    yield found
    found.close()


def candidates(count: int) -> list[Candidate]:
    found = [Candidate.of(Game(PLAIN, ONE))]
    for size in range(2, count + 1):
        game = Game(PLAIN, ONE)
        game.apply(f"tile_scope@y:0{{size={size}}}")
        found.append(Candidate.of(game))
    return found


def candidate(text: str) -> Candidate:
    return Candidate(MeasuredProgram(text, ONE), fingerprint_of(text))


def children(process: int) -> list[int]:
    return [int(p) for t in Path(f"/proc/{process}/task").glob("*/children") for p in t.read_text().split()]


def test_processors_of_their_own(tmp_path: Path) -> None:
    first, second = claim(1, [4, 5, 6], tmp_path), claim(2, [4, 5, 6], tmp_path)
    assert sorted(first + second) == [4, 5, 6]
    with pytest.raises(MeasurementError, match="needs 1 processors for itself, and 0 of 3 are free"):
        claim(1, [4, 5, 6], tmp_path, patience=0.2)
    with pytest.raises(MeasurementError, match="is not a folder that only this user may write to"):
        claim(1, [4], tmp_path / "4")


def test_locks_are_in_a_folder_of_our_own(tmp_path: Path) -> None:
    """A link, and a folder that others may write to, could make us lock any file."""
    (tmp_path / "there").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "there")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    for name in ("link", "open"):
        with pytest.raises(MeasurementError, match="is not a folder that only this user may write to"):
            claim(1, [4], tmp_path / name)
    (tmp_path / "there" / "4").symlink_to(tmp_path / "made")
    with pytest.raises(MeasurementError, match="cannot lock processors in"):
        claim(1, [4], tmp_path / "there")
    assert not (tmp_path / "made").exists()
    assert claim(1, [4], tmp_path / "new") == [4]
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


def test_cores_come_before_their_siblings(monkeypatch: pytest.MonkeyPatch) -> None:
    def core(processor: int) -> str:
        return str(processor % 2)

    monkeypatch.setattr("pdojo.backends.common.cores._core", core)
    assert core_order([3, 2, 1, 0]) == [0, 1, 2, 3]
    assert core_order([0, 2, 3]) == [0, 3, 2]
    assert core_count([0, 2, 3]) == 2


def test_only_equal_machines() -> None:
    def facts(machine: str, **environment: object) -> worker.Facts:
        return worker.Facts(environment, machine, 1, (0,))

    one, other = facts("a", processor="A", llvm="20.1", cpus=[0]), facts("b", processor="A", llvm="20.1", cpus=[0, 1])
    assert common([one, other]) == common([other, one]) == other.environment
    third = facts("c", processor="B", llvm="20.1", cpus=[0])
    with pytest.raises(UsageError) as caught:
        common([one, other, third])
    assert str(caught.value) == (
        "the machines of the cluster differ in 'processor': A on a, B on c; their costs cannot be compared"
    )


@needs_ray
@two_processors
def test_heats(cluster: Cluster) -> None:
    evaluator = OnCluster(cluster, PLAIN)
    told: list[str] = []
    found = evaluator.heat(TimingRequest([*candidates(3), candidate(TEXT.replace("+ x", "? x"))], None, 3), told.append)
    assert [each.evaluation.failure for each in found] == ["", "", "", "CompileError"]
    assert told == ["timing 4 on 2 workers"]
    first, *others = candidates(5)
    found = evaluator.heat(TimingRequest(others, first, 6))
    # Two shares, on a worker each, the first program beside both.
    assert all(len(each.ratios) == 6 for each in found)
    assert len({id(each.other) for each in found}) == 2
    (checked,) = evaluator.heat(TimingRequest([first], None, 3, 1))
    assert checked.evaluation.detail["check"]["reference"] == "plain code"
    facts = cluster.workers
    assert len({f.process for f in facts}) == len({p for f in facts for p in f.processors}) == 2
    local = RuntimeEvaluator(replace(ONE, intrinsics=(DEADLY,)), PLAIN)
    try:
        assert evaluator.settings == local.settings
    finally:
        local.close()
        evaluator.close()


@needs_ray
@two_processors
def test_a_worker_is_killed_in_the_middle(cluster: Cluster) -> None:
    evaluator = OnCluster(cluster, PLAIN)
    victim = cluster.workers[0].process

    def kill() -> None:
        # A worker starts processes with its first job.
        while not children(victim):
            time.sleep(0.01)
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    found = evaluator.heat(TimingRequest(candidates(12), None, 3))
    killer.join()
    assert len(found) == 12
    assert all(each.evaluation.is_ok for each in found)
    assert cluster.lost == 1
    end = time.monotonic() + 60
    while len(cluster.workers) < 2 and time.monotonic() < end:
        time.sleep(0.1)
    processes = [facts.process for facts in cluster.workers]
    assert len(processes) == 2
    assert victim not in processes
    assert not cluster.notes
    evaluator.close()


@needs_ray
@two_processors
def test_workers_that_died_before_are_no_programs_failure(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "ATTEMPTS", 1)
    for facts in cluster.workers:
        os.kill(facts.process, signal.SIGKILL)
    evaluator = OnCluster(cluster, PLAIN)
    found = evaluator.heat(TimingRequest(candidates(3), None, 3))
    assert [each.evaluation.is_ok for each in found] == [True] * 3
    assert cluster.lost == 2
    evaluator.close()


@needs_ray
@two_processors
@pytest.mark.slow
def test_a_program_that_kills_its_worker(cluster: Cluster) -> None:
    evaluator = OnCluster(cluster, PLAIN)
    deadly = candidate(TEXT.replace("64 100 y", "64 25 4:m(deadly) y").replace("{1}", "4*{1}+{2}"))
    good = candidates(7)
    found = [each.evaluation for each in evaluator.heat(TimingRequest([*good[:2], deadly, *good[2:]], None, 3))]
    assert found[2].failure == "WorkerLost"
    assert found[2].detail["message"] == "3 workers of the cluster died over it"
    assert [e.is_ok for e in found] == [True] * 2 + [False] + [True] * 5
    # Which of the two it is shows when each runs alone.
    for one, other in ((deadly, good[0]), (good[0], deadly)):
        (race,) = evaluator.heat(TimingRequest([one], other, 3))
        assert race.other is not None
        assert [race.evaluation.failure, race.other.failure] == [
            "WorkerLost" if each is deadly else "" for each in (one, other)
        ]
    assert cluster.lost == 18
    evaluator.close()


@needs_ray
@two_processors
def test_what_waits_is_stopped(cluster: Cluster) -> None:
    stop = threading.Event()
    OnCluster(cluster, PLAIN, stop=stop).close()
    assert not stop.is_set()
    evaluator = OnCluster(cluster, PLAIN, stop=stop)
    threading.Timer(1.0, stop.set).start()
    with pytest.raises(KeyboardInterrupt):
        deque(evaluator.heat(TimingRequest(candidates(40), None, 3)) for _ in range(1000))
    evaluator.close()
    # Others go on.
    other = OnCluster(cluster, PLAIN)
    assert other.heat(TimingRequest(candidates(1), None, 3))[0].evaluation.is_ok
    other.close()


@needs_ray
def test_mistakes_that_workers_find_are_clear(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = "aarch64-neon" if host().architecture == "x86_64" else "x86-64-avx2"
    with pytest.raises(LoweringError, match=f"machine '{foreign}' is of the architecture"):
        Cluster(connection, replace(machine(foreign), threads=1))
    with pytest.raises(UsageError, match="gives 1000 processors, which the machine 'host' has; the most is"):
        Cluster(connection, replace(ONE, threads=1000))
    other = replace(worker.release(), version="0.0.9")
    monkeypatch.setattr(worker, "release", lambda: other)
    with pytest.raises(UsageError, match=r"has pdojo .*, and the search runs in 0\.0\.9 .*: install the same"):
        Cluster(connection, ONE)
    with pytest.raises(UsageError, match=r"the search runs in 0\.0\.9"):
        connection.host()


@needs_ray
def test_what_ray_says_in_our_words(connection: Connection) -> None:
    def raised() -> None:
        raise ModuleNotFoundError("No module named 'pdojo.search.evaluators.cluster'")

    def failed() -> None:
        raise ZeroDivisionError("no units")

    def refused() -> None:
        raise LoweringError("no such instruction")

    found: list[Exception] = []
    for function in (raised, failed, refused):
        with pytest.raises(connection.ray.exceptions.RayError) as caught:
            connection.ray.get(connection.ray.remote(function).remote())
        found.append(connection.translated(caught.value))
    missing, bug, mistake = found
    assert isinstance(missing, UsageError)
    assert str(missing) == "the cluster at 'local' has a machine without this pdojo: install the same on all machines"
    assert isinstance(bug, RuntimeError)
    assert "ZeroDivisionError: no units" in str(bug)
    assert type(mistake) is LoweringError
    assert str(mistake) == "no such instruction"


@needs_ray
def test_the_host_of_a_cluster(connection: Connection) -> None:
    assert connection.host() == host()


@needs_ray
@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("127.0.0.1:1", "no Ray cluster at '127.0.0.1:1': Connection refused"),
        ("ray://127.0.0.1:1", "no Ray cluster at 'ray://127.0.0.1:1': Connection refused"),
        ("somewhere", "'somewhere' is no address of a Ray cluster: local, auto, HOST:PORT or ray://HOST:PORT"),
    ],
)
def test_no_cluster(address: str, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    with pytest.raises(UsageError) as caught:
        Connection(address)
    assert str(caught.value) == problem
    assert caught.value.exit_code == 2


def test_ray_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> None:
        return None

    monkeypatch.setattr("pdojo.search.evaluators.cluster.connection.find_spec", missing)
    with pytest.raises(UsageError, match=r"needs Ray: pip install 'pdojo\[ray\]'"):
        Connection("local")


@needs_ray
@two_processors
@pytest.mark.slow
@pytest.mark.usefixtures("alone")
def test_a_campaign_whose_driver_is_killed_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    driver = Path(__file__).parents[2] / "cluster_driver.py"
    command = [sys.executable, str(driver), str(path)]
    killed = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 120
    while len(measured(path)) < 12:
        assert killed.poll() is None, killed.communicate()[1]
        assert time.monotonic() < end
        time.sleep(0.02)
    killed.kill()
    workers = [int(word) for word in killed.communicate()[1].split()]
    before = measured(path)
    assert {kernel for kernel, *_ in before} == {"exp", "tanh"}
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert not found["errors"]
    assert found["endings"] == ["the budget of evaluations is used up"] * 2
    assert [[row[0] for row in history] for history in found["histories"]] == [list(range(17))] * 2
    # What was measured before was not measured again, and both kernels were measured to the end.
    after = measured(path)
    assert after[: len(before)] == before
    assert sorted(kernel for kernel, *_ in after) == ["exp"] * 17 + ["tanh"] * 17
    # Workers do not outlive the driver that was killed.
    assert not [process for process in workers if Path(f"/proc/{process}").exists()]


def measured(path: Path) -> list[tuple[str, str, float]]:
    """Kernel, program and time of each measurement in a database, in order."""
    if not path.exists():
        return []
    with Database(path, create=False) as database:
        rows = database.connection.rows(
            "SELECT r.kernel, p.hash, m.measured FROM measurements m JOIN programs p ON p.id = m.program"
            " JOIN (SELECT DISTINCT t.program, q.kernel FROM traces t JOIN problems q ON q.id = t.problem) r"
            " ON r.program = p.id ORDER BY m.id"
        )
    return [(row["kernel"], row["hash"], row["measured"]) for row in rows]
