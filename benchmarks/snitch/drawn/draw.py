"""The kernels of the seed: each form at two sizes, one of multiples of four and one of other numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from random import Random
from types import SimpleNamespace

import numpy as np

from benchmarks.snitch.drawn import elementwise, pairs, recurrences, reductions, windows
from benchmarks.snitch.drawn.form import Form
from benchmarks.snitch.kernels import Arrays, MicroKernel
from pdojo.dialect.alignment import ALIGNMENT
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.errors import MeasurementError

SEED = 20261130
ROUND = {"f64": 1.5 * 2.0**52, "f32": 1.5 * 2.0**23}
TOLERANCE = {"f64": 1e-11, "f32": 3e-4}
"""Largest difference from NumPy's results, relative to value plus mean magnitude."""
_ELEMENTS = {"f64": ("double", ""), "f32": ("float", "f")}
"""The type of C and the suffix of its functions."""
_FUNCTIONS = {"SQRT(x)": "sqrt{}(x)", "ABS(x)": "fabs{}(x)", "MAX(x, y)": "fmax{}(x, y)", "MIN(x, y)": "fmin{}(x, y)"}


@dataclass(frozen=True, kw_only=True)
class DrawnKernel(MicroKernel):
    """A form at drawn sizes, with drawn constants."""

    form: Form
    sizes: dict[str, int] = field(hash=False)
    """Drawn sizes by name."""
    numbers: dict[str, float] = field(hash=False)
    """Constants by name."""

    def instantiate(self, dtype: str) -> KernelOp:
        """The plain kernel, with its alignment and permissions."""
        (kernel,) = parse_notation(self.notation(dtype), self.text)
        return with_alignment(kernel, ALIGNMENT)

    def notation(self, dtype: str) -> str:
        """The text of the plain kernel."""
        lines = [f"size {name} = {value}" for name, value in {**self.sizes, **self.form.derived}.items()]
        lines += [f"number {name} = {value!r}" for name, value in self._constants(dtype).items()]
        signature, _, rest = self.form.kernel.partition("\n")
        permitted = "numerics contract reassociate" + (" numbers" if self.has_maximum else "")
        return "\n".join([*lines, f"type T = {dtype}", f"kernel {self.form.name}{signature}", permitted, rest])

    def c_source(self, dtype: str) -> str:
        """The same computation as plain C."""
        element, suffix = _ELEMENTS[dtype]
        lines = [f"typedef {element} T;"]
        lines += [f"#define {name} __builtin_{call.format(suffix)}" for name, call in _FUNCTIONS.items()]
        lines += [f"#define {name} ({value})" for name, value in {**self.sizes, **self.form.derived}.items()]
        lines += [f"#define {name} ((T){value!r})" for name, value in self._constants(dtype).items()]
        return "\n".join([*lines, f"void {self.form.name}{self.form.c}", ""])

    def check(self, dtype: str, inputs: Arrays, outputs: Arrays) -> None:
        """Raise MeasurementError if outputs differ from NumPy's, computed in float64."""
        arrays = {name: array.astype(np.float64) for name, array in inputs.items()}
        found = self.form.reference(SimpleNamespace(**arrays, **self.sizes, **self._constants(dtype)))
        wanted = found if isinstance(found, tuple) else (found,)
        for (name, output), reference in zip(outputs.items(), wanted, strict=True):
            error = np.abs(output - reference) / (np.abs(reference) + np.abs(reference).mean())
            if output.shape != reference.shape or not (error <= TOLERANCE[dtype]).all():
                raise MeasurementError(f"{self.text} {dtype}: '{name}' differs from NumPy's by {error.max():.1e}")

    def _constants(self, dtype: str) -> dict[str, float]:
        return {**self.numbers, "ROUND": ROUND[dtype]} if "ROUND" in self.numbers else self.numbers


@cache
def drawn_kernels() -> tuple[DrawnKernel, ...]:
    """All kernels of the seed, by form."""
    random = Random(SEED)
    forms = [*elementwise.FORMS, *(make(random) for make in elementwise.GENERATED)]
    forms += [*pairs.FORMS, *reductions.FORMS, *windows.FORMS, *recurrences.FORMS]
    return tuple(_drawn(form, random, is_even=is_even) for form in forms for is_even in (True, False))


def _drawn(form: Form, random: Random, *, is_even: bool) -> DrawnKernel:
    sizes = {name: _size(*between, random, is_even=is_even) for name, between in form.sizes.items()}
    shape = "x".join(map(str, sizes.values()))
    return DrawnKernel(
        f"{form.name}:{shape}",
        f"{form.name} {shape}",
        form.divides,
        form.has_maximum,
        form=form,
        sizes=sizes,
        numbers={**form.numbers, **{name: random.randint(4, 12) / 16 for name in form.drawn.split()}},
    )


def _size(low: int, high: int, random: Random, *, is_even: bool) -> int:
    """A multiple of 4, or another number, between two numbers."""
    return random.choice([size for size in range(low, high + 1) if (size % 4 == 0) is is_even])
