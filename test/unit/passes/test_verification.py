"""Whether tuned kernels are right is decided exactly, at small sizes with the same moves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.view.build import nest_of
from pdojo.kernels import workload
from pdojo.passes.scheduled_kernel import ScheduledKernel, make_moves
from pdojo.passes.verification import shrink
from pdojo.passes.verification.extent_constraints import ExtentConstraint
from pdojo.passes.verification.shrink import family_of, shrunk
from pdojo.passes.verification.verify import verify_moves
from pdojo.transforms.game import Game
from pdojo.transforms.storage.slots import ReuseDims
from pdojo.transforms.trace import Trace
from sample import sampled


def tuned(name: str, expert: str | None, moves: str = "") -> ScheduledKernel:
    kernel = with_alignment(workload(name).instantiate(), 64)
    return make_moves(kernel, machine("x86-64-avx512"), expert, Trace.parse(moves))


@pytest.mark.parametrize("expert", ["heuristic", "greedy"])
@pytest.mark.parametrize("name", sampled("conv", "matmul_i8"))
def test_every_library_kernel_at_its_default_size(name: str, expert: str) -> None:
    decision = verify_moves(tuned(name, expert), workload(name))
    assert decision.fault is None
    assert decision.is_exact
    assert re.fullmatch(r"exact oracle at reduced sizes \(.*\): the same meaning", decision.said), decision.said


ROWS = """
kernel rows(x) -> (y)
x f32 [{n}, {m}] heap
y f32 [{n}, {m}] heap
e f32 [{n}, {m}] heap

{n} {m} e[{{0}},{{1}}] = exp(x[{{0}},{{1}}])
{n} {m} y[{{0}},{{1}}] = e[{{0}},{{1}}] * 2
"""


def rows(n: int, m: int, *moves: str) -> ScheduledKernel:
    (kernel,) = parse_notation(ROWS.format(n=n, m=m))
    game = Game(kernel, machine("toy"))
    game.apply_all(moves)
    return ScheduledKernel(game)


def test_a_program_of_another_meaning_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule with a hole: the small program has it as well."""

    def nothing(*_: object, **__: object) -> None:
        return None

    monkeypatch.setattr(ReuseDims, "check", nothing)
    monkeypatch.setattr("pdojo.transforms.legality.faults.breach", nothing)
    wrong = rows(4096, 1000, "tile_scope@e:1{size=30}", "reuse_dims@e:0")
    decision = verify_moves(wrong)
    assert decision.said == "exact oracle at reduced sizes (1000 as 100, 4096 as 3): another meaning"
    assert decision.fault is not None
    assert "y[0, 0]" in decision.fault
    assert verify_moves(rows(8, 8, "reuse_dims@e:0")).said == "exact oracle: another meaning"


def test_tiles_keep_their_remainder_and_peeled_parts_their_length() -> None:
    moves = ("peel_scope@e:1{after=960}", "tile_scope@e#0:1{size=24}", "peel_scope@y:0{after=2}")
    tuning = rows(4096, 1000, *moves)
    family = family_of(tuning.before)
    assert family is not None
    small = shrunk(tuning.game, family)
    assert small is not None
    assert small.sizes == {"1000": 112, "4096": 5}
    text = print_notation(small.after)
    # 72 of 112 in tiles: 40 are peeled, as of 1000.
    assert "| 3 24 e[" in text
    assert "| 40 e[" in text
    assert "2 112 y[" in text
    assert "3 112 y[" in text


def test_names_of_sizes_tell_what_indices_do_not() -> None:
    text = (
        "size N = 4096\nsize M = N + 2\n\nkernel windows(x) -> (y)\nx f32 [M] heap\ny f32 [N] heap\n\n"
        "N\n| y[{0}] = 0\n| 3 y[{0}] += x[{0}+{1}]\n"
    )
    (kernel,) = parse_notation(text)
    game = Game(kernel, machine("toy"))
    game.apply_all(["tile_scope@y:0{size=50}", "parallelize@y:0"])
    assert (
        verify_moves(ScheduledKernel(game), text, limit=1000).said
        == "exact oracle at reduced sizes (N 196): the same meaning"
    )
    without = verify_moves(ScheduledKernel(game), limit=1000)
    assert without.said == (
        "exact oracle: not applicable, its sizes cannot be changed; "
        "integer sets find no fault in races, storage, instances, flow"
    )
    assert without.is_exact


def test_statements_that_are_inserted_follow_the_sizes() -> None:
    tuning = tuned("softmax", "heuristic")
    inserted = [step for step in tuning.game.trace.steps if step.move.name == "insert_op"]
    assert "24576" in str(inserted[0].move)
    family = family_of(tuning.before, workload("softmax"))
    assert family is not None
    small = shrunk(tuning.game, family)
    assert small is not None
    assert small.sizes == {"R": 3, "C": 96}
    assert {scope.extent for scope in nest_of(small.before).scopes} == {3, 96}
    assert "s_inverse f32 [3:N]" in print_notation(small.after)


def test_a_trace_of_another_program_is_not_taken_for_the_same() -> None:
    """The moves apply at small sizes, but what they make there is another text: nothing is said about the large one."""
    tuning = tuned("relu_ffn", "heuristic")
    family = family_of(tuning.before, workload("relu_ffn"))
    assert family is not None
    small = shrunk(tuning.game, family)
    assert small is not None
    digits = re.compile(r"\d+")
    assert digits.sub("#", print_notation(small.after)) == digits.sub("#", print_notation(tuning.after))


@pytest.mark.parametrize("extent", [1 << 20, (1 << 20) + 3, 1 << 40])
def test_shares_of_threads_of_a_huge_axis_become_small(extent: int) -> None:
    """Neither the sizes nor the instances are counted one by one."""
    (kernel,) = parse_notation(
        f"kernel mean(x) -> (y)\nx f32 [{extent}] heap\ny f32 [] heap\n\n"
        f"y[] = 0\n{extent} y[] += x[{{0}}]\ny[] = y[] / 1024\n"
    )
    tuning = make_moves(kernel, replace(machine("x86-64-avx512"), threads=2), "heuristic")
    decision = verify_moves(tuning)
    assert decision.is_reduced
    assert re.fullmatch(r"exact oracle at reduced sizes \(\d+ as \d{3}\): the same meaning", decision.said)
    if extent == 1 << 20:
        assert "parallelize" in {step.move.name for step in tuning.game.trace.steps}


def counted_down(most: int, whole: Sequence[int], less: Sequence[int], demands: Sequence[ExtentConstraint]) -> int:
    for steps in range(most, 0, -1):
        smaller = [extent - steps * part for extent, part in zip(whole, less, strict=True)]
        if all(demand.is_met(whole, smaller, 2) for demand in demands):
            return steps
    return 0


def test_the_least_sizes_are_those_of_counting_down() -> None:
    random = Random(1)
    reduced = 0
    for _ in range(2000):
        count = random.randint(1, 4)
        whole, less = ([random.choice(numbers) for _ in range(count)] for numbers in (range(1, 60), (0, 0, 1, 1, 2, 3)))
        demands = [ExtentConstraint((k,), 1) for k in range(count)]
        for _ in range(random.randint(0, 3)):
            scopes = tuple(random.sample(range(count), random.randint(1, min(count, 2))))
            demands.append(ExtentConstraint(scopes, random.choice((0, 2, 3, 4, 8, 16)), random.randint(0, 2)))
        most = random.randint(0, 70)
        found = shrink.most_steps(most, whole, whole, less, demands, 2)
        assert found == counted_down(most, whole, less, demands)
        reduced += found > 0
    assert reduced > 500


HUGE = {
    "one axis": "{n} y[{{0}}] = max(x[{{0}}], 0)",
    "windows": "{n}\n| y[{{0}}] = 0\n| 3 y[{{0}}] += x[{{0}}+{{1}}]",
    "sums": "{n} t[{{0}}] = exp(x[{{0}}])\ns[] = 0\n{n} s[] += t[{{0}}]\n{n} y[{{0}}] = t[{{0}}] / s[]",
}


@pytest.mark.parametrize("name", ["x86-64-avx512", "toy", "snitch", "nvidia-sm90"])
@pytest.mark.parametrize("statements", HUGE.values(), ids=HUGE)
def test_passes_do_not_count_the_iterations_of_an_axis(statements: str, name: str) -> None:
    extent = 1 << 40
    arrays = f"x f32 [{extent + 2}] heap\ny f32 [{extent}] heap\nt f32 [{extent}] heap\ns f32 [] heap\n"
    used = "".join(line for line in arrays.splitlines(keepends=True) if f"{line[0]}[" in statements)
    (kernel,) = parse_notation(f"kernel k(x) -> (y)\n{used}\n{statements.format(n=extent)}\n")
    tuning = make_moves(with_alignment(kernel, 64), machine(name), "heuristic")
    assert verify_moves(tuning).fault is None
