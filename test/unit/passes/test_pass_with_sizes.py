"""The expert pass, and its verification, for kernels with sizes that callers give."""

from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.llvm.executable import compile
from pdojo.backends.measure.arrays import random_inputs
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.machines.registry import host
from pdojo.dialect.notation.parser import parse_notation
from pdojo.dialect.view.build import nest_of
from pdojo.kernels import Workload, workload
from pdojo.kernels.reference import numpy_reference
from pdojo.passes.scheduled_kernel import make_moves
from pdojo.passes.verification.verify import verify_moves

SOFTMAX = """\
kernel softmax(x) -> (y)
size N in 1..40
size M in 8..128 multiple 8
x f32 [N, M] heap
y f32 [N, M] heap
m f32 [N] heap
e f32 [N, M] heap
s f32 [N] heap

N
| m[{0}] = -inf
| M m[{0}] max= x[{0},{1}]
N M e[{0},{1}] = x[{0},{1}] - m[{0}]
N M e[{0},{1}] = exp(e[{0},{1}])
N
| s[{0}] = 0
| M s[{0}] += e[{0},{1}]
N M y[{0},{1}] = e[{0},{1}] / s[{0}]
"""


def test_one_program_of_the_pass_serves_all_sizes() -> None:
    (kernel,) = parse_notation(SOFTMAX)
    tuning = make_moves(kernel, host(), "heuristic")
    assert len(tuning.game.trace.steps) > 10
    found = verify_moves(tuning)
    assert found.fault is None
    assert "at N = 1, M = 8; N = 4, M = 32" in found.said
    program = compile(tuning.after, host(), threads=2)
    for rows, columns in ((1, 8), (7, 16), (40, 128), (33, 120)):
        x = np.random.default_rng().standard_normal((rows, columns)).astype(np.float32) * 9
        found_y: Any = program(x)
        wanted = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
        np.testing.assert_allclose(found_y, wanted / wanted.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("spec", "shapes"),
    [
        # The last shape has work for several threads.
        ("matmul:1..128x1..96x80", [(1, 1), (5, 7), (6, 96), (13, 33), (128, 96)]),
        ("matmul:9x1..96x1..80", [(1, 1), (7, 16), (33, 17), (96, 80)]),
        ("layernorm:1..300x1..70", [(1, 1), (3, 16), (17, 33), (300, 70)]),
        ("colsum:1..300x1..70", [(1, 1), (3, 16), (17, 33), (300, 70)]),
        ("conv:1x2x3x3..20x3..20x3", [(3, 3), (4, 20), (19, 7)]),
        # Memory of each thread.
        ("conv_transpose:16x8x4..64x1..40x32", [(4, 1), (33, 7)]),
        # Masked stores at places that depend on the size.
        ("argmin:64x8..128/8", [(8,), (72,)]),
        # Lanes, and squares that are transposed in registers, at distances that depend on sizes.
        ("transpose:1..300x1..300", [(1, 1), (16, 32), (33, 70), (300, 300)]),
        ("transpose:8..128/8x1..90", [(8, 16), (72, 90)]),
    ],
)
def test_library_kernels_at_ranges(spec: str, shapes: list[tuple[int, ...]]) -> None:
    wanted = workload(spec)
    tuned = make_moves(wanted.instantiate(), host(), "heuristic").after
    lanes = [scope for scope in nest_of(tuned).scopes if scope.mapping is Mapping.VECTOR]
    # Whole tiles have no masks.
    assert any(not scope.guard for scope in lanes)
    program = compile(tuned, host(), threads=2)
    ranged = [name for name, value in wanted.given if isinstance(value, range)]
    for shape in shapes:
        given = {**dict(wanted.given), **dict(zip(ranged, shape, strict=True))}
        constant = Workload(wanted.kernel, tuple(given.items()))
        inputs = random_inputs(parameters_of(nest_of(constant.instantiate())), Random().randrange(1 << 30))
        found: Any = program(**inputs)
        (expected,) = numpy_reference(constant)(*inputs.values())
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4)


def test_verification_finds_a_program_that_is_wrong_for_one_size() -> None:
    (kernel,) = parse_notation(SOFTMAX)
    tuning = make_moves(kernel, host(), None)
    wrong = SOFTMAX.replace("| M s[{0}] += e[{0},{1}]", "| 120 where ({1} < M) s[{0}] += e[{0},{1}]")
    (after,) = parse_notation(wrong)
    judged: Any = SimpleNamespace(game=tuning.game, before=tuning.before, after=after)
    found = verify_moves(judged, limit=1 << 16)
    assert found.fault is not None
    assert "N = 40, M = 128" in found.said


def test_blocks_of_rests_have_no_guards_inside() -> None:
    """Columns of a product become panels of ever fewer whole vectors; only lanes of the last one are masked."""
    kernel = workload("bmm:1..4x9..64x64x1..256").instantiate()
    after = nest_of(make_moves(kernel, host(), "heuristic").after)
    sums = [leaf for leaf in after.leaves if leaf.accumulate is not None]
    assert len(sums) > 4
    for leaf in sums:
        block = [s for s in leaf.chain if s.mapping in (Mapping.UNROLL, Mapping.VECTOR)]
        assert block
        assert all(not scope.guard for scope in block[:-1])


def test_a_row_and_its_rest_have_one_place_of_partial_results() -> None:
    kernel = workload("softmax:1..64x1..512").instantiate()
    after = nest_of(make_moves(kernel, host(), "heuristic").after)
    for name in ("m", "s"):
        assert len([leaf for leaf in after.writers[name] if leaf.accumulate is not None]) == 1


@pytest.mark.parametrize("factor", ["128, N", "N, 128"])
def test_constants_whose_extents_are_sizes_are_packed_by_each_call(factor: str) -> None:
    """They cannot be packed at binding; once, no block was made, and the sum stayed scalar."""
    index = "{2},{1}" if factor == "128, N" else "{1},{2}"
    text = f"""\
kernel k(x, w) -> (y)
size N in 2..96
x f32 [24, 128] heap align 64
w f32 [{factor}] heap const align 64
y f32 [24, N] heap align 64
t f32 [24:N, N:N, 128:N] stack

24 N
| y[{{0}},{{1}}] = 0
| 128
| | t[{{0}},{{1}},{{2}}] = x[{{0}},{{2}}] * w[{index}]
| | y[{{0}},{{1}}] += t[{{0}},{{1}},{{2}}]
"""
    (kernel,) = parse_notation(text)
    tuning = make_moves(kernel, host(), "heuristic")
    assert verify_moves(tuning).fault is None
    sums = [leaf for leaf in nest_of(tuning.after).leaves if leaf.accumulate is not None]
    assert all(any(s.mapping is Mapping.VECTOR for s in leaf.chain) for leaf in sums)
