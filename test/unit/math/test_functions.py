"""The records of scalar functions: complete, and all that a new function needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pdojo.dialect.functions import ACCUMULATIONS
from pdojo.math.functions import FUNCTIONS, FUSED, Function, Signature

TESTS = Path(__file__).parents[2]


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=lambda f: f.name)
def test_a_record_is_complete(function: Function) -> None:
    assert (function.recipe is None) is function.is_exact
    if function.recipe is not None:
        assert callable(function.recipe())
        assert function.signature is Signature.FLOAT
    # Casts, comparisons and `select` are not of one type; fused functions round once as NumPy cannot.
    of_one_type = function.signature in (Signature.FLOAT, Signature.INTEGER) and function.name not in FUSED
    assert (function.numpy is not None) is of_one_type
    if function.numpy is not None:
        assert callable(function.numpy())
    assert (function.bit is not None) is (function.signature is Signature.INTEGER)
    assert function.sign is None or function.call is None


def test_an_accumulation_means_a_ufunc() -> None:
    """Reductions of arrays call its method; the extrema of floats order zeros, and have code of their own."""
    for name in ACCUMULATIONS:
        function = FUNCTIONS[name]
        assert function.numpy is not None
        if function.signature is Signature.INTEGER or function.mnemonic in ("addf", "mulf"):
            assert isinstance(function.numpy(), np.ufunc)


def test_a_record_and_a_recipe_are_a_function(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", str(TESTS / "added_function.py"), str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent)])}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
