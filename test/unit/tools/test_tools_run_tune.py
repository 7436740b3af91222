"""`pdojo-run`, `pdojo-tune`, the demo's parts, bandwidth: results, files, one message per mistake."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from pdojo_tools import opt, run, running, tune
from pdojo_tools.programs import machine_for

from benchmarks import demo
from pdojo.backends.calibration.bandwidth import copy_bandwidth
from pdojo.backends.llvm.worker import CpuWorker
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.machines.registry import host, machine
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.errors import IllegalMove, UsageError
from pdojo.kernels.reference import numpy_reference
from pdojo.passes.scheduled_kernel import make_moves
from pdojo.transforms.trace import Trace
from tuned_kernels import SOFTMAX

Tool = Callable[[Sequence[str]], int]


@pytest.fixture
def softmax(tmp_path: Path) -> Path:
    path = tmp_path / "softmax.pdojo"
    path.write_text(SOFTMAX)
    return path


@pytest.mark.parametrize("source", ["library", "file"])
def test_a_stored_trace_applies_in_every_tool(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With nothing but the trace: what it assumes of the callers is in it."""
    kernel = "layernorm:16x64"
    if source == "file":
        assert opt.main([kernel, "-t", "notation", "-o", str(tmp_path / "plain.pdojo")]) == 0
        text = (tmp_path / "plain.pdojo").read_text().replace(" align 64", "")
        kernel = str(tmp_path / "plain.pdojo")
        Path(kernel).write_text(text)
    trace, tuned = str(tmp_path / "t.trace"), tmp_path / "tuned.pdojo"
    on = ["--machine", "host"]
    tuning = [kernel, *on, "--align", "128", "--no-measure", "-o", trace, "--emit", str(tuned)]
    assert tune.main(tuning) == 0, capsys.readouterr().err
    assert Trace.load(trace).alignments == (128,)
    assert opt.main([kernel, *on, "--apply-trace", trace, "-t", "notation", "-o", str(tmp_path / "again")]) == 0
    again, emitted = ((tmp_path / name).read_text() for name in ("again", "tuned.pdojo"))
    assert again.replace("machine host\n", "") == emitted
    capsys.readouterr()
    assert run.main([kernel, "--trace", trace, "--no-time"]) == 0
    assert "right: agrees" in capsys.readouterr().out


def test_a_trace_that_assumes_more_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.trace"
    path.write_text("# pdojo trace 1\nkernel relu\nalign 64\nnumerics flush\nvectorize@y:0\nvectorize@y:0\n")
    for tool, option in ((opt.main, "--apply-trace"), (run.main, "--trace"), (tune.main, "--trace")):
        assert tool(["relu:2x3", "--align", "4", option, str(path)]) == 1
        said = capsys.readouterr().err
        assert "; the trace was found for arrays aligned to 64 bytes, and here they are aligned to 4 bytes" in said
        assert "; the trace was found for a kernel that permits flush, which this one does not" in said


def test_run_checks_and_times(softmax: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([str(softmax), "--threads", "1"]) == 0
    out = capsys.readouterr().out
    assert "kernel 'softmax' on host, 1 thread, compiled" in out
    assert "right: agrees with the interpreter" in out
    assert "GB/s" in out


def test_plain_code_is_the_reference_of_a_large_trace(
    softmax: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The output says so; without moves, the code would be compared with itself."""
    monkeypatch.setattr(running, "INTERPRETED", 0)
    trace = tmp_path / "a.trace"
    for moves, reference in (("join_scopes@e#0:0\n", "plain kernel's code, which no moves"), ("", "interpreter; ")):
        trace.write_text(f"# pdojo trace 1\n{moves}")
        assert run.main([str(softmax), "--trace", str(trace), "--no-time"]) == 0
        assert f"right: agrees with the {reference}" in capsys.readouterr().out
    assert run.main([str(softmax), "--no-time"]) == 0
    assert "right: agrees with the interpreter; " in capsys.readouterr().out


def test_run_saves_arrays(softmax: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "arrays.npz"
    target.write_text("old")
    assert run.main([str(softmax), "--no-check", "--no-time", "--seed", "3", "-o", str(target)]) == 0
    assert f"saved inputs and outputs in {target}" in capsys.readouterr().out
    with np.load(target, allow_pickle=False) as arrays:
        assert sorted(arrays) == ["x", "y"]
        (right,) = numpy_reference("softmax")(arrays["x"])
        np.testing.assert_allclose(arrays["y"], right, rtol=1e-5)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["arrays.npz", "softmax.pdojo"]


def test_run_replays_a_trace(softmax: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "a.trace"
    trace.write_text("# pdojo trace 1\njoin_scopes@e#0:0\n")
    assert run.main([str(softmax), "--trace", str(trace), "--no-time"]) == 0
    shown = capsys.readouterr()
    assert "right" in shown.out
    assert "a.trace: made 1 move\n" in shown.err
    trace.write_text("# pdojo trace 1\njoin_scopes@e#0:0\nunroll@nothing:1\n")
    assert run.main([str(softmax), "--trace", str(trace), "--no-time"]) == 1
    assert "move 1 of the trace, unroll@nothing:1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        (
            ["softmux"],
            2,
            "error: there is no file 'softmux' and no library kernel of that name; did you mean 'softmax'",
        ),
        (["no/such.pdojo"], 2, "error: there is no file 'no/such.pdojo'"),
        (["softmax", "--machine", "cray"], 2, "error: unknown machine 'cray'; known: host"),
        (["softmax", "--threads", "0"], 2, "argument --threads: '0' is no number from 1 to 2^31 - 1; see pdojo-"),
        (["softmax", "--trace", "none.trace"], 2, "error: cannot read the trace 'none.trace'"),
        (["softmax", "--kernel", "other"], 2, "has no kernel 'other'; it has softmax"),
        (["softmax", "--frobnicate"], 2, "error: there is no option '--frobnicate'"),
        (["two.pdojo"], 2, "two.pdojo has the kernels a, b; choose one: with --kernel"),
        (["bad.pdojo"], 1, "bad.pdojo:1:1: error: "),
        (["unwritten.pdojo"], 1, "output 'y' is never written at [0]"),
        (["none.mlir"], 2, "none.mlir has no pdojo.kernel"),
    ],
)
@pytest.mark.parametrize("tool", [run.main, tune.main])
def test_mistakes(
    tool: Tool,
    args: list[str],
    code: int,
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    one = "kernel {}(x) -> (y)\nx f32 [4] heap\ny f32 [4] heap\n\n4 y[{{0}}] = x[{{0}}]\n"
    Path("two.pdojo").write_text(one.format("a") + one.format("b"))
    Path("bad.pdojo").write_text("kernl a(x) -> (y)\n")
    Path("unwritten.pdojo").write_text(one.format("a").replace("y[{0}]", "y[{0}*0 + 1]"))
    Path("none.mlir").write_text("builtin.module {}\n")
    assert tool(args) == code
    err = capsys.readouterr().err
    assert text in err
    assert "Traceback" not in err


def test_run_with_nothing_to_do(softmax: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([str(softmax), "--no-check", "--no-time"]) == 2
    assert "nothing is left to do" in capsys.readouterr().err


def test_run_names_a_target_that_cannot_be_written(softmax: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([str(softmax), "--no-check", "--no-time", "-o", "/no/such/folder/a.npz"]) == 2
    assert "error: cannot write '/no/such/folder/a.npz'" in capsys.readouterr().err


def test_tune_shows_verifies_measures_and_stores(
    softmax: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace, tuned = tmp_path / "best.trace", tmp_path / "tuned.pdojo"
    args = [str(softmax), "--pass", "naive", "--threads", "1", "-o", str(trace), "--emit", str(tuned)]
    assert tune.main(args) == 0
    out = capsys.readouterr().out
    for text in (
        "callers align arrays to 64 bytes",
        "before",
        "after",
        "trace: ",
        "exact oracle",
        "median ms",
        "right",
    ):
        assert text in out
    moves = Trace.load(trace).steps
    assert moves
    kernel = parse_notation(SOFTMAX)[0]
    again = make_moves(with_alignment(kernel, 64), host(), None, Trace.load(trace))
    assert print_notation(again.after) == tuned.read_text()


def test_tune_replays_a_trace_before_the_pass(
    softmax: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "a.trace"
    trace.write_text("# pdojo trace 1\ntile_scope@y:1{size=16}\n")
    assert tune.main([str(softmax), "--pass", "none", "--trace", str(trace), "--no-measure"]) == 0
    assert "trace: 1 moves" in capsys.readouterr().out
    assert tune.main([str(softmax), "--align", "48"]) == 2
    assert "an alignment is a power of two, not 48" in capsys.readouterr().err


def test_alignment_is_declared_on_a_copy() -> None:
    kernel = parse_notation("kernel k(x) -> (y)\nx f64 [4] heap align 128\ny f64 [4] heap\n\n4 y[{0}] = x[{0}]\n")[0]
    text = print_notation(kernel)
    aligned = print_notation(with_alignment(kernel, 32))
    assert "x f64 [4] heap align 128" in aligned
    assert "y f64 [4] heap align 32" in aligned
    assert print_notation(kernel) == text
    with pytest.raises(UsageError, match="power of two"):
        with_alignment(kernel, 0)


def test_a_trace_that_does_not_apply_names_the_move() -> None:
    kernel = parse_notation(SOFTMAX)[0]
    with pytest.raises(IllegalMove, match="move 0 of the trace"):
        make_moves(kernel, machine("toy"), None, Trace.parse("vectorize@y:1\n"))


WINDOWS = """
kernel windows(x) -> (y)
x f32 [4098] heap
y f32 [4096] heap
t f32 [4096, 3] heap

4096 3 t[{0},{1}] = x[{0}+{1}]
4096
| y[{0}] = 0
| 3 y[{0}] += t[{0},{1}]
"""


@pytest.mark.parametrize(("moves", "stored"), [("join_scopes@t:0", True), ("split_reduction@y:1{size=2}", False)])
def test_what_nothing_verified_is_not_stored(
    moves: str, stored: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sizes without names, and indices that do not tell them: only integer sets can judge it."""
    kernel, trace, out = (tmp_path / name for name in ("w.pdojo", "w.trace", "tuned.pdojo"))
    kernel.write_text(WINDOWS.replace("4096", "40960").replace("4098", "40962"))
    trace.write_text(f"# pdojo trace 1\n{moves}\n")
    given = [str(kernel), "--machine", "neoverse-v2", "--pass", "none", "--trace", str(trace), "--no-measure"]
    assert tune.main([*given, "--emit", str(out)]) == (0 if stored else 1)
    said = capsys.readouterr()
    assert (
        "exact oracle: not applicable, its sizes cannot be changed; integer sets find no fault in races, " in said.out
    )
    assert ("; not checked: instances, flow" in said.out) is not stored
    assert out.exists() is stored
    if not stored:
        assert "error: not stored: the program was not verified; without --no-measure it is run" in said.err
        assert tune.main(given) == 0
        assert "so it is not stored" in capsys.readouterr().out


def test_copy_bandwidth() -> None:
    with CpuWorker() as worker:
        found = copy_bandwidth(1 << 20, 1, worker)
    assert found.footprint == 1 << 20
    assert found.bytes_per_second > 1e8


def test_the_manual_trace_follows_the_vectors() -> None:
    assert demo.manual_trace(machine("toy")) is None
    for name in ("x86-64-avx512", "x86-64-avx2"):
        path = demo.manual_trace(machine(name))
        assert path is None or path.name == f"softmax-{name}.trace"


def test_machine_for_follows_the_kernel_and_the_threads() -> None:
    kernel = parse_notation(SOFTMAX.replace("x f32", "machine x86-64-avx2\nx f32", 1))[0]
    assert machine_for(kernel, None, None).name == "x86-64-avx2"
    assert machine_for(kernel, "toy", 3).threads == 3


def test_ctrl_c_ends_cleanly(softmax: Path, tmp_path: Path) -> None:
    slow = tmp_path / "slow.pdojo"
    slow.write_text(
        "kernel slow(x) -> (y)\nx f32 [1] heap\ny f32 [1] heap\n\n"
        "1000\n| y[{0}-{0}] = 0\n| 1000 1000 1000 y[{0}-{0}] += x[{0}-{0}]\n"
    )
    command = [sys.executable, "-m", "pdojo_tools.run", str(slow), "--no-check"]
    # A shell's background jobs ignore the signal, and what they start inherits that.
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        time.sleep(4)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    # The phase that was interrupted has shown itself before.
    assert (process.returncode, out, err.splitlines()[-1]) == (130, "", "interrupted")
