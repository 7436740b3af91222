"""An operator of your own: described as in NumPy, tuned for this processor, called on NumPy arrays.

python examples/numpy_operator.py
"""

from __future__ import annotations

import numpy as np

import pdojo
from pdojo import build

ROWS, COLUMNS = 64, 256


def gated_norm() -> object:
    """The operator as a kernel: rows are normalised, scaled, and multiplied with a gate."""
    x = build.input("x", "f32", (ROWS, COLUMNS))
    gate = build.input("gate", "f32", (ROWS, COLUMNS))
    scale = build.input("scale", "f32", (COLUMNS,))
    return build.kernel("gated_norm", [x, gate, scale], [build.rms_norm(x, scale, axis=-1) * build.silu(gate)])


def expected(x: np.ndarray, gate: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """The operator in NumPy, in float64."""
    x, gate = x.astype(np.float64), gate.astype(np.float64)
    normal = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5) * scale
    return normal * gate / (1 + np.exp(-gate))


def main() -> None:
    """Tune, call, compare."""
    tuned = pdojo.tune(gated_norm(), threads=1)
    print(tuned)
    call = tuned.compile()
    rng = np.random.default_rng(0)
    shapes = (ROWS, COLUMNS), (ROWS, COLUMNS), (COLUMNS,)
    arrays = [pdojo.aligned(rng.normal(size=shape).astype(np.float32)) for shape in shapes]
    error = np.abs(call(*arrays) - expected(*arrays)).max()
    assert error < 1e-4, error
    print("the largest difference from NumPy is below 1e-4")


if __name__ == "__main__":
    main()
