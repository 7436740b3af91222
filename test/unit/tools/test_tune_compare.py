"""`pdojo-tune --compare`: curves, what they say together, plots, going on."""

from __future__ import annotations

import json
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import Any

import pytest
from pdojo_tools import tune
from pdojo_tools.tuning import comparing
from pdojo_tools.tuning.curves import Curve, Quartiles, ReferenceCosts, SearchComparison

from pdojo.dialect.machines.registry import host
from pdojo.errors import UsageError
from pdojo.passes import cost_model
from tuned_kernels import ADD


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    path = tmp_path / "add.pdojo"
    path.write_text(ADD)
    return path


def curve(strategy: str, seed: int, *best: float, near: str = "edges", failures: int = 0) -> Curve:
    return Curve("k", strategy, near, seed, best, len(best) - 1, {"Timeout": failures} if failures else {}, "", 1.0)


def comparison(*curves: Curve) -> SearchComparison:
    return SearchComparison({}, {"k": ReferenceCosts("s", 8.0, 4.0)}, {each.key: each for each in curves})


def test_spreads_with_infinite_values() -> None:
    assert Quartiles.of([3.0]) == Quartiles(3, 3, 3)
    assert Quartiles.of([1.0, 3.0]) == Quartiles(1.5, 2, 2.5)
    assert Quartiles.of([1.0, 2.0, 3.0, 4.0, 5.0]) == Quartiles(2, 3, 4)
    assert Quartiles.of([1.0, 2.0, inf]) == Quartiles(1.5, 2, inf)
    assert Quartiles.of([inf, inf, 1.0]) == Quartiles(inf, inf, inf)


def test_standings() -> None:
    # The best known costs 2; 95 % of its speed is a cost of 2.105.
    found = comparison(
        curve("sample", 0, 8, 4, 2.1, 2.0),
        curve("sample", 1, 8, 8, 8, 4, failures=2),
        curve("anneal", 0, inf, 2.2, 2.2, 2.2),
    )
    assert found.best_known("k") == 2.0
    sample, anneal = found.standings()
    assert (sample.searches, sample.arrived) == (2, 1)
    assert sample.arrival == Quartiles(inf, inf, inf)
    assert sample.final == Quartiles(0.625, 0.75, 0.875)
    # Nobody comes near nothing.
    assert curve("sample", 2, inf, inf).arrival(inf) == inf
    assert sample.failed == 0.25
    assert anneal.arrived == 0
    assert anneal.final.middle == pytest.approx(2.0 / 2.2)
    assert [spread.middle for spread in found.speeds("k", ("anneal", "edges"))] == [
        0.0,
        *[pytest.approx(2.0 / 2.2)] * 3,
    ]


def test_the_pass_may_be_the_best_known() -> None:
    found = comparison(curve("sample", 0, 8, 8))
    assert found.best_known("k") == 4.0
    assert found.standings()[0].final.middle == 0.5


def test_files_come_back(tmp_path: Path) -> None:
    path = tmp_path / "curves.json"
    found = comparison(curve("sample", 0, inf, 2.0))
    found.settings = {"budget": 1}
    found.save(path)
    again = SearchComparison.open(path, {"budget": 1})
    assert again.curves == found.curves
    assert again.references == found.references
    with pytest.raises(UsageError, match="another comparison: budget was 1 and is 2"):
        SearchComparison.open(path, {"budget": 2})
    for text, message in (("nothing", "no comparison"), ("[]", "no comparison"), ('{"format": 1}', "no comparison")):
        path.write_text(text)
        with pytest.raises(UsageError, match=message):
            SearchComparison.open(path, {})


def arguments(kernel: Path, tmp_path: Path, *more: str) -> list[str]:
    asked = "--compare --search sample,anneal --seeds 2 --budget 3 --neighbourhood edges,mutate".split()
    judged = ["--evaluator", "analytical", "--machine", "x86-64-avx2", "--pass", "naive"]
    files = ["--database", str(tmp_path / "db"), "-o", str(tmp_path / "curves.json")]
    return [str(kernel), *asked, *judged, *files, *more]


def test_a_comparison(
    kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tune.main(arguments(kernel, tmp_path)) == 0
    out = capsys.readouterr().out
    assert "8 of 8" in out
    assert "evaluations to 95%" in out.replace("\n", " ") or "95%" in out
    path = tmp_path / "curves.json"
    data: dict[str, Any] = json.loads(path.read_text())
    assert len(data["curves"]) == 8
    assert {(c["strategy"], c["neighbourhood"], c["seed"]) for c in data["curves"]} == {
        (s, n, k) for s in ("sample", "anneal") for n in ("edges", "mutate") for k in (0, 1)
    }
    for each in data["curves"]:
        assert len(each["best"]) == 4
        assert each["best"] == sorted(each["best"], reverse=True)
    assert len(data["summary"]) == 4
    if find_spec("matplotlib") is not None:
        assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in path.with_suffix(".svg").read_text()
    # All is there: nothing is searched again.
    monkeypatch.setattr(comparing, "search", None)
    assert tune.main(arguments(kernel, tmp_path)) == 0
    assert json.loads(path.read_text()) == data
    # Other settings are another comparison.
    assert tune.main(arguments(kernel, tmp_path, "--seed", "5")) == 2
    assert "has another comparison: first_seed was 0 and is 5" in capsys.readouterr().err


def test_other_programs_under_the_same_names_are_another_comparison(
    kernel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ["--seeds", "1", "--budget", "2", "--search", "sample", "--neighbourhood", "edges"]
    args = [*arguments(kernel, tmp_path), *few]
    assert tune.main(args) == 0
    text = kernel.read_text()
    kernel.write_text(text.replace("64", "32"))
    assert tune.main(args) == 2
    assert "has another comparison: programs was" in capsys.readouterr().err
    kernel.write_text(text)
    described = tmp_path / "mine.toml"
    described.write_text('name = "mine"\ninherits = "x86-64-avx2"\n')
    args = [str(described) if word == "x86-64-avx2" else word for word in args]
    args[args.index("-o") + 1] = str(tmp_path / "other.json")
    assert tune.main(args) == 0
    described.write_text('name = "mine"\ninherits = "x86-64-avx2"\nvector_registers = 8\n')
    assert tune.main(args) == 2
    assert "has another comparison: described was" in capsys.readouterr().err


def test_a_comparison_of_nothing_that_runs_fails(
    kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign = "aarch64-neon" if host().architecture == "x86_64" else "x86-64-avx2"
    few = ["--seeds", "1", "--budget", "2", "--search", "sample", "--neighbourhood", "edges"]
    where = ["--database", str(tmp_path / "db"), "-o", str(tmp_path / "c.json")]
    assert tune.main([str(kernel), "--compare", *few, *where, "--machine", foreign]) == 2
    assert "--evaluator analytical estimates what it cannot run" in capsys.readouterr().err
    assert not (tmp_path / "c.json").exists()

    def no_idea(*_: object) -> None:
        """The model knows no such mappings."""

    monkeypatch.setattr(cost_model, "estimate", no_idea)
    assert tune.main([str(kernel), "--compare", *few, *where, "--evaluator", "analytical"]) == 1
    said = capsys.readouterr()
    assert f"no program of {kernel} could be run" in said.err
    assert "0 of 1" in said.out


def test_an_interrupted_comparison_goes_on(
    kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real, calls = comparing.search, 0

    def interrupted(*args: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return real(*args, **named)

    monkeypatch.setattr(comparing, "search", interrupted)
    few = ["--neighbourhood", "edges"]
    assert tune.main(arguments(kernel, tmp_path, *few)) == 130
    assert "the same command goes on" in capsys.readouterr().out
    assert len(json.loads((tmp_path / "curves.json").read_text())["curves"]) == 2
    assert tune.main(arguments(kernel, tmp_path, *few)) == 0
    assert calls == 3 + 2
    whole = tmp_path / "whole"
    whole.mkdir()
    assert tune.main(arguments(kernel, whole, *few)) == 0

    def curves(path: Path) -> list[tuple[Any, ...]]:
        return [
            (c["strategy"], c["neighbourhood"], c["seed"], c["best"]) for c in json.loads(path.read_text())["curves"]
        ]

    assert curves(tmp_path / "curves.json") == curves(whole / "curves.json")


def test_curves_are_json(kernel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = arguments(kernel, tmp_path)
    assert tune.main([*args[:-1], str(tmp_path / "curves.csv")]) == 2
    assert "curves are JSON; name the file" in capsys.readouterr().err


def test_what_is_not_installed_is_left_out(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    def missing(name: str, steps: int = 1000) -> object:
        if name == "model":
            raise UsageError("it needs a package")
        return object()

    monkeypatch.setattr(comparing, "strategy", missing)
    found = comparing._available(Console())  # pyright: ignore[reportPrivateUsage]
    assert "model" not in found
    assert "sample" in found
    assert "model is left out: it needs a package" in capsys.readouterr().out
