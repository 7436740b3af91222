"""Kernels that are in no library, as users write them: the heuristic pass makes right programs of them, too.

Their sizes are primes or awkward, and nothing in pdojo knows of them. Outputs are poisoned, and every array lies
between guard zones.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from differential.user_references import REFERENCES
from pdojo.backends.llvm.executable import compile as compile_kernel
from pdojo.backends.measure.arrays import ArraySet, random_inputs
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.functions import is_float
from pdojo.dialect.machines.registry import host
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.rules.validate import validate
from pdojo.kernels import kernel_names
from pdojo.passes.scheduled_kernel import make_moves

FILES = sorted((Path(__file__).parent / "user_kernels").glob("*.pdojo"))
TOLERANCE = {"f32": 1e-4, "f64": 1e-12}


def test_every_kernel_has_a_meaning_and_is_in_no_library() -> None:
    names = [file.stem for file in FILES]
    assert names == sorted(REFERENCES)
    assert len(names) >= 20
    assert not set(names) & set(kernel_names())


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_heuristic_pass_keeps_the_meaning(file: Path) -> None:
    (kernel,) = parse_notation(file.read_text(encoding="utf-8"), file.name)
    tuned = make_moves(with_alignment(kernel, 64), host(), "heuristic")
    validate(tuned.game.program)
    executable = compile_kernel(tuned.after, threads=2)
    parameters = executable.parameters
    for seed in (1, 2):
        inputs = random_inputs(parameters, seed)
        given = [v.astype(np.float64) if v.dtype.kind == "f" else v for v in inputs.values()]
        expected = REFERENCES[file.stem](*given)
        arrays = ArraySet(parameters, inputs)
        executable(*arrays.arrays)
        assert arrays.damage() is None
        written = [(p, a) for p, a in zip(parameters, arrays.arrays, strict=True) if p.written]
        for (parameter, got), wanted in zip(
            written, expected if isinstance(expected, list) else [expected], strict=True
        ):
            assert got.shape == wanted.shape
            tolerance = TOLERANCE[parameter.dtype] if is_float(parameter.dtype) else 0
            np.testing.assert_allclose(got, wanted, tolerance, tolerance, err_msg=f"{parameter.name}, seed {seed}")
