"""What `import pdojo` offers: found, documented with examples that run, and clear about bad input."""

from __future__ import annotations

import doctest
import inspect
import pydoc
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pdojo
from pdojo.backends.measure import Ok
from pdojo.errors import (
    IllegalMove,
    InvalidKernel,
    LoweringError,
    MeasurementError,
    NotationError,
    PdojoError,
    UsageError,
)
from pdojo.search.database import Database
from pdojo.search.tuning import workflow as flow
from pdojo.search.tuning.timing import Timed
from pdojo.transforms.trace import Trace
from tuned_kernels import ADD, MACHINE, SOFTMAX

PUBLIC = [name for name in pdojo.__all__ if name != "__version__"]
TWO = f"{ADD}\n{ADD.replace('add_one', 'add_two')}"
IR = """pdojo.kernel @twice(in x %x : memref<8xf32>, out y %y : memref<8xf32>) {
  pdojo.scope %i = 8 {
    pdojo.op %y[%i] = arith.mulf(%x[%i], 2.0 : f32)
  }
}
"""


# Found


def test_everything_is_found() -> None:
    assert set(pdojo.__all__) <= set(dir(pdojo))
    assert not {"Any", "TYPE_CHECKING", "import_module"} & set(dir(pdojo))
    shown = pydoc.plain(pydoc.render_doc(pdojo))
    for name in PUBLIC:
        assert re.search(rf"\b{name}\b", shown), name
    assert re.fullmatch(r"\d+\.\d+\.\d+", pdojo.__version__)


@pytest.mark.parametrize("name", PUBLIC)
def test_examples(name: str) -> None:
    """Every function and class has one; errors are in the examples of what raises them."""
    value = getattr(pdojo, name)
    text = inspect.getdoc(value)
    assert text
    if isinstance(value, type) and issubclass(value, PdojoError):
        return
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    assert example.examples, name
    found = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example)
    assert found.failed == 0


def test_the_example_of_the_package() -> None:
    example = doctest.DocTestParser().get_doctest(pdojo.__doc__ or "", {}, "pdojo", None, None)
    assert doctest.DocTestRunner().run(example).attempted >= 3


def test_nothing_heavy_is_imported() -> None:
    program = """
import sys, time
start = time.perf_counter()
import pdojo
assert time.perf_counter() - start < 0.3
assert not {"numpy", "xdsl", "torch"} & set(sys.modules)
import numpy
pdojo.run("softmax:4x8")
pdojo.tune("softmax:4x8", expert="naive", measure=False)
assert "torch" not in sys.modules
assert callable(pdojo.kernels) and callable(pdojo.kernels)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


# Kernels and machines


def test_a_kernel_may_be_given_in_every_form(tmp_path: Path) -> None:
    path = tmp_path / "softmax.pdojo"
    path.write_text(SOFTMAX)
    x = np.random.default_rng(0).standard_normal((32, 64), np.float32)
    wanted = pdojo.run(pdojo.load("softmax:32x64"), x)
    for given in ("softmax:32x64", path, str(path), SOFTMAX, pdojo.parse(SOFTMAX), pdojo.game(SOFTMAX).kernel):
        np.testing.assert_array_equal(pdojo.run(given, x), wanted)
    np.testing.assert_array_equal(pdojo.run(IR, np.ones(8, np.float32)), np.full(8, 2, np.float32))


def test_one_of_several_kernels(tmp_path: Path) -> None:
    path = tmp_path / "two.pdojo"
    path.write_text(TWO)
    assert pdojo.load(path, "add_two").sym_name.data == pdojo.parse(TWO, "add_two").sym_name.data == "add_two"
    with pytest.raises(UsageError, match=r"two.pdojo has the kernels add_one, add_two; choose one: .* by name="):
        pdojo.load(path)
    with pytest.raises(UsageError, match="<text> has no kernel 'add'; it has add_one, add_two"):
        pdojo.parse(TWO, "add")


UNREADABLE: dict[str, tuple[Any, type[PdojoError], str]] = {
    "unknown": ("sofmax", UsageError, "no library kernel of that name; did you mean 'softmax'?"),
    "unknown sized": ("sofmax:4x8", UsageError, "no library kernel of that name; did you mean 'softmax'?"),
    "sizes": ("softmax:4x8x9", UsageError, "'4x8x9' has 3 sizes; softmax has "),
    "missing file": ("no/such.pdojo", UsageError, "there is no file 'no/such.pdojo'"),
    "missing path": (Path("softmax"), UsageError, "there is no file 'softmax'"),
    "folder": (Path("/"), UsageError, "'/' is a directory; give a file in it"),
    "mistake": (SOFTMAX.replace("max= x", "max= z"), NotationError, "<text>:10:18: error: unknown array 'z'"),
    "mistake in IR": (IR.replace("mulf", "mulx"), NotationError, "<text>:3:"),
    "header missing": (SOFTMAX.partition("\n")[2], NotationError, "<text>:1:1: error: expected the header of a kernel"),
    "statement only": ("8 y[{0}] = 0\n", NotationError, "<text>:1:1: error: expected the header of a kernel"),
    "empty": ("\n", UsageError, "<text> is empty"),
    "no kernel": ("builtin.module {\n}\n", UsageError, "<text> has no pdojo.kernel"),
    "no meaning": (ADD.replace("64 y", "32 y"), InvalidKernel, "'y'"),
    "no kernel at all": (7, UsageError, "this is a int"),
}


@pytest.mark.parametrize("case", UNREADABLE)
@pytest.mark.parametrize("function", [pdojo.compile, pdojo.run, pdojo.game, pdojo.tune])
def test_what_is_no_kernel(case: str, function: Any) -> None:
    given, error, text = UNREADABLE[case]
    with pytest.raises(error, match=re.escape(text)):
        function(given)


@pytest.mark.parametrize("function", [pdojo.compile, pdojo.run, pdojo.game, pdojo.tune])
def test_an_unknown_machine(function: Any) -> None:
    with pytest.raises(UsageError, match="unknown machine 'x86-64-avx'; did you mean 'x86-64-avx2'"):
        function("softmax:4x8", machine="x86-64-avx")


@pytest.mark.parametrize("function", [pdojo.compile, pdojo.run, pdojo.game, pdojo.tune])
def test_what_is_no_machine(function: Any) -> None:
    with pytest.raises(UsageError, match="a machine is a Machine or its name, and this is a int"):
        function("softmax:4x8", machine=4)


def test_the_class_of_games_takes_operations() -> None:
    with pytest.raises(UsageError, match=r"pdojo\.game also takes texts, paths and names"):
        pdojo.Game("softmax", pdojo.machine())  # pyright: ignore[reportArgumentType]


def test_a_game_is_no_kernel() -> None:
    with pytest.raises(UsageError, match="a game's kernel is its attribute `kernel`"):
        pdojo.compile(pdojo.game("softmax:4x8"))  # pyright: ignore[reportArgumentType]


def test_simulated_machines_run_and_are_not_called() -> None:
    x = np.array([[1, -1, 2, -2], [3, -3, 4, -4]], np.float32)
    y = np.zeros_like(x)
    assert pdojo.run("relu:2x4", x, y, machine="snitch") is y
    np.testing.assert_array_equal(y, np.maximum(x, 0))
    np.testing.assert_array_equal(pdojo.run("relu:2x4", machine="snitch"), pdojo.run("relu:2x4"))
    with pytest.raises(LoweringError, match="code for snitch runs on a simulator and cannot be called"):
        pdojo.compile("relu:2x4", "snitch")
    with pytest.raises(UsageError, match="array 'x' has shape 2x2, the kernel takes 2x4"):
        pdojo.run("relu:2x4", x[:, :2], machine="snitch")


def test_negative_seeds() -> None:
    for machine in (None, "snitch"):
        with pytest.raises(UsageError, match="a seed must be at least 0, not -1"):
            pdojo.run("relu:2x4", machine=machine, seed=-1)


def test_machines_that_have_no_code_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PDOJO_CUDA_DRIVER", "/nowhere.so")
    for machine, why in (("nvidia-sm90", "there is no driver for NVIDIA's GPUs here"), ("rv64gcv", "architecture")):
        for function in (pdojo.compile, pdojo.run):
            with pytest.raises(LoweringError, match=why):
                function("relu:2x4", machine=machine)


# What is shown


def test_short_texts() -> None:
    game = pdojo.game(SOFTMAX, MACHINE)
    assert repr(game) == f"<Game softmax on {MACHINE}: 0 moves made>"
    assert repr(pdojo.machine("snitch")) == "<Machine snitch, 1 thread>"
    executable = pdojo.compile(SOFTMAX, threads=3)
    assert repr(executable) == "<Executable softmax(in x f32[32, 64], out y f32[32, 64]), 3 threads>"


def test_html_shows_the_program_and_the_moves() -> None:
    game = pdojo.game("reducemax:4x8", MACHINE)
    game.apply(next(move for move in game.moves() if move.name == "tile_scope"))
    shown = game._repr_html_()  # pyright: ignore[reportPrivateUsage]  # what notebooks call
    assert f"{len(game.moves())} legal moves" in shown
    assert "1 moves made" not in shown
    assert "<code>tile_scope@" in shown
    assert "kernel reducemax(x) -&gt; (y)" in shown


# Tuning


class Recorder(pdojo.TuneListener):
    """What was told, by name."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def progress(self, progress: object) -> None:
        self.told.append("progress")

    def goes_on(self, search: object) -> None:
        self.told.append("goes on")

    def found(self, found: object) -> None:
        self.told.append("found")

    def chosen(self, tuning: object, note: str) -> None:
        self.told.append("chosen")

    def verified(self, decision: object) -> None:
        self.told.append("verified")

    def measured(self, timed: object) -> None:
        self.told.append("measured")


def analytical(**more: Any) -> pdojo.TuneResult:
    """A search that the model judges: nothing is run, and every process finds the same."""
    usual = {"expert": "naive", "search": "sample", "neighbourhood": "mutate", "evaluations": 12, "threads": 2}
    options: dict[str, Any] = {**usual, "evaluator": "analytical", "measure": False, **more}
    return pdojo.tune(SOFTMAX, MACHINE, **options)


def test_a_search_goes_on_in_its_database(tmp_path: Path) -> None:
    path, first, second = tmp_path / "db", Recorder(), Recorder()
    found = analytical(database=path, listener=first)
    assert "goes on" not in first.told
    assert first.told[-3:] == ["found", "chosen", "verified"]
    assert found.before is not None
    assert found.after is not None
    assert found.after <= found.before
    assert (found.unit, found.is_verified) == ("cycles", True)
    with Database(path) as database:
        again = analytical(evaluations=20, database=database, listener=second)
    assert second.told[0] == "goes on"
    assert again.found is not None
    assert again.found.result.progress.known >= 12
    whole = analytical(evaluations=20)
    assert str(whole.trace.moves) == str(again.trace.moves)


def test_what_was_tuned_runs() -> None:
    tuned = pdojo.tune(SOFTMAX, expert="naive", threads=1)
    assert re.fullmatch(r"<TuneResult softmax on host, 8 moves, .* s before, .* s after, verified>", repr(tuned))
    assert tuned._repr_html_().count("<li>") == len(tuned.trace.moves)  # pyright: ignore[reportPrivateUsage]
    x = pdojo.aligned(np.random.default_rng(0).standard_normal((32, 64), np.float32))
    wanted = pdojo.run(SOFTMAX, x)
    np.testing.assert_allclose(tuned.run(x), wanted, rtol=1e-5)
    np.testing.assert_allclose(tuned.compile()(x), wanted, rtol=1e-5)
    again = pdojo.tune(SOFTMAX, expert=None, trace=tuned.trace, threads=1, measure=False)
    assert again.before is None
    np.testing.assert_array_equal(again.run(x), tuned.run(x))


def test_a_wrong_trace(tmp_path: Path) -> None:
    with pytest.raises(IllegalMove, match="move 0 of the trace, reuse_dims@e:0: "):
        pdojo.tune(SOFTMAX, MACHINE, trace=Trace.parse("reuse_dims@e:0\n"))
    with pytest.raises(UsageError, match=r"missing\.trace"):
        pdojo.tune(SOFTMAX, MACHINE, trace=tmp_path / "missing.trace")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"search": "smaple"}, "unknown strategy 'smaple'; did you mean 'sample'?"),
        ({"search": "sample", "neighbourhood": "edge"}, "unknown neighbourhood 'edge'; did you mean 'edges'?"),
        ({"search": "sample", "start": "end"}, "a search starts from 'pass' or 'plain', not 'end'"),
        ({"search": "sample", "fresh": True, "seed": 1}, "leave out seed"),
        ({"search": "sample", "evaluator": "cycles"}, "knows nothing about programs for x86-64-avx2"),
        ({"search": "sample", "evaluations": -1}, "a budget of evaluations must be at least 0"),
        ({"evaluations": 10}, "evaluations belongs to a search; say which one with search="),
        ({"start": "plain"}, "start belongs to a search"),
        ({"expert": "best"}, "unknown pass 'best'; known are naive, greedy, heuristic"),
        ({"seed": -1}, "a seed is a number from 0 to 2^62, not -1"),
        ({"threads": 0}, "at least 1 thread, not 0"),
        ({"align": 3}, "an alignment is a power of two, not 3"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=re.escape(text)):
        pdojo.tune(SOFTMAX, MACHINE, **options)


def test_a_machine_that_this_is_not_is_not_searched_for() -> None:
    foreign = "aarch64-neon" if pdojo.machine().architecture == "x86_64" else MACHINE
    with pytest.raises(UsageError, match=f"machine '{foreign}' is of the architecture"):
        pdojo.tune(SOFTMAX, foreign, search="sample", evaluations=1)


def test_ctrl_c_in_the_search_keeps_the_best() -> None:
    class Impatient(Recorder):
        def progress(self, progress: Any) -> None:
            if progress.evaluations >= 5:
                raise KeyboardInterrupt

    listener = Impatient()
    found = analytical(evaluations=1000, measure=True, listener=listener)
    assert found.is_interrupted
    assert found.is_verified
    assert listener.told == ["found", "chosen", "verified"]


def test_ctrl_c_in_the_last_measurement_leaves_it_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> list[Timed]:
        raise KeyboardInterrupt

    monkeypatch.setattr(flow, "measure", interrupted)
    found = pdojo.tune(SOFTMAX, expert="naive")
    assert found.is_interrupted
    assert found.timed == []
    assert found.is_verified


def test_a_program_that_cannot_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from pdojo.backends.measure import CompileError

    def failed(programs: Any, *_: object) -> list[Timed]:
        (plain, _, _), (tuned, _, moves) = programs
        good = Ok((1.0,) * 3, 1, 1, 0.0, 0.0, None)
        return [Timed(plain, good, 0), Timed(tuned, CompileError("no"), moves)]

    monkeypatch.setattr(flow, "measure", failed)
    with pytest.raises(MeasurementError, match="the tuned program: "):
        pdojo.tune(SOFTMAX, expert="naive")
