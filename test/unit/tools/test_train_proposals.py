"""`pdojo-train proposals`: self-play over kernels, and searches by what it learned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pdojo_tools.train import main
from pdojo_tools.tune import main as tune

import pdojo
from pdojo.errors import UsageError
from pdojo.perfllm.proposals.lessons import read_lessons
from pdojo.search.contract.progress import SearchResult
from pdojo.search.neighbourhoods import loaded_proposals
from proposal_models import stored_model

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("safetensors", reason="safetensors is not installed")
KERNELS = ("softmax:4x16", "reducesum:8x32", "matmul:8x16x8")


def train(folder: Path, *more: str) -> int:
    words = ["--machine", "x86-64-avx2", "--evaluator", "analytical", "--evaluations", "40", "--searches", "1"]
    return main(["proposals", *KERNELS, "-o", str(folder), "--design", "network", *words, *more])


def test_an_interrupted_training_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ends with the same lessons and proposals, and repeats no finished search."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert train(whole) == 0
    lessons = read_lessons(whole / "lessons.jsonl")
    assert [(each.kernel, each.source) for each in lessons] == [
        (kernel, f"round {number}, seed 0") for number in range(2) for kernel in KERNELS
    ]
    assert all(each.cost < each.plain for each in lessons)
    from pdojo_tools.training import proposals

    search, calls = proposals.search, 0

    def interrupted(*args: Any, **named: Any) -> SearchResult:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return search(*args, **named)

    monkeypatch.setattr(proposals, "search", interrupted)
    assert train(cut) != 0
    assert len(read_lessons(cut / "lessons.jsonl")) == 2
    # A line that was cut by a kill.
    with (cut / "lessons.jsonl").open("a") as file:
        file.write('{"kernel":')
    capsys.readouterr()
    assert train(cut, "--json") == 0
    assert read_lessons(cut / "lessons.jsonl") == lessons
    names = [str(folder / "proposals") for folder in (whole, cut)]
    models = [loaded_proposals(f"learned:{name}") for name in names]
    assert models[0] is not None
    assert models[1] is not None
    assert models[0].identity == models[1].identity
    shown = json.loads(capsys.readouterr().out)
    assert shown["lessons"] == 6
    assert [part["part"] for part in shown["parts"]] == ["family", "place", "position"]
    assert calls == 3 + 4
    # Another training does not go on in the folder.
    assert train(cut, "--seed", "1") != 0
    assert "seed was 0 and is 1" in capsys.readouterr().err
    _tunes_by_them(names[0], tmp_path, capsys)


def _tunes_by_them(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`pdojo-tune` searches by the proposals, and refuses them where nothing is drawn by them."""
    words = ["reducesum:8x32", "--machine", "x86-64-avx2", "--no-measure", "--evaluator", "analytical", "--seed", "1"]
    words += ["--start", "plain", "--budget", "10", "--database", str(tmp_path / "runs.sqlite")]
    for strategy in ("evolve", "anneal", "perfllm"):
        assert tune([*words, "--search", strategy, "--proposals", f"learned:{model}"]) == 0
    capsys.readouterr()
    for more, message in (
        (["--neighbourhood", "edges"], "for the neighbourhood 'mutate'"),
        (["--proposals", "learned:none"], "cannot read the proposals 'none'"),
        (["--proposals", "model"], "proposals are uniform or learned:FILE"),
    ):
        given = [*words, "--search", "evolve", "--proposals", f"learned:{model}", *more]
        assert tune(given) != 0
        assert message in capsys.readouterr().err


def test_python_takes_proposals(tmp_path: Path) -> None:
    learned = stored_model(tmp_path)
    machine = pdojo.machine("x86-64-avx2")
    some: dict[str, Any] = {"evaluations": 6, "evaluator": "analytical", "start": "plain", "measure": False, "seed": 1}
    found = [
        pdojo.tune("reducesum:8x32", machine, search="evolve", proposals=each, neighbourhood="mutate", **some)
        for each in (learned, learned, "uniform")
    ]
    one, same, uniform = (each.found.result.history for each in found if each.found is not None)
    assert [row.cost for row in one] == [row.cost for row in same] != [row.cost for row in uniform]
    with pytest.raises(UsageError, match="proposals belongs to a search"):
        pdojo.tune("reducesum:8x32", machine, proposals=learned, measure=False)
    with pytest.raises(UsageError, match="for the neighbourhood 'mutate'"):
        pdojo.tune("reducesum:8x32", machine, search="evolve", proposals=learned, neighbourhood="edges", **some)


def test_wrong_models_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(b"nothing")
    with pytest.raises(UsageError, match="no proposals that can be used"):
        loaded_proposals(f"learned:{path}")
