"""The team of threads that pdojo starts itself, called as compiled kernels call it."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from time import sleep

import numpy as np
import pytest

from pdojo.backends.llvm import team as module
from pdojo.backends.llvm.team import Team

Shares = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
Numbers = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@pytest.fixture(params=[1, 2, 5])
def team(request: pytest.FixtureRequest) -> Iterator[Team]:
    """A team with a number of threads, which no other test uses."""
    module.team.cache_clear()
    found = module.team()
    if found is None:
        pytest.skip("pdojo has no team of its own on this system")
    found.ensure(request.param)
    assert found.count == request.param
    yield found
    module.team.cache_clear()


def calls(team: Team) -> tuple[Callable[..., None], Callable[[], int], Callable[[], int], Callable[..., int]]:
    """The functions that begin a region, tell a thread's share and the number of shares, and take pieces."""
    integer, number = ctypes.c_int, ctypes.c_long
    region = ctypes.CFUNCTYPE(None, Shares, ctypes.c_void_p, integer, integer)(team.address("GOMP_parallel"))
    share = ctypes.CFUNCTYPE(integer)(team.address("omp_get_thread_num"))
    shares = ctypes.CFUNCTYPE(integer)(team.address("omp_get_num_threads"))
    pointers = [ctypes.POINTER(number)] * 2
    begin = ctypes.CFUNCTYPE(ctypes.c_bool, number, number, number, number, *pointers)
    proceed = ctypes.CFUNCTYPE(ctypes.c_bool, *pointers)
    first, following = (begin(team.address("GOMP_loop_dynamic_start")), proceed(team.address("GOMP_loop_dynamic_next")))

    def pieces(take: Callable[[int, int], None], start: int, end: int, step: int, chunk: int) -> int:
        low, high = number(), number()
        found = first(start, end, step, chunk, low, high)
        count = 0
        while found:
            take(low.value, high.value)
            count += 1
            found = following(low, high)
        return count

    return region, share, shares, pieces


@pytest.mark.parametrize("threads", [1, 2, 3, 7, 32, 100])
def test_every_share_and_every_piece_runs_once(team: Team, threads: int) -> None:
    """With fewer threads than shares, threads compute several."""
    region, share, shares, pieces = calls(team)
    wanted = min(threads, module.MOST)
    for _ in range(50):
        seen, taken = np.zeros(wanted, np.int64), np.zeros(101, np.int64)

        def work(_: object, seen: Numbers = seen, taken: Numbers = taken) -> None:
            assert shares() == wanted
            seen[share()] += 1

            def take(low: int, high: int) -> None:
                taken[low:high] += 1

            pieces(take, 3, 101, 1, 4)

        region(Shares(work), None, threads, 0)
        assert (seen == 1).all()
        assert (taken == ([0] * 3 + [1] * 98)).all()
    assert (share(), shares()) == (0, 1)


def test_the_caller_computes_the_shares_of_threads_that_come_late(team: Team) -> None:
    region, share, _, _ = calls(team)
    seen: list[int] = []

    def work(_: object) -> None:
        seen.append(share())
        sleep(0.001)

    for _ in range(20):
        del seen[:]
        region(Shares(work), None, 8, 0)
        assert sorted(seen) == [*range(8)]
        sleep(0.002)  # the others fall asleep


def test_regions_of_several_callers_and_regions_inside(team: Team) -> None:
    region, share, shares, _ = calls(team)

    def caller(_: int) -> bool:
        seen: list[int] = []

        def inside(_: object) -> None:
            assert shares() == 3
            seen.append(share())

        def work(_: object) -> None:
            mine = share()
            region(Shares(inside), None, 3, 0)
            assert (share(), shares()) == (mine, 2)

        for _ in range(100):
            region(Shares(work), None, 2, 0)
        return [seen.count(share) for share in range(4)] == [200, 200, 200, 0]

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(caller, range(6)))


@pytest.mark.parametrize("seconds", [0.0, 0.05])
def test_a_process_ends_while_threads_look_for_work_or_sleep(seconds: float) -> None:
    text = f"""
import time, numpy as np, pdojo
(kernel,) = pdojo.parse("kernel k(x) -> (y)\\nx f32 [64] heap\\ny f32 [64] heap\\n\\n64:p y[{{0}}] = x[{{0}}] + 1\\n"),
x = np.ones(64, np.float32)
assert (pdojo.compile(kernel, threads=3)(x) == 2).all()
time.sleep({seconds})
"""
    done = subprocess.run([sys.executable, "-c", text], timeout=60, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("given", "count"), [("3", 3), ("5,2", 5), ("", None), ("0", None), ("many", None)])
def test_default_number_of_threads(given: str, count: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    assert Team({}).max_threads() == (count or len(os.sched_getaffinity(0)))


def test_threads_are_bound_if_the_environment_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    module.team.cache_clear()
    own = module.team()
    if own is None:
        pytest.skip("pdojo has no team of its own on this system")
    monkeypatch.setenv("OMP_PROC_BIND", "true")
    allowed, before = os.sched_getaffinity(0), {*os.listdir("/proc/self/task")}
    own.ensure(3)
    started = {*os.listdir("/proc/self/task")} - before
    assert len(started) == 2
    assert all(len(os.sched_getaffinity(int(thread))) == 1 for thread in started)
    assert os.sched_getaffinity(0) == allowed
    module.team.cache_clear()
