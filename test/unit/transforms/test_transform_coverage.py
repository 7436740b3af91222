"""Every transformation has lit tests of its rewriting, of its inverse, and of every reason for which it is refused.

The reasons are read from the source: the sentences that the code of a transformation, and whatever it calls in pdojo,
gives to `Reason`, or returns where the return type is `str | None` or a union with `str`.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Container, Iterator
from functools import lru_cache
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from pdojo.dialect.flow.program import Program
from pdojo.dialect.flow.storage_check import StorageChecks, StorageQuestion
from pdojo.dialect.reason import Reason
from pdojo.dialect.rules.conditions import buffer_problems, conditions_of
from pdojo.dialect.verification.mappings import misplaced_mapping
from pdojo.transforms.base import Transformation
from pdojo.transforms.legality.faults import breach, fault
from pdojo.transforms.mapping.scope import MapScope
from pdojo.transforms.mapping.unmap import storage_reason
from pdojo.transforms.registry import TRANSFORMATION_NAMES, transformation

FOLDER = Path(__file__).parents[2] / "filecheck" / "transforms"
SHARED = Program, StorageChecks, StorageQuestion
"""Classes whose methods are called on objects that transformations are given."""

ELSEWHERE = {
    ("*", "is not contiguous, which"): "no machine description lacks gathers; test_moves.py makes one",
    ("vectorize", "what an earlier lane writes"): "no statement depends on itself; test_planted.py has one that does",
    ("unstage", "is no vector of"): "the copy has the type of the array",
    ("unstage", "is not contiguous, but registers"): "what is in registers is copied lane by lane",
    ("reciprocal", "must be between 0"): "a division has a second input",
    ("divide", "not every element of"): "only programs that read what nothing wrote, where no game starts",
    ("async_copy", "only blocks of a grid"): "shared memory outside of a grid is refused where the game starts",
    ("*", "would be read before it is written"): "only programs that read what nothing wrote, where no game starts",
    ("*", "which ends with that scope"): "the question whether storage keeps values comes first, and says the same",
    ("*", "runs through"): "what vectors ask of folds and swizzles: vectorize, fold_dim and swizzle_dim show it",
    ("materialize_dims", "is strided over"): "the question about lanes comes first",
    ("frep", "has no hardware loops"): "the question about the machine comes first",
    ("stream", "has no stream registers"): "the question about the machine comes first",
    ("frep", "is not indexed by constants, as registers are"): "no game starts with registers that a loop indexes",
    ("frep", "permit"): "the rule of hardware loops says the same, and first",
    ("swap_dims", "is not contiguous, but registers"): "the question about registers comes first",
    ("collapse_dims", "is not contiguous, but registers"): "another length of rows divides what was contiguous",
    ("pad_dim", "is not contiguous, but registers"): "another length of rows divides what was contiguous",
    ("unpad_dim", "is not contiguous, but registers"): "another length of rows divides what was contiguous",
    ("fold_dim", "which registers cannot honour"): "no game starts with such hints",
    ("materialize_dims", "which registers cannot honour"): "no game starts with such hints",
    ("swap_dims", "which registers cannot honour"): "no game starts with such hints",
    **{
        (name, part): why
        for name in ("stage_in", "stage_out", "unstage")
        for part, why in (
            ("which registers cannot honour", "no game starts with such hints"),
            ("is strided over", "what accesses the registers now does so afterwards, or is a copy of one element"),
        )
    },
    ("stage_in", "has no parallel scopes"): "staging asks only whether there are such scopes, and makes none",
    ("stage_out", "has no parallel scopes"): "staging asks only whether there are such scopes, and makes none",
    ("stage_in", "is used by several threads"): "what threads read from registers, they wrote in the same scope",
    ("stage_out", "is used by several threads"): "all that threads access goes to the copy",
    ("async_copy", "is not contiguous, but registers"): "it copies from heap to shared memory",
    **{
        (name, "in its declaration promises more"): "layouts of the kernel's own buffers change, which backends align"
        for name in ("swap_dims", "tile_dim", "collapse_dims", "pad_dim", "unpad_dim", "materialize_dims")
    },
    ("async_copy", "of the lanes of"): "vectors whose lanes are so far apart are refused where the game starts",
    **{
        (name, "of the lanes of"): "layouts of the kernel's own buffers change; strides of callers' arrays have sizes"
        for name in ("swap_dims", "tile_dim", "collapse_dims", "pad_dim", "unpad_dim", "materialize_dims")
    },
    **{
        (name, "looks up the lane number"): "no game starts with vectors that store so, and no layout makes them"
        for name in ("async_copy", "swap_dims", "tile_dim", "collapse_dims", "pad_dim", "unpad_dim", "materialize_dims")
    },
    ("*", "an index would run"): "the witness of another reason, which the cases of drop_guard show",
    ("unroll", " has no "): "every machine has unrolled scopes",
    ("unstage", "is indexed by"): "a copy nest that is a loop would index the registers already",
}
"""Reasons of a transformation, or of all, that no lit test can show, by a part of them."""

NO_STORAGE_CASE = {
    "swap_scopes": "has words of its own for it",
    "materialize_dims": "no valid program is known whose values need a reused dimension",
    "rename_array": "values that keep apart in one buffer do so in two",
    "delete_op": "no valid program is known in which the accesses of an op keep values in place",
}
"""Transformations that ask whether storage keeps values, and need no case of the general answers."""

STORAGE = "storage_violation"
"""The method of `Program` whose reasons depend on the program only: each is to be shown once, by any transformation."""


def code_of(function: Any) -> ast.AST:
    return ast.parse(textwrap.dedent(inspect.getsource(function)))


def returns_message(function: FunctionType) -> bool:
    annotation = str(function.__annotations__.get("return", ""))
    return bool(re.search(r"\|\s*str\b|\bstr \|", annotation))


def template(node: ast.expr) -> str | None:
    """A sentence as a regular expression: what is filled in may be anything."""
    match node:
        case ast.Constant(value=str(text)):
            return re.escape(text)
        case ast.JoinedStr(values=parts):
            return "".join(re.escape(str(p.value)) if isinstance(p, ast.Constant) else ".*" for p in parts)
        case ast.IfExp(body=body, orelse=other):
            return template(body) or template(other)
        case _:
            return None


def sentences(function: FunctionType) -> Iterator[str]:
    """The sentences that a function itself makes."""
    for node in ast.walk(code_of(function)):
        wanted: ast.expr | None = None
        match node:
            case ast.Call(func=ast.Name(id="Reason" | "carried"), args=[first, *_]):
                wanted = first
            case ast.Return(value=ast.Constant() | ast.JoinedStr() as value) if returns_message(function):
                wanted = value
            case _:
                pass
        found = template(wanted) if wanted is not None else None
        if found:
            yield found


def called(function: FunctionType, owner: type | None) -> Iterator[FunctionType | Reason]:
    """The functions of pdojo that a function calls, and the ready-made reasons that it names."""
    names = vars(sys.modules[function.__module__])
    for node in ast.walk(code_of(function)):
        target: Any = None
        match node:
            case ast.Name(id=name):
                target = names.get(name)
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if owner is not None:
                target = getattr(owner, name, None)
            case ast.Attribute(attr=name) if name != STORAGE:
                target = next((vars(c)[name] for c in SHARED if name in vars(c)), None)
            case _:
                pass
        if isinstance(target, Reason):
            yield target
        if isinstance(target, FunctionType) and target.__module__.startswith("pdojo."):
            yield target


def reasons(start: FunctionType, owner: type, *, without: Container[FunctionType] = ()) -> set[str]:
    """Every sentence that a check can come to, but for those of some functions that it calls."""
    found: set[str] = set()
    seen: set[FunctionType] = set()
    pending: list[tuple[FunctionType, type | None]] = [(start, owner)]
    while pending:
        function, self_type = pending.pop()
        if function in seen or function in without:
            continue
        seen.add(function)
        found.update(sentences(function))
        for target in called(function, self_type):
            if isinstance(target, Reason):
                found.add(re.escape(target.text))
            else:
                pending.append((target, owner if hasattr(owner, target.__name__) else None))
    return found


def asks_about_storage(cls: type[Transformation[Any]]) -> bool:
    if issubclass(cls, MapScope) and not cls.mapping.is_concurrent:
        return False  # such scopes change no cell
    seen: set[FunctionType] = set()
    pending: list[Any] = [cls.check]
    while pending:
        function = pending.pop()
        if function in seen:
            continue
        seen.add(function)
        if STORAGE in inspect.getsource(function):
            return True
        pending += [f for f in called(function, cls) if isinstance(f, FunctionType)]
    return False


@lru_cache
def expected(folder: str) -> str:
    """The messages that the tests of a folder expect."""
    texts = [p.read_text() for p in sorted((FOLDER / folder).glob("refuse*"))]
    return "\n".join(line for text in texts for line in text.splitlines() if "is refused:" in line)


CONDITION_REASONS = reasons(buffer_problems, Program)
"""Those that depend on the program after a move only: each is to be shown once, by any transformation."""

CONDITIONS = [conditions_of, misplaced_mapping, fault, breach]
"""What asks for them."""

STORAGE_REASONS = reasons(StorageChecks.violation, StorageChecks) | set(sentences(storage_reason))


def shown(name: str, reason: str, messages: str) -> bool:
    exempt = any(re.escape(part) in reason for whose, part in ELSEWHERE if whose in ("*", name))
    return exempt or re.search(f"is refused: {reason}", messages) is not None


@pytest.mark.parametrize("name", TRANSFORMATION_NAMES)
@pytest.mark.parametrize("kind", ["rewrite", "refuse", "inverse"])
def test_has_lit_tests(name: str, kind: str) -> None:
    assert list((FOLDER / name).glob(f"{kind}.*")), f"{FOLDER / name} has no {kind}.pdojo"


@pytest.mark.parametrize("name", TRANSFORMATION_NAMES)
def test_every_reason_has_a_case(name: str) -> None:
    cls = transformation(name)
    wanted = reasons(cls.check, cls, without=CONDITIONS) - STORAGE_REASONS
    assert wanted, f"no reasons found for {name}: has the code changed its ways?"
    if any("numerics" in vars(base) for base in cls.__mro__ if base is not Transformation):
        wanted.add("it would .*, which the kernel does not permit")
    missing = [reason for reason in sorted(wanted) if not shown(name, reason, expected(name))]
    assert not missing, f"{FOLDER / name}/refuse*.pdojo shows no case of: {missing}"
    if asks_about_storage(cls) and name not in NO_STORAGE_CASE:
        assert any(re.search(r, expected(name)) for r in STORAGE_REASONS), f"{name} shows no case of lost values"


def test_every_reason_that_transformations_share_has_a_case() -> None:
    everything = "\n".join(expected(name) for name in TRANSFORMATION_NAMES)
    shared = STORAGE_REASONS | CONDITION_REASONS
    assert not [reason for reason in sorted(shared) if not shown("*", reason, everything)]


def test_no_folder_without_a_transformation() -> None:
    assert {p.name for p in FOLDER.iterdir() if p.name != "Output"} <= set(TRANSFORMATION_NAMES)


def test_the_reasons_of_a_known_transformation() -> None:
    """The reading of the source itself: reasons of the check, its methods, helpers and constants."""
    found = "\n".join(reasons(transformation("inline_op").check, transformation("inline_op")))
    for part in ("must\\ be\\ between", "exists\\ already", "several\\ ops\\ write", "vector\\ scope\\ wraps"):
        assert part in found
