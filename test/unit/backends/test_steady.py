"""Steady timing: candidates on a clock of their own, of which no time passes but that of their calls and of waiting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

import pytest
from pdojo_tools.tables import timing_notes

from pdojo.backends.measure import Ok, Options, Steady, WrongResult, fingerprint
from pdojo.backends.measure.outcome import outcome_from_json
from pdojo.backends.measure.session import steady_of
from pdojo.backends.measure.steady import APART, BatchCaller, plain_loop, warm_up
from pdojo.backends.measure.timing import Timed, take_samples
from pdojo.dialect.machines.registry import host
from pdojo.errors import UsageError
from pdojo.kernels import workload

QUIET = Options(samples=25, budget=2.0, steady=True)


@dataclass
class Machine:
    """A clock, and a processor that was called `awake` times since it rested."""

    now: int = 0
    awake: int = 0

    def clock(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += round(seconds * 1e9)
        if seconds > 0:
            self.awake = 0


@dataclass
class Candidate:
    """A candidate whose calls take what `seconds` says of the number of calls since the processor rested."""

    machine: Machine
    seconds: Callable[[int], float]
    calls: int = 0
    events: list[str] = field(default_factory=list[str])

    def __call__(self) -> None:
        self.machine.now += round(self.seconds(self.machine.awake) * 1e9)
        self.machine.awake += 1
        self.calls += 1

    def announce(self) -> None:
        self.events.append("announced")

    def prepare(self) -> None:
        self.events.append("prepared")

    def caller(self, batch: int = 1) -> BatchCaller:
        return BatchCaller(iter(lambda: self, None), batch, self.prepare, self.announce, self.machine.clock)

    def timed(self) -> Timed:
        return Timed([self], self.prepare, clock=self.machine.clock, sleep=self.machine.sleep)


def slow_at_first(calls: int) -> Callable[[int], float]:
    """The relu of an Intel processor: 5.4 ms for some calls after a rest, 2.8 ms from there on."""
    return lambda number: 5.4e-3 if number < calls else 2.8e-3


def never_settling(number: int) -> float:
    """Calls of 12 ms, of which every second one takes half as long again."""
    return 12e-3 * (1.5 if number % 2 else 1.0)


def measured(candidate: Candidate, options: Options = QUIET) -> Timed:
    timed = candidate.timed()
    take_samples([timed], options, lambda _: None)
    return timed


# The warm-up


def test_a_warm_up_outlasts_calls_that_are_slow_at_first() -> None:
    candidate = Candidate(Machine(), slow_at_first(20))
    found = warm_up(candidate.caller())
    assert found.is_steady
    assert found.first == pytest.approx(5.4e-3)
    # The last two windows are of fast calls only.
    assert candidate.calls >= 20 + 2 * 4
    assert found.calls == candidate.calls
    assert found.seconds == pytest.approx(20 * 5.4e-3 + (found.calls - 20) * 2.8e-3)


def test_agreement_at_once_is_not_believed() -> None:
    """All windows of a processor that is still slow agree."""
    candidate = Candidate(Machine(), lambda _: 5.4e-3)
    found = warm_up(candidate.caller())
    assert found.is_steady
    assert found.calls >= 20
    assert 20 * 5.4e-3 <= found.seconds < 23 * 5.4e-3
    short = warm_up(Candidate(Machine(), lambda _: 3e-6).caller(batch=70))
    assert short.is_steady
    assert 0.1 <= short.seconds < 0.12


def test_a_warm_up_that_never_settles_ends() -> None:
    machine = Machine()
    found = warm_up(Candidate(machine, never_settling).caller())
    assert not found.is_steady
    assert 0.4 <= found.seconds < 0.45
    assert found.seconds == pytest.approx(machine.now * 1e-9)


@pytest.mark.parametrize(("seconds", "calls"), [(0.3, 2), (5.0, 1), (0.15, 2), (0.09, 3), (0.03, 7), (0.012, 17)])
def test_slow_calls_are_few(seconds: float, calls: int) -> None:
    found = warm_up(Candidate(Machine(), lambda _: seconds).caller())
    assert (found.calls, found.is_steady) == (calls, True)


def test_slow_calls_that_differ_are_few_too() -> None:
    machine = Machine()
    found = warm_up(Candidate(machine, lambda number: 0.39 * (1 + number % 2)).caller())
    assert (found.calls, found.is_steady) == (3, False)


@pytest.mark.parametrize("apart", [0.029, 0.031])
def test_windows_agree_within_three_percent(apart: float) -> None:
    found = warm_up(Candidate(Machine(), lambda number: 0.02 * (1 + apart * (number % 2))).caller())
    assert found.is_steady == (apart < 0.03)


def test_long_warm_ups_are_announced_rarely_and_arrays_restored() -> None:
    """A limit of time is one between announcements, each of which wakes another process."""
    candidate = Candidate(Machine(), lambda number: 0.4 * (1 + number % 2))
    found = warm_up(candidate.caller())
    assert candidate.events.count("announced") == found.calls - 1
    quick = Candidate(Machine(), never_settling)
    found = warm_up(quick.caller())
    assert 1 <= quick.events.count("announced") <= found.seconds / APART
    assert quick.events.count("prepared") > 10


# Samples


@pytest.mark.parametrize("seconds", [2e-6, 1e-4, 3e-3, 0.3])
def test_samples_of_a_candidate_that_wakes_up(seconds: float) -> None:
    """The first calls after each pause are twice as slow, whether there are many or one."""
    rested = max(1, round(0.04 / seconds))
    candidate = Candidate(Machine(), lambda number: seconds * (1 + (number < rested)))
    timed = measured(candidate)
    assert median(timed.samples) == pytest.approx(seconds)
    assert max(timed.samples) == pytest.approx(seconds)
    assert timed.loop == pytest.approx(seconds)
    found = steady_of(timed)
    assert found is not None
    assert found.first == pytest.approx(2 * seconds)
    assert found.unsteady == 0
    assert found.warm_up == median(each.seconds for each in timed.warm_ups)
    # One warm-up for each sample that counts.
    assert len(timed.warm_ups) == len(timed.samples)


def test_without_warm_ups_the_same_candidate_looks_slow() -> None:
    """What this is for."""
    candidate = Candidate(Machine(), slow_at_first(20))
    timed, other = candidate.timed(), Candidate(candidate.machine, lambda _: 1e-3).timed()
    take_samples([timed, other], Options(), lambda _: None)
    assert median(timed.samples) == pytest.approx(5.4e-3)
    assert (timed.loop, timed.warm_ups, steady_of(timed)) == (None, [], None)
    take_samples([timed, other], QUIET, lambda _: None)
    assert median(timed.samples) == pytest.approx(2.8e-3)


def test_races_never_rest() -> None:
    """Instead of a pause, a program is called for 5 ms, or at least as often as in the sample."""
    machine = Machine()
    slow, short = Candidate(machine, slow_at_first(20)), Candidate(machine, lambda _: 1e-4)
    timed = [slow.timed(), short.timed()]
    take_samples(timed, Options(samples=45, budget=2.0, even=True), lambda _: None)
    assert [len(each.samples) for each in timed] == [45, 45]
    assert timed[0].samples == pytest.approx([2.8e-3] * 45)
    assert timed[1].samples == pytest.approx([1e-4] * 45)
    assert slow.calls >= 45 * 3
    assert short.calls >= 45 * 52


def test_a_candidate_that_never_settles_is_measured_all_the_same() -> None:
    timed = measured(Candidate(Machine(), never_settling))
    found = steady_of(timed)
    assert found is not None
    assert found.unsteady == len(timed.samples) >= 3


@pytest.mark.parametrize("seconds", [1e-6, 1e-4, 1e-3, 0.02, 0.3])
def test_the_time_of_a_row_is_bounded(seconds: float) -> None:
    """By the budget, a pause for each sample, two tries and the plain loop; of slow calls by their number."""
    machine = Machine()
    candidate = Candidate(machine, lambda _: seconds)
    timed = measured(candidate)
    assert 3 <= len(timed.samples) <= 25
    longest = 2.0 + 0.03 * 28 + 2 * 0.25 + 1.1 if seconds < 0.1 else 20 * seconds
    assert machine.now * 1e-9 <= longest
    assert candidate.calls >= 5


def test_all_candidates_are_treated_alike() -> None:
    machine = Machine()
    candidates = [Candidate(machine, lambda number, n=n: n * 1e-3 * (2 - (number > 15))) for n in (1, 2, 3)]
    timed = [candidate.timed() for candidate in candidates]
    order: list[int] = []
    take_samples(timed, QUIET, order.append)
    for n, each in zip((1, 2, 3), timed, strict=True):
        assert median(each.samples) == pytest.approx(n * 1e-3)
        assert each.loop == pytest.approx(n * 1e-3)
    # The plain loops come last, one after the other; the last one is announced again after 100 ms.
    assert order[-4:] == [0, 1, 2, 2]


def test_a_limit_is_for_all_subjects_together() -> None:
    """No turn begins after it; who was not even calibrated by half of it has no samples."""
    machine = Machine()
    slow = [Candidate(machine, lambda _: 0.3).timed() for _ in range(6)]
    take_samples(slow, Options(samples=45, budget=2.0, even=True, total=2.0), lambda _: None)
    assert machine.now * 1e-9 <= 2 * 2.0
    counts = [len(each.samples) for each in slow]
    assert counts[0] == counts[1] > 0
    assert counts[-1] == 0
    machine = Machine()
    quick = [Candidate(machine, lambda _: 0.01).timed() for _ in range(6)]
    take_samples(quick, Options(samples=45, budget=2.0, even=True, total=2.0), lambda _: None)
    assert machine.now * 1e-9 <= 2.2
    assert {len(each.samples) for each in quick} == {len(quick[0].samples)}
    assert len(quick[0].samples) >= 9


@pytest.mark.parametrize("seconds", [0.001, 0.1, 1.0])
def test_the_plain_kernel_is_timed_briefly(seconds: float) -> None:
    """At most as long as the others together unless once is longer, in turns that they share."""
    machine = Machine()
    plain, one, other = (Candidate(machine, lambda _, s=s: s) for s in (seconds, 2e-3, 1e-3))
    timed = [plain.timed(), one.timed(), other.timed()]
    timed[0].is_brief = True
    take_samples(timed, Options(samples=15, steady=True, total=3.0, brief=True), lambda _: None)
    assert 1 <= len(timed[0].samples) <= 5
    longest = sum(len(each.samples) * (each.lasts + each.settle) for each in timed[1:])
    assert len(timed[0].samples) == 1 or len(timed[0].samples) * (timed[0].lasts + timed[0].settle) <= longest
    assert len(timed[1].samples) > 5
    assert timed[0].loop is None
    assert set(timed[0].turns) <= set(timed[1].turns)
    assert timed[1].turns == timed[2].turns


# The plain loop


def test_a_plain_loop_is_a_median_of_calls() -> None:
    machine = Machine()
    candidate = Candidate(machine, slow_at_first(20))
    # The slow calls are the fewer.
    assert plain_loop(candidate.caller()) == pytest.approx(2.8e-3)
    assert candidate.calls >= 50
    assert machine.now >= 0.1e9


@pytest.mark.parametrize(("seconds", "least", "most"), [(1e-3, 100, 101), (0.01, 50, 51), (0.3, 4, 4), (2.0, 1, 1)])
def test_a_plain_loop_is_bounded(seconds: float, least: int, most: int) -> None:
    candidate = Candidate(Machine(), lambda _: seconds)
    assert plain_loop(candidate.caller()) == pytest.approx(seconds)
    assert least <= candidate.calls <= most


# Outcomes


def outcome(loop: float, unsteady: int = 0) -> Ok:
    return Ok((1.0, 1.0, 1.0), 1, 1, 0.0, 0.0, None, {}, Steady(1.5, loop, 0.1, unsteady))


def test_a_loop_confirms_within_ten_percent() -> None:
    assert [outcome(loop).is_confirmed for loop in (0.89, 0.91, 1.0, 1.09, 1.11)] == [False, True, True, True, False]
    assert outcome(1.25).loop_call == 1.25
    assert outcome(1.25).first_call == 1.5
    plain = Ok((1.0,), 1, 1, 0.0, 0.0, None)
    assert (plain.is_confirmed, plain.loop_call, plain.first_call) == (True, None, None)


def test_notes_name_the_rows() -> None:
    named = [("ours", outcome(1.0)), ("theirs", outcome(1.24)), ("slow", outcome(0.8)), ("broken", WrongResult("no"))]
    assert timing_notes(named) == ["a plain loop differs by more than 10% from the samples: theirs (+24%), slow (-20%)"]
    assert timing_notes([("ours", outcome(1.0, unsteady=1))]) == []
    assert timing_notes([("ours", outcome(1.0, unsteady=2))]) == [
        "calls did not become steady before most samples: ours"
    ]


def test_outcomes_are_stored_with_them() -> None:
    assert outcome_from_json(outcome(1.2).to_json()) == outcome(1.2)
    older = outcome(1.2).to_json()
    del older["steady"]
    assert outcome_from_json(older) == Ok((1.0, 1.0, 1.0), 1, 1, 0.0, 0.0, None)
    with pytest.raises(ValueError, match="not an outcome"):
        outcome_from_json({**older, "steady": {"loop": 1.0}})


def test_steady_measurements_have_fingerprints_of_their_own() -> None:
    kernel = workload("add:8x16").instantiate()
    one, other = (fingerprint(kernel, host(), Options(steady=steady)) for steady in (False, True))
    assert one != other


def test_races_are_not_steady() -> None:
    with pytest.raises(UsageError, match="leave out 'steady'"):
        Options(steady=True, even=True)
