"""Each operator, sample, element type and engine against the reference in NumPy: shapes, types and elements."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pdojo.build.operator import FLOATS
from pdojo.build.records import OPERATORS
from qa.operators import page
from qa.operators.peers import AbsentError, wanted
from qa.operators.tables import CALLS, NODES
from unit.operators.absences import Case, absence, check_faults
from unit.operators.engines import ENGINES, OURS, Values, element_of

_ULP = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}
_LEAST = {"f64": 2.0**-1074, "f32": 2.0**-149, "f16": 2.0**-24, "bf16": 2.0**-133}
"""Units in the last place, of 1 and of the smallest numbers."""
_GREATEST = {"f64": 1.8e308, "f32": 3.4e38, "f16": 65504.0, "bf16": 3.38e38}


def cases(name: str, count: int) -> list[Case]:
    """The cases of an operator: each sample with `count` of its element types, in turn."""
    record = OPERATORS[name]
    found: list[Case] = []
    for number, sample in enumerate(record.samples):
        types = sample.types or record.types
        found += [Case(record, sample, types[(number + k) % len(types)]) for k in range(min(count, len(types)))]
    return found


def complaint(case: Case, found: Values, right: Values, engine: str) -> str:
    """The fault of a result; empty if it is right."""
    if found.shape != right.shape:
        return f"shape {list(found.shape)} instead of {list(right.shape)}"
    dtype = element_of(found)
    if dtype not in FLOATS or right.dtype.kind != "f":
        return "" if np.array_equal(found.astype(right.dtype), right) else f"{found} instead of {right}"
    ours = engine in OURS
    own = case.record.computes_in(case.dtype) if ours else case.dtype
    # Attributes of ONNX are f32.
    own = dtype if own not in FLOATS else "f32" if own == "f64" and not ours and ENGINES[engine][1] is NODES else own
    with np.errstate(all="ignore"):
        mine, size = found.astype(np.float64), np.abs(np.where(np.isfinite(right), right, 0))
        most = size.max(initial=0)
        allowed = case.record.ulps * _ULP[own] * (size + most / 2) * (1 if ours else 4)
        allowed += _LEAST[dtype] if case.record.ulps else 0
        if _ULP[dtype] > _ULP[own]:
            allowed = allowed + 0.5 * _ULP[dtype] * size
        good = (mine == right) | (np.isnan(mine) & np.isnan(right)) | (np.abs(mine - right) <= allowed)
        good |= (np.abs(right) > _GREATEST[dtype]) & (np.abs(mine) >= _GREATEST[dtype])
    if good.all():
        return ""
    place = tuple(int(i) for i in np.argwhere(~good)[0])
    return f"{mine[place]!r} instead of {right[place]!r} at {list(place)}, {np.sum(~good)} of {good.size} elements"


PAIRS = [
    (name, engine) for name in OPERATORS for engine, (_, peers) in ENGINES.items() if peers is None or name in peers
]


@pytest.mark.parametrize(("name", "engine"), PAIRS, ids=[f"{name}-{engine}" for name, engine in PAIRS])
def test_operators(name: str, engine: str, request: pytest.FixtureRequest) -> None:
    run, _ = ENGINES[engine]
    faults: list[str] = []
    absent: Counter[str] = Counter()
    count = 99 if request.config.getoption("--slow") else 2 if engine == "interpreter" else 1
    known = cases(name, count)[:: 3 if request.config.getoption("--quick") else 1]
    for case in known:
        try:
            check_faults(engine, case)
            found = run(case)
        except AbsentError as reason:
            absent[str(reason)] += 1
            continue
        right = wanted(case.record, *case.operands())
        assert engine not in ("interpreter", "compiled") or len(found) == len(right)
        for title, mine, best in zip(case.record.results, found, right, strict=False):
            if mine is not None and (fault := complaint(case, mine, best, engine)):
                faults.append(f"{case.sample} {case.dtype}, {title}: {fault}")
    assert not faults, "\n".join(faults)
    if sum(absent.values()) == len(known):
        pytest.skip("; ".join(absent))


def test_peers_are_those_of_operators() -> None:
    assert set(CALLS) | set(NODES) <= set(OPERATORS)


def test_a_fault_is_noticed() -> None:
    case: Any = Case(OPERATORS["softmax"], OPERATORS["softmax"].samples[0], "bf16")
    right, rounded = np.array([1.0, 0.25]), np.array([1.0, 0.25], np.float32)
    assert not complaint(case, rounded, right, "compiled")
    assert "at [1]" in complaint(case, rounded * np.array([1, 1.00001], np.float32), right, "compiled")
    assert "shape" in complaint(case, rounded[:1], right, "compiled")
    assert complaint(case, np.array([1, 2]), np.array([1, 3]), "compiled")


def test_refusals_are_declared() -> None:
    plain = Case(OPERATORS["softmax"], OPERATORS["softmax"].samples[0], "f32")
    error = RuntimeError("not implemented for 'Half'")
    assert absence("PyTorch", plain, error) is error
    assert isinstance(absence("PyTorch", replace(plain, dtype="f16"), error), AbsentError)
    cut = replace(plain, record=OPERATORS["pad"])
    assert isinstance(absence("onnx.reference", cut, ValueError("index can't contain negative values")), AbsentError)
    assert isinstance(absence("onnx.reference", cut, other := ValueError("other")), type(other))


@pytest.mark.parametrize(
    ("name", "package"), [("build.md", "numpy"), ("onnx.md", "onnx"), ("torch-operators.md", "torch")]
)
def test_pages_have_what_is_printed(name: str, package: str) -> None:
    pytest.importorskip(package, reason=f"needs {package}")
    generated = (page.DOCS / name).read_text().partition(page.BEGIN)[2].partition(page.END)[0]
    assert generated == f"\n{page.PAGES[name]()}\n"
