"""The share of the array API standard that handles have as NumPy's functions (`python -m qa.array_api`).

The names are those of the standard of 2024.12: its main namespace and `linalg`. A function is there if it takes
handles. Drawn calls, of random shapes and element types, compare the interpreted kernel with NumPy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pdojo_tools.command import Arguments, positive, random_seed, tool
from rich.console import Console
from rich.table import Table

from pdojo import build
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.errors import PdojoError
from qa.array_api_draws import DRAWS, Call

STANDARD: Mapping[str, str] = {
    "elementwise": """abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert
        bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp expm1 floor
        floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal log log1p log2 log10
        logaddexp logical_and logical_not logical_or logical_xor maximum minimum multiply negative nextafter not_equal
        positive pow real reciprocal remainder round sign signbit sin sinh square sqrt subtract tan tanh trunc""",
    "statistical": "cumulative_prod cumulative_sum max mean min prod std sum var",
    "linear algebra": "matmul matrix_transpose tensordot vecdot",
    "manipulation": """broadcast_arrays broadcast_to concat expand_dims flip moveaxis permute_dims repeat reshape roll
        squeeze stack tile unstack""",
    "searching": "argmax argmin count_nonzero nonzero searchsorted where",
    "sorting": "argsort sort",
    "sets": "unique_all unique_counts unique_inverse unique_values",
    "indexing": "take take_along_axis",
    "utility": "all any diff",
    "data types": "astype can_cast finfo iinfo isdtype result_type",
    "creation": "empty_like full_like meshgrid ones_like tril triu zeros_like",
    "linalg": """linalg.cholesky linalg.cross linalg.det linalg.diagonal linalg.eigh linalg.eigvalsh linalg.inv
        linalg.matmul linalg.matrix_norm linalg.matrix_power linalg.matrix_rank linalg.matrix_transpose linalg.outer
        linalg.pinv linalg.qr linalg.slogdet linalg.solve linalg.svd linalg.svdvals linalg.tensordot linalg.trace
        linalg.vecdot linalg.vector_norm""",
}
"""Functions of arrays by section. Functions of no array (`zeros`, `arange` ...) are NumPy's: handles take constants."""
_UNSIGNED = {"u1": "i1", "u2": "i2", "u4": "i4", "u8": "i8"}


class DifferentError(PdojoError):
    """A result that is not NumPy's."""


@dataclass
class Row:
    """A section: names, those that take handles, drawn calls, and those whose results are NumPy's."""

    names: list[str]
    known: list[str] = field(default_factory=list[str])
    calls: int = 0
    failures: list[str] = field(default_factory=list[str])

    @property
    def absent(self) -> list[str]:
        """The names that take no handles."""
        return [name for name in self.names if name not in self.known]


def function_of(name: str) -> Any:
    """A function of NumPy by its name in the standard; None if this NumPy lacks it."""
    found: Any = np
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def takes_handles(name: str) -> bool:
    """Whether a function of the standard takes handles."""
    function = function_of(name)
    module = str(getattr(function, "__module__", "") or "numpy").removeprefix("numpy").strip(".")
    own = getattr(function, "__name__", "")
    return f"{module}.{own}" in build.numpy_names if module else own in build.numpy_names


def survey(draws: int, seed: int) -> dict[str, Row]:
    """The sections of the standard, with so many drawn calls of each function."""
    rows: dict[str, Row] = {}
    for section, text in STANDARD.items():
        row = rows[section] = Row(text.split())
        for name in row.names:
            if not takes_handles(name):
                continue
            row.known.append(name)
            for number in range(draws):
                row.calls += 1
                call = DRAWS[name](np.random.default_rng([seed, number, len(name), *name.encode()]))
                problem = difference(function_of(name), call)
                if problem is not None:
                    row.failures.append(f"{name}{call}: {problem}")
    return rows


def difference(function: Callable[..., Any], call: Call) -> str | None:
    """How the result of a call with handles differs from that with NumPy's arrays; None if it does not."""
    wanted = _listed(call.applied(function, call.arrays))
    handles = [_handle(f"x{k}", values) for k, values in enumerate(call.arrays)]
    try:
        found = _listed(call.applied(function, handles))
        if len(found) != len(wanted):
            return f"{len(found)} results, not {len(wanted)}"
        for one, other in zip(found, wanted, strict=True):
            if isinstance(one, bool):
                _compare(np.asarray(one), np.asarray(other), 0)
            elif isinstance(one, str):
                _compare(np.empty((), _numpy(one)), np.empty((), other), np.inf)
            else:
                _compare(_evaluated(one, handles, call.arrays), np.asarray(other), call.tolerance)
    except PdojoError as error:
        return str(error)
    return None


def _listed(result: Any) -> list[Any]:
    return [*result] if isinstance(result, list | tuple) else [result]


def _handle(name: str, values: NDArray[Any]) -> build.Array:
    kind = "bool" if values.dtype == np.bool_ else f"{values.dtype.kind}{8 * values.itemsize}"
    return build.input(name, kind, values.shape)


def _evaluated(result: Any, handles: Sequence[build.Array], arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The elements of a result, by the reference interpreter."""
    whole = build.kernel("drawn", handles, {"result": result})
    given = {f"x{k}": _signed(values) for k, values in enumerate(arrays)}
    found = interpret(whole, given)["result"]
    return np.asarray(found).view(_numpy(result.dtype))


def _signed(values: NDArray[Any]) -> NDArray[Any]:
    return values.view(_UNSIGNED[values.dtype.str[1:]]) if values.dtype.kind == "u" else values


def _numpy(dtype: str) -> np.dtype[Any]:
    return np.dtype(np.bool_ if dtype == "i1" else f"{dtype[0]}{int(dtype[1:]) // 8}")


def _compare(found: NDArray[Any], wanted: NDArray[Any], tolerance: float) -> None:
    if found.dtype != wanted.dtype:
        raise DifferentError(f"type {found.dtype}, not {wanted.dtype}")
    if found.shape != wanted.shape:
        raise DifferentError(f"shape {found.shape}, not {wanted.shape}")
    if tolerance == np.inf:
        return
    if wanted.dtype.kind != "f":
        if not np.array_equal(found, wanted):
            raise DifferentError(f"{found.tolist()}, not {wanted.tolist()}")
        return
    few = tolerance * float(np.finfo(wanted.dtype).eps)
    if not np.allclose(found, wanted, rtol=few, atol=few, equal_nan=True):
        raise DifferentError(f"{found.tolist()}, not {wanted.tolist()}")


@tool
def main(args: Sequence[str] | None = None) -> None:
    """Print the table. Exit status 1 if a drawn call has another result than NumPy's."""
    parser = Arguments(prog="python -m qa.array_api", description=__doc__)
    parser.add_argument("--draws", type=positive, default=20, metavar="N", help="drawn calls of each function")
    parser.add_argument("--seed", type=random_seed, default=0, help="seed of the draws")
    options = parser.parse_args(args)
    rows = survey(options.draws, options.seed)
    Console(width=110).print(table(rows))
    failures = [failure for row in rows.values() for failure in row.failures]
    if failures:
        raise DifferentError("\n".join(failures[:40]))


def table(rows: Mapping[str, Row]) -> Table:
    """The shares by name and by drawn calls of each section, and of all."""
    names, known = sum(len(row.names) for row in rows.values()), sum(len(row.known) for row in rows.values())
    found = Table(title=f"array API 2024.12: {known} of {names} functions ({known / names:.0%})")
    found.add_column("section")
    for heading in ("names", "there", "calls", "equal"):
        found.add_column(heading, justify="right")
    found.add_column("absent")
    for section, row in rows.items():
        cells = len(row.names), len(row.known), row.calls, row.calls - len(row.failures)
        found.add_row(section, *map(str, cells), ", ".join(row.absent))
    return found


if __name__ == "__main__":
    sys.exit(main())
