"""Variants of an expert pass: which are timed, which one wins, and what is remembered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from pdojo_tools.tuning.console_reporter import raced_text

from pdojo.dialect.alignment import ALIGNMENT
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.machines.measured import CopyRate, ProcessorMeasurements
from pdojo.dialect.machines.registry import machine
from pdojo.kernels import workload
from pdojo.passes.common.parameters import ParameterValues, TuningParameters
from pdojo.passes.scheduled_kernel import ScheduledKernel, make_moves
from pdojo.search.contract.evaluation import Candidate, Evaluation, Listener
from pdojo.search.contract.racing import Race, TimingRequest
from pdojo.search.database import Database, Problem
from pdojo.search.database.decisions import DecisionMemory, kind_of
from pdojo.search.tuning import variants
from pdojo.search.tuning.variants import MOST, Raced, VariantRace
from pdojo.transforms.game import Game
from search_games import Weather

MACHINE = machine("x86-64-avx512")


def remake(name: str) -> Callable[[ParameterValues | None], ScheduledKernel]:
    kernel = with_alignment(workload(name).instantiate(), ALIGNMENT)
    return lambda decisions: make_moves(kernel, MACHINE, "heuristic", None, decisions)


class Memory(Weather):
    """A machine on which stores past the caches cost, and prefetching 1 KiB ahead gains."""

    def true_time(self, text: str) -> float:
        return 1.0 * (1.3 if "nontemporal" in text else 1.0) * (0.8 if "prefetch(1024)" in text else 1.0)


def run(
    name: str, timing: Weather, database: Database | None = None, *, again: bool = False, seconds: float = 60.0
) -> Raced:
    make = remake(name)
    first = make(None)
    memory = None
    if database is not None:
        start = first.game.fork()
        start.become([])
        memory = DecisionMemory(database.memory(Problem.of(start), timing), start.program.nest)
    return VariantRace(make, timing, memory, seconds=seconds).run(again=again)


def test_choices_have_one_answer_wherever_it_is_possible() -> None:
    choices = TuningParameters({"a": "2", "c": "x"})
    assert [choices.choose("a", "12"), choices.choose("a", "34"), choices.choose("b", "12")] == ["2", "3", "1"]
    assert choices.choose("d", ["only"]) == "only"
    assert [(c.question, c.options, c.taken, c.others) for c in choices.made] == [
        ("a", ("1", "2", "3", "4"), "2", ("1", "3", "4")),
        ("b", ("1", "2"), "1", ("2",)),
    ]


def test_the_pass_leaves_open_what_only_large_kernels_need() -> None:
    assert {c.question for c in remake("softmax:24576x512")(None).choices} >= {"stores", "prefetch", "prefetch in"}
    assert not {"stores", "prefetch"} & {c.question for c in remake("softmax:64x512")(None).choices}


@pytest.mark.parametrize(("rows", "stores"), [(2048, "past the caches"), (2040, "plain")])
def test_measurements_hold_at_their_own_footprint(rows: int, stores: str) -> None:
    """The arrays of 2048 rows have 32 MiB, as those of the measurement have."""
    rates = [(1 << 20, 80e9, 40e9), (32 << 20, 20e9, 30e9)]
    copies = [
        CopyRate(2, footprint, nontemporal=past, streams=1, rate=rate)
        for footprint, *both in rates
        for past, rate in zip((False, True), both, strict=True)
    ]
    described = replace(machine("x86-64-avx2"), threads=2, measured=ProcessorMeasurements(copy=tuple(copies)))
    kernel = with_alignment(workload(f"relu:{rows}x2048").instantiate(), ALIGNMENT)
    made = make_moves(kernel, described, "heuristic")
    assert [c.taken for c in made.choices if c.question == "stores"] == [stores]


def test_answers_change_the_program_and_nothing_else() -> None:
    make = remake("relu:4096x4096")
    plain, past = (make({"stores": answer}) for answer in ("plain", "past the caches"))
    assert [str(m) for m in past.game.trace.moves[: len(plain.game.trace.moves)]] == list(
        map(str, plain.game.trace.moves)
    )
    assert {c.taken for c in plain.choices} >= {"plain"}


def test_the_best_answers_win_together() -> None:
    found = run("softmax:24576x512", Memory(noise=0.01))
    assert found.best.decisions == {"stores": "plain", "prefetch": "1024"}
    assert found.gain == pytest.approx(1.3 / 0.8, rel=0.05)
    assert len({v.candidate.fingerprint for v, _ in found.others} | {found.start.candidate.fingerprint}) == (
        len(found.others) + 1
    )
    assert len(found.others) < MOST


def test_the_first_variant_stays_unless_another_one_is_faster() -> None:
    class Even(Weather):
        def true_time(self, text: str) -> float:
            return 1.0

    found = run("relu:4096x4096", Even(noise=0.05))
    assert found.best is found.start
    assert (found.gain, found.best.decisions) == (1.0, {})


def test_a_variant_that_fails_does_not_win() -> None:
    class Failing(Memory):
        def outcome(self, candidate: Candidate, inputs: int | None) -> Evaluation | None:
            failed = "nontemporal" not in candidate.program.text
            return Evaluation.failed("Crash", {"kind": "Crash"}) if failed else None

    found = run("softmax:24576x512", Failing(noise=0.01))
    assert found.best.decisions == {"prefetch": "1024"}


def test_a_busy_machine_decides_and_remembers() -> None:
    with Database.in_memory() as database:
        busy = run("relu:4096x4096", Memory(drift=0.25, noise=0.05, load=1.5), database)
        assert busy.best.decisions == {"stores": "plain", "prefetch": "1024"}
        assert busy.race is not None
        assert busy.race.won
        assert run("relu:4096x4096", Memory(drift=0.25, noise=0.05), database).others == ()


def test_what_is_undecided_is_said_and_remembered() -> None:
    class Even(Weather):
        def true_time(self, text: str) -> float:
            return 1.0

    with Database.in_memory() as database:
        found = run("relu:4096x4096", Even(noise=0.05), database)
        assert found.best is found.start
        assert found.race is None
        assert found.undecided
        assert "the first stays" in raced_text(found)
        assert run("relu:4096x4096", Even(noise=0.05), database).others == ()


def test_a_race_without_time_is_not_remembered() -> None:
    class Cut(Memory):
        def heat(self, wanted: TimingRequest, listener: Listener | None = None) -> list[Race]:
            return super().heat(replace(wanted, rounds=1), listener)

    with Database.in_memory() as database:
        found = run("relu:4096x4096", Cut(noise=0.01), database)
        assert found.best is found.start
        assert found.undecided
        assert "too few to decide" in raced_text(found)
        assert run("relu:4096x4096", Memory(noise=0.01), database).race is not None


def test_all_stages_share_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """No heat may take longer than is left, and the answers that won have some left for their race."""

    class Slow(Memory):
        """Turns take as long as they may."""

        def heat(self, wanted: TimingRequest, listener: Listener | None = None) -> list[Race]:
            assert wanted.seconds is not None
            granted.append(wanted.seconds)
            return super().heat(wanted, listener)

    granted: list[float] = []
    monkeypatch.setattr(variants, "perf_counter", lambda: sum(granted))
    found = run("relu:4096x4096", Slow(noise=0.01), seconds=8.0)
    assert 4.0 < sum(granted) <= 8.0
    assert len(granted) >= 4
    assert found.best.decisions == {"stores": "plain", "prefetch": "1024"}


def test_two_kernels_of_a_kind_are_both_remembered() -> None:
    with Database.in_memory() as database:
        for name in ("relu:4096x4096", "relu:4096x4000"):
            assert run(name, Memory(noise=0.01), database).others
        for name in ("relu:4096x4096", "relu:4096x4000"):
            assert not run(name, Memory(noise=0.01), database).others


def test_when_the_time_is_up_the_races_so_far_decide() -> None:
    found = run("softmax:24576x512", Memory(noise=0.01), seconds=0.0)
    assert not found.others, "no time to make variants"
    assert found.best is found.start


def test_what_won_is_remembered_for_the_kernel_and_its_kind() -> None:
    with Database.in_memory() as database:
        first = run("relu:4096x4096", Memory(noise=0.01), database)
        assert first.best.decisions == {"stores": "plain", "prefetch": "1024"}
        again = Memory(noise=0.01)
        second = run("relu:4096x4096", again, database)
        assert (second.best.decisions, second.others, again.heats) == (first.best.decisions, (), [])
        # Another size of the kind starts from the answers, and races.
        other = run("relu:4096x4000", Memory(noise=0.01), database)
        assert other.start.decisions == first.best.decisions
        assert other.best is other.start
        assert other.others
        # On request it races again; a machine that changed its mind is believed.
        changed = run("relu:4096x4000", Weather(), database, again=True)
        assert changed.others


def test_decisions_of_unknown_questions_are_left_out() -> None:
    with Database.in_memory() as database:
        timing = Memory(noise=0.01)
        start = remake("relu:4096x4096")(None).game.fork()
        start.become([])
        memory = DecisionMemory(database.memory(Problem.of(start), timing), start.program.nest)
        memory.keep({"stores": "sideways", "colour": "red"}, 2.0)
        assert run("relu:4096x4096", timing, database, again=True).start.decisions == {}


def test_the_kind_of_a_kernel() -> None:
    def kind(name: str) -> str:
        return kind_of(Game(workload(name).instantiate(), MACHINE).program.nest)

    assert kind("relu:4096x4096") == kind("relu:4000x4100")
    assert len({kind("relu:4096x4096"), kind("relu:64x64"), kind("exp:4096x4096"), kind("softmax:4096x4096")}) == 4
