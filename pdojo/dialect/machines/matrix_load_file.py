"""The `[[matrix_loads]]` tables of a machine file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pdojo.dialect.machines.intrinsic_file import check_keys, named_table, templates_in
from pdojo.dialect.machines.matrix_load import MatrixLoad
from pdojo.errors import UsageError
from pdojo.toml import listed

_KEYS = ("name", "shape", "element_bytes", "matrices", "threads", "fragment", "templates")


def read_matrix_load(value: object, *, deferred: bool, trusted: bool) -> MatrixLoad:
    """The instruction that a table describes. Raises UsageError with the mistake, without the file's name.

    If `deferred`, the fragment is read when it is first needed. If `trusted`, the templates may be compiled.
    """
    name, table = named_table(value, "matrix_loads", "instruction")
    try:
        return _read(name, table, deferred=deferred, trusted=trusted)
    except UsageError as error:
        raise UsageError(f"'{name}': {error}") from None


def _read(name: str, table: Mapping[str, object], *, deferred: bool, trusted: bool) -> MatrixLoad:
    check_keys(table, _KEYS)
    shape = _counts(table, "shape", "two positive whole numbers, rows and elements of a row")
    if len(shape) != 2:
        raise UsageError("'shape' must be two positive whole numbers, rows and elements of a row")
    matrices = _counts(table, "matrices", "how many matrices it may load, ascending, such as [1, 2, 4]")
    if list(matrices) != sorted(set(matrices)):
        raise UsageError("'matrices' must be how many matrices it may load, ascending, such as [1, 2, 4]")
    width, threads = (_count(table.get(key), f"'{key}' must be {what}") for key, what in _NUMBERS.items())
    fragment = table.get("fragment")
    if not isinstance(fragment, str):
        raise UsageError("'fragment' must be a text, 'lane, slot' over row and element")
    templates = templates_in(table)
    load = MatrixLoad(name, (shape[0], shape[1]), width, matrices, threads, fragment, templates, trusted)
    _check(load)
    if not deferred:
        _ = load.form
    return load


_NUMBERS = {
    "element_bytes": "a positive whole number, the bytes of an element",
    "threads": "a positive whole number, the threads of a warp",
}


def _check(load: MatrixLoad) -> None:
    if load.row_bytes & (load.row_bytes - 1):
        raise UsageError(f"rows must have a power of two of bytes, not {load.row_bytes}")
    for matrices in load.matrices:
        rows = matrices * load.shape[0]
        if rows > load.threads or rows & (rows - 1):
            raise UsageError(
                f"{matrices} matrices have {rows} rows, whose addresses {load.threads} threads give; it must be a "
                "power of two, and no more than these"
            )


def _counts(table: Mapping[str, object], key: str, what: str) -> tuple[int, ...]:
    value = table.get(key)
    return tuple(_count(one, f"'{key}' must be {what}") for one in listed(value) or [None])


def _count(value: object, mistake: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UsageError(mistake)
    return value


def matrix_load_to_json(load: MatrixLoad) -> dict[str, Any]:
    """An instruction as a JSON object: the table that `read_matrix_load` reads."""
    return {
        "name": load.name,
        "shape": list(load.shape),
        "element_bytes": load.element_bytes,
        "matrices": list(load.matrices),
        "threads": load.threads,
        "fragment": load.fragment,
        "templates": dict(load.templates),
    }
