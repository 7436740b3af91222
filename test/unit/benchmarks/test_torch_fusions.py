"""The functions of PyTorch of the benchmark: what the seed gives, and right numbers at small sizes."""

# PyTorch need not be installed, and its functions take anything.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from math import prod

import pytest

torch = pytest.importorskip("torch", reason="the functions are PyTorch's")

from benchmarks.torch_fusions import BYTES, COUNT, FILE, SEED, Fusion, draw, fusions, text_of  # noqa: E402
from benchmarks.torch_turns import EAGER, INDUCTOR, OURS, Case, error_of, is_correct, measure, ratio  # noqa: E402

SMALL = [str(fusion) for fusion in fusions()[::12]]


def test_the_functions_are_those_of_the_seed() -> None:
    assert FILE.read_text(encoding="utf-8") == text_of(SEED)
    assert draw(SEED + 1) != fusions()
    assert len(fusions()) == COUNT


def test_functions_are_within_the_bounds() -> None:
    for fusion in fusions():
        shapes = fusion.shapes()
        result = fusion(*[torch.empty(shape, device="meta") for shape in shapes])
        assert BYTES[0] <= 4 * sum(map(prod, [*shapes, tuple(result.shape)])) <= BYTES[1]
        assert Fusion.of(str(fusion)) == fusion


@pytest.mark.parametrize("line", SMALL)
def test_small_functions_are_right(line: str) -> None:
    fusion = Fusion.of(line)
    small = fusion.with_sizes({name: min(size, 6) for name, size in fusion.sizes.items()})
    found = measure(Case(small, tuple(small.arguments())), (EAGER, OURS), rounds=0)
    assert is_correct(found), found


def test_errors_and_ratios() -> None:
    found = {
        "scale": 1.0,
        "errors": {OURS: 3e-5, EAGER: 1e-5},
        "samples": {OURS: [1.0, 2.0, 4.0], EAGER: [2.0, 2.0, 2.0]},
    }
    assert not is_correct(found)
    assert is_correct(found | {"errors": {OURS: 2e-5, EAGER: 1e-5}})
    assert not is_correct(found | {"errors": {EAGER: 1e-5}})
    assert ratio(found, EAGER) == 1.0
    assert ratio(found, INDUCTOR) is None


def test_a_result_with_other_infinities_is_wrong() -> None:
    x = torch.tensor([1.0, float("inf"), float("nan")], dtype=torch.float64)
    assert error_of([x], [x]) == 0
    assert error_of([x.nan_to_num()], [x]) == float("inf")
    assert error_of([torch.cat((x[:1], -x[1:]))], [x]) == float("inf")
