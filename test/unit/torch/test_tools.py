"""`pdojo-tune --torch`, its report of a model, and the option `tune`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from pdojo_tools import torch_models
from pdojo_tools.tune import main as tune

from pdojo.errors import UsageError
from pdojo.search.database import Database
from pdojo.torch import explain

MODEL = """
import torch


def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 4)).eval(), [torch.ones(2, 4)]


def function():
    return lambda x: torch.special.i0(torch.relu(x)), torch.ones(3)


def wrong():
    return 3
"""


@pytest.fixture(autouse=True)
def _no_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PDOJO_DATABASE", str(tmp_path / "searches.db"))
    torch._dynamo.reset()
    torch_models.torch_model.cache_clear()
    yield
    torch._dynamo.reset()


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "small.py"
    path.write_text(MODEL)
    return str(path)


def test_the_kernels_of_a_model_are_tuned(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_models, "SECONDS", 0.0)
    report = tmp_path / "report.html"
    words = ["--torch", f"{file}:net", "--no-measure", "--pass", "naive", "--report", str(report)]
    assert tune([*words, "-o", str(tmp_path / "traces")]) == 0
    assert capsys.readouterr().out.count("exact oracle: the same meaning") == 2
    assert sorted(path.name for path in (tmp_path / "traces").iterdir()) == [
        "net-0-addmm_relu.trace",
        "net-1-addmm.trace",
    ]
    text = report.read_text()
    assert "<h2>net</h2>" in text
    assert text.index("<h2>net</h2>") < text.index("net:0:addmm_relu</a>")
    assert "<summary>addmm_relu</summary><pre><code>kernel addmm_relu(x, " in text
    assert "aten.addmm.default, aten.relu.default" in text
    assert "PyTorch: median " in text


def test_a_function_of_a_module_and_calls_of_pytorch(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(torch_models, "SECONDS", 0.0)
    html = torch_models.sections(["small:function"], None, with_inductor=False)
    assert "aten.special_i0.default (no kernel is known for this operator)" in html or "aten.i0.default" in html
    assert tune(["--torch", "small:function", "--why"]) == 0
    assert "\nwhy: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--torch", "FILE"], "names no function; write MODULE:FUNCTION or FILE.py:FUNCTION"),
        (["--torch", "FILE:nets"], "has no function 'nets'"),
        (["--torch", "FILE:wrong"], "returns no pair of a module and a list of inputs"),
        (["--torch", "no/such.py:net"], "there is no file 'no/such.py'"),
        (["--torch", "no_such_module:net"], "there is no module 'no_such_module'"),
        (["--torch", "FILE:net", "--dtype", "f32"], "--dtype is for kernels; "),
        (["--torch", "FILE:net", "--shape", "4"], "--shape is for kernels; "),
        (["softmax:4x8", "--inductor"], "--inductor belongs to --torch and --report"),
    ],
)
def test_wrong_words_are_refused(file: str, words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert tune([word.replace("FILE", file) for word in words]) == 2
    assert message in capsys.readouterr().err


def test_a_search_stores_what_later_compilations_take(tmp_path: Path) -> None:
    path = str(tmp_path / "own.db")
    searched = {"tune": "search", "budget": "1", "database": path}
    x = torch.randn(64)

    def function(x: object) -> object:
        return torch.relu(x) + 1

    for options in (searched, {"database": path}):
        ours = torch.compile(function, backend="pdojo", options=options)
        torch.testing.assert_close(ours(x), function(x))
        torch._dynamo.reset()
    assert len(explain(function, x, options=searched).kernels) == 1
    with Database(path, create=False) as database:
        assert database.connection.only("SELECT count(*) AS runs FROM runs")["runs"] == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = (\n", r"raises SyntaxError: '\(' was never closed \(code\.py, line 1\)$"),
        ("\ndef f():\n    return 1 / 0\n", r"raises ZeroDivisionError: division by zero \(.*code\.py, line 3\)$"),
        ("import torch\n\ndef f():\n    torch.ones(2).view(3)\n", r"raises RuntimeError: .*code\.py, line 4\)$"),
        ("import no_such_package\n", r"raises ModuleNotFoundError: No module named 'no_such_package' .*line 1\)$"),
    ],
)
def test_code_that_fails(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "code.py"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        torch_models.torch_model(f"{path}:f")
