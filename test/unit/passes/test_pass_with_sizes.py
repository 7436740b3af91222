"""The expert pass, and its verification, for kernels with sizes that callers give."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from pdojo.backends.llvm.executable import compile
from pdojo.dialect.machines.registry import host
from pdojo.dialect.notation.parser import parse_notation
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


def test_verification_finds_a_program_that_is_wrong_for_one_size() -> None:
    (kernel,) = parse_notation(SOFTMAX)
    tuning = make_moves(kernel, host(), None)
    wrong = SOFTMAX.replace("| M s[{0}] += e[{0},{1}]", "| 120 where ({1} < M) s[{0}] += e[{0},{1}]")
    (after,) = parse_notation(wrong)
    judged: Any = SimpleNamespace(game=tuning.game, before=tuning.before, after=after)
    found = verify_moves(judged, limit=1 << 16)
    assert found.fault is not None
    assert "N = 40, M = 128" in found.said
