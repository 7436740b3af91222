"""The specification of a library: a TOML file with the operators, the levels and the tuning (docs/library.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pdojo.budget import Budget
from pdojo.dialect.attributes import Numerics
from pdojo.dialect.element_types import ELEMENT_TYPES
from pdojo.errors import UsageError, did_you_mean
from pdojo.library.client.runtime import MOST_THREADS
from pdojo.library.naming import licence_problem, name_problem, prefix_problem, version_problem, word_problem
from pdojo.names import STRATEGIES, strategy_names
from pdojo.toml import COUNT, FLAG, Kind, each, read_toml, table, word

T = TypeVar("T")
D = TypeVar("D")

BUDGET = Budget(250)
"""Limits of each search, if the specification does not give any."""
MOST_ROWS = (1 << 31) - 1
"""Most rows of an operator that serves any number of them."""


@dataclass(frozen=True)
class OperatorSpec:
    """A kernel at several sizes and element types."""

    key: str
    """The place in the specification, for messages: `operators[0]`."""
    kernel: str
    """A kernel of the operator library, or the path of a file, relative to the specification."""
    name: str | None = None
    """The C function without prefix and element type; None for the kernel's name."""
    shapes: tuple[str, ...] = ()
    """Sizes to tune for: `64x512`, `1..64x512`, `8x64x56,S=2`; none for a kernel whose text has all of them."""
    plain: tuple[str, ...] = ()
    """Sizes for which the kernel is compiled without a move."""
    dtypes: tuple[str, ...] = ()
    """Element types; none for the kernel's own."""
    numerics: tuple[Numerics, ...] | None = None
    """Classes of rounding changes to permit; None for the kernel's own."""
    rows: bool = False
    """Whether the first size may be any number, with the other sizes of each shape."""


@dataclass(frozen=True)
class ModelSpec:
    """A model as one function."""

    key: str
    """The place in the specification, for messages: `models[0]`."""
    onnx: str | None = None
    """The path of an ONNX file, relative to the specification; None for a model of PyTorch."""
    torch: str | None = None
    """`MODULE:FUNCTION` or `FILE.py:FUNCTION`, which returns a module and its inputs; None for an ONNX file."""
    name: str | None = None
    """The C function without prefix; None for the name of the file or of the function."""
    shape: str | None = None
    """Extents of open inputs, or ranges that calls choose: `batch=1..8`; None for 1."""
    is_apart: bool = False
    """Whether the weights are a file beside the library, which is mapped."""


@dataclass(frozen=True)
class TuningSpec:
    """The effort for programs of the level that this computer measures."""

    measure: bool = True
    """Whether programs are timed; otherwise only the expert pass chooses."""
    search: str | None = None
    """A strategy; None for the expert pass and a race of its variants."""
    budget: Budget = BUDGET
    """Limits of the search of each program."""
    seed: int = 0

    @property
    def text(self) -> str:
        """The effort in words; equal efforts have equal texts."""
        if not self.measure:
            return "pass"
        if self.search is None:
            return "race"
        return f"{self.search} {self.budget.evaluations} {self.budget.seconds} seed {self.seed}"


@dataclass(frozen=True)
class LibrarySpec:
    """A library to be built."""

    name: str
    version: str = "0.1.0"
    prefix: str = ""
    """Beginning of all C names, without the underscore; the library's name by default."""
    licence: str = "NOASSERTION"
    """SPDX expression."""
    licence_file: str | None = None
    levels: tuple[str, ...] = ("host",)
    """Names or files of machine descriptions; `host` is this computer's processor."""
    devices: tuple[str, ...] = ()
    """Names or files of descriptions of GPUs and Snitch cores, whose programs the expert pass chooses."""
    threads: int | None = None
    """Threads to tune for; None: as many as each description has."""
    tuning: TuningSpec = field(default_factory=TuningSpec)
    operators: tuple[OperatorSpec, ...] = ()
    models: tuple[ModelSpec, ...] = ()
    folder: Path = field(default=Path(), compare=False)
    """The folder to which paths are relative."""
    source: str = field(default="", compare=False)
    """The file's name for messages; empty if there is none."""

    def error(self, problem: str) -> UsageError:
        """A mistake in the specification, with its file."""
        return UsageError(f"{self.source}: {problem}" if self.source else problem)


def read_spec(path: Path) -> LibrarySpec:
    """The specification in a file. Raises UsageError with the file, the key and the mistake."""
    return spec_of(read_toml(path, "specification"), str(path), path.parent)


def spec_of(data: Mapping[str, Any], source: str, folder: Path) -> LibrarySpec:
    """The specification in parsed TOML; `source` is its file, for messages. Raises UsageError like `read_spec`."""
    table = _Table(source, "", data)
    table.check("name version prefix licence licence_file levels devices threads tuning operators models".split())
    name = table.required("name", _text)
    prefix, version = table.get("prefix", _text, name), table.get("version", _text, "0.1.0")
    licence = table.get("licence", _text, "NOASSERTION")
    problems = {
        "name": name_problem(name),
        "prefix": prefix_problem(prefix),
        "version": version_problem(version),
        "licence": licence_problem(licence),
    }
    for key, problem in problems.items():
        if problem is not None:
            raise table.error(key, problem)
    levels = tuple(table.get("levels", _texts, ["host"]))
    if not levels or len(set(levels)) < len(levels):
        raise table.error("levels", "must name at least one machine description, and none twice")
    threads = table.get("threads", COUNT, None)
    if threads is not None and not 1 <= threads <= MOST_THREADS:
        raise table.error("threads", f"must be from 1 to {MOST_THREADS}, not {threads}")
    devices = tuple(table.get("devices", _texts, list[str]()))
    if len(set(devices)) < len(devices):
        raise table.error("devices", "must name no machine description twice")
    operators = [_operator(each) for each in table.tables("operators")]
    return LibrarySpec(
        name,
        version,
        prefix,
        licence,
        table.get("licence_file", _text, None),
        levels,
        devices,
        threads,
        _tuning(table.table("tuning")),
        tuple(operators),
        tuple(_model(each) for each in table.tables("models")),
        folder,
        source,
    )


def _tuning(table: _Table) -> TuningSpec:
    table.check("measure search budget seed".split())
    search = table.get("search", _text, None)
    if search is not None and search not in strategy_names():
        raise table.error("search", f"unknown strategy '{search}'; {did_you_mean(search, strategy_names())}")
    measure = table.get("measure", FLAG, default=True)
    for key in ("search", "budget", "seed"):
        if table.has(key) and not measure:
            raise table.error(key, "belongs to measured programs, and measure is false")
    for key in ("budget", "seed"):
        if table.has(key) and search is None:
            raise table.error(key, f'belongs to a search; say which one: search = "{STRATEGIES[2]}"')
    if not table.has("budget"):
        return TuningSpec(measure, search, seed=table.get("seed", COUNT, 0))
    try:
        budget = Budget.parse(table.get("budget", _text, ""))
    except UsageError as error:
        raise table.error("budget", str(error)) from None
    return TuningSpec(measure, search, budget, table.get("seed", COUNT, 0))


def _operator(table: _Table) -> OperatorSpec:
    table.check("kernel name shapes plain dtypes numerics rows".split())
    name = table.get("name", _text, None)
    problem = None if name is None else word_problem(name)
    if problem is not None:
        raise table.error("name", problem)
    dtypes = tuple(table.get("dtypes", _texts, list[str]()))
    for dtype in dtypes:
        if dtype not in ELEMENT_TYPES:
            raise table.error("dtypes", f"unknown element type '{dtype}'; {did_you_mean(dtype, ELEMENT_TYPES)}")
    if len(set(dtypes)) < len(dtypes):
        raise table.error("dtypes", "must list no element type twice")
    classes = table.get("numerics", _texts, None)
    for one in classes or ():
        if one not in list(Numerics):
            raise table.error("numerics", f"unknown class '{one}'; {did_you_mean(one, list(Numerics))}")
    return OperatorSpec(
        table.key,
        table.required("kernel", _text),
        name,
        tuple(table.get("shapes", _texts, list[str]())),
        tuple(table.get("plain", _texts, list[str]())),
        dtypes,
        None if classes is None else tuple(Numerics(each) for each in classes if each != Numerics.EXACT),
        table.get("rows", FLAG, default=False),
    )


def _model(table: _Table) -> ModelSpec:
    table.check("onnx torch name shape weights".split())
    onnx, torch = table.get("onnx", _text, None), table.get("torch", _text, None)
    if (onnx is None) == (torch is None):
        raise table.error("onnx", "name the file of an ONNX model, or a function by key 'torch'")
    name = table.get("name", _text, None)
    problem = None if name is None else word_problem(name)
    if problem is not None:
        raise table.error("name", problem)
    shape = table.get("shape", _text, None)
    if shape is not None and onnx is None:
        raise table.error("shape", "belongs to ONNX models")
    weights = table.get("weights", _text, "inside")
    if weights not in ("inside", "beside"):
        raise table.error("weights", f"must be inside or beside, not '{weights}'")
    return ModelSpec(table.key, onnx, torch, name, shape, weights == "beside")


@dataclass(frozen=True)
class _Table:
    """A table of the file, with its place for messages."""

    source: str
    key: str
    data: Mapping[str, Any]

    def error(self, key: str, problem: str) -> UsageError:
        place = f"{self.key}.{key}" if self.key else key
        return UsageError(f"{self.source}: key '{place}': {problem}")

    def check(self, known: Sequence[str]) -> None:
        """Raise UsageError for a key that is not known."""
        for key in self.data:
            if key not in known:
                raise self.error(key, f"no such key; {did_you_mean(key, known)}")

    def has(self, key: str) -> bool:
        return key in self.data

    def get(self, key: str, kind: Kind[T], default: D) -> T | D:
        """The value of a key, of the kind; the default if the key is missing."""
        return self.required(key, kind) if key in self.data else default

    def required(self, key: str, kind: Kind[T]) -> T:
        """The value of a key, of the kind. Raises UsageError if it is missing."""
        if key not in self.data:
            raise self.error(key, "missing")
        reader, wanted = kind
        found = reader(self.data[key])
        if found is None:
            raise self.error(key, f"must be {wanted}, not {self.data[key]!r:.60}")
        return found

    def table(self, key: str) -> _Table:
        """The table below a key; an empty one if it is missing."""
        found = table(self.data.get(key, {}))
        if found is None:
            raise self.error(key, f"must be a table: begin it with [{key}]")
        return _Table(self.source, key, found)

    def tables(self, key: str) -> list[_Table]:
        """The tables in a list below a key."""
        rows = each(table, self.data.get(key, []))
        if rows is None:
            raise self.error(key, f"must be tables: begin each with [[{key}]]")
        return [_Table(self.source, f"{key}[{k}]", row) for k, row in enumerate(rows)]


def _is_text(value: object) -> str | None:
    return word(value) or None


_text = _is_text, "a text in quotes"
_texts: Kind[list[str]] = partial(each, _is_text), "a list of texts in quotes"
