"""JAX functions, through StableHLO and linalg, optimised by the CPU's pass and run, give JAX's results."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import pdojo

PROGRAMS = "softmax layernorm mlp relu_mlp attention conv pool pieces mixed batched".split()

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None or importlib.util.find_spec("jaxlib") is None,
    reason="needs JAX, whose functions are compiled",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("jax")
    script = Path(__file__).parents[2] / "jax_scripts/programs.py"
    subprocess.run([sys.executable, str(script), str(made)], check=True, capture_output=True, text=True)
    return made


def test_every_program_is_written(folder: Path) -> None:
    assert sorted(path.stem for path in folder.glob("*.mlir")) == sorted(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_results(name: str, folder: Path) -> None:
    data = np.load(folder / f"{name}.npz")
    arguments = [data[f"x{k}"] for k in range(sum(key.startswith("x") for key in data.files))]
    expected = [data[f"y{k}"] for k in range(sum(key.startswith("y") for key in data.files))]
    kernel = pdojo.load(folder / f"{name}.mlir")
    for each in (kernel, pdojo.tune(kernel, align=1, measure=False).kernel):
        found: Any = pdojo.run(each, *arguments)
        results = cast("tuple[Any, ...]", found if isinstance(found, tuple) else (found,))
        for have, want in zip(results, expected, strict=True):
            assert have.shape == want.shape
            assert have.dtype == want.dtype
            rtol = 2e-3 if want.dtype == np.float16 else 1e-5
            np.testing.assert_allclose(have, want, rtol=rtol, atol=1e-6)
