"""Random kernels: compiled code gives the bits that the reference interpreter gives, statement by statement."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from differential.compiled import kernel, random_inputs, run, same
from differential.math_harness import BOUNDS
from pdojo.backends.llvm.executable import compile
from pdojo.dialect.semantics.interpreter import interpret_stepwise
from pdojo.dialect.view.build import nest_of
from pdojo.math.functions import FUNCTIONS
from property.kernels import Features, kernel_texts

_UNSPECIFIED = ("arith.bitcast", "math.copysign", "arith.maxnumf", "arith.minnumf")
"""Functions that show the sign of a NaN, or may return either of two zeros."""
_EXACT = frozenset(FUNCTIONS) - frozenset(BOUNDS) - frozenset(_UNSPECIFIED)
FEATURES = replace(Features(), functions=_EXACT, facts=False, hints=False)
"""Kernels whose results are the same bits everywhere."""


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(text=kernel_texts(FEATURES), seed=st.integers(0, 1 << 20))
def test_random_kernels(text: str, seed: int) -> None:
    program = kernel(text)
    # The interpreter rounds contracted sums twice; they have tests of their own.
    assume(not any(leaf.contracted for leaf in nest_of(program).leaves))
    executable = compile(program, threads=3, optimize="search")
    inputs = random_inputs(executable.parameters, seed)
    wanted = interpret_stepwise(program, inputs)
    found = run(executable, inputs)
    for parameter in executable.parameters:
        if parameter.written:
            assert same(found[parameter.name], wanted[parameter.name], parameter.dtype), parameter.name


@pytest.mark.slow
@settings(deadline=None, max_examples=3000, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(text=kernel_texts(FEATURES), seed=st.integers(0, 1 << 20))
def test_many_random_kernels(text: str, seed: int) -> None:
    test_random_kernels.hypothesis.inner_test(text, seed)  # pyright: ignore[reportFunctionMemberAccess]
