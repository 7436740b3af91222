"""`python -m benchmarks.bench --machine snitch`: micro-kernels, figures, files; a few kernels only."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pdojo_tools import snitch

from benchmarks import bench
from benchmarks.records import Record, read_results
from benchmarks.snitch import compiler as compiling
from benchmarks.snitch.baselines import BASELINES, baselines_of
from benchmarks.snitch.compiler import c_source, compiled_outcome, find_compiler
from benchmarks.snitch.drawn.draw import drawn_kernels
from benchmarks.snitch.drawn.report import page_of
from benchmarks.snitch.figures import best, cycles_of, part_of_peak, summary
from benchmarks.snitch.kernels import DTYPES, MICRO_KERNELS, MicroKernel, chosen, required_operations
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.measure import CompileError, SimulatedOnSnitch
from pdojo.backends.measure.arrays import random_inputs
from pdojo.backends.snitch.backend import SnitchBackend
from pdojo.backends.snitch.targets import snitch_source
from pdojo.dialect.attributes import Numerics
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of
from pdojo.errors import MeasurementError, PdojoError, UsageError

SNITCH = machine("snitch")


@pytest.mark.parametrize("kernel", MICRO_KERNELS, ids=lambda kernel: kernel.text)
@pytest.mark.parametrize("dtype", DTYPES)
def test_micro_kernels(kernel: MicroKernel, dtype: str) -> None:
    """Each has code for its core, permits what it says, and uses a divider where it says so."""
    plain = kernel.instantiate(dtype)
    assert (Numerics.NUMBERS in plain.permitted) == kernel.has_maximum
    assert {Numerics.REASSOCIATES, Numerics.CONTRACTS} <= set(plain.permitted)
    text = snitch_source(plain, kernel.machine(SNITCH)).text
    assert bool(re.search(r"\b(fdiv|fsqrt)\.", text)) == kernel.divides
    maxima = [leaf for leaf in nest_of(plain).leaves if "arith.maximumf" in (leaf.function, leaf.accumulate)]
    assert bool(maxima) == kernel.has_maximum


def test_required_operations() -> None:
    """By hand."""
    wanted = {
        "fill:16x16": 256,
        "transpose:16x16": 256,
        "axpy:1x256": 256,
        "dot:1x256": 256,
        "reducesum:1x128": 128,
        "relu:16x16": 256,
        "sigmoid:16x16": 4 * 256,
        "gemv:16x32": 512,
        "matmul:16x16x16": 4096,
        "conv:1x1x1x10x10x3": 576,
        "maxpool:1x1x10x10x3,S=1,P=0": 576,
        "batchnorm_folded:16x16": 256,
        "reducemean:16x16": 256 + 16,
        "softmax:16x16": 5 * 256,
    }
    for kernel in MICRO_KERNELS:
        if kernel.text in wanted:
            found = {required_operations(nest_of(kernel.instantiate(dtype))) for dtype in DTYPES}
            assert found == {wanted[kernel.text]}, kernel.text


def test_names() -> None:
    assert chosen([]) == MICRO_KERNELS
    assert [k.text for k in chosen(["matmul", "matmul:8x8x8"])] == ["matmul:16x16x16", "matmul:8x8x8"]
    with pytest.raises(UsageError, match="'matmul:8x8' is no micro-kernel"):
        chosen(["matmul:8x8"])


def test_traces_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.snitch.kernels.TRACES", tmp_path)
    kernel = next(k for k in MICRO_KERNELS if k.text == "maxpool:1x1x10x10x3,S=1,P=0")
    assert kernel.trace("f64") is None
    for name in ("maxpool", "maxpool-f64", "maxpool-1x1x10x10x3-S1-P0", "maxpool-1x1x10x10x3-S1-P0-f64"):
        (tmp_path / f"{name}.trace").write_text("")
        assert kernel.trace("f64") == tmp_path / f"{name}.trace"
    assert kernel.trace("f32") == tmp_path / "maxpool-1x1x10x10x3-S1-P0.trace"


def test_baselines() -> None:
    """Each is of a micro-kernel; two of them are known by name."""
    known = {kernel.text for kernel in MICRO_KERNELS}
    assert {each.kernel for each in BASELINES} <= known
    assert baselines_of("matmul:8x8x8", "f64") == {"handwritten": 566, "xDSL": 734}
    assert baselines_of("matmul:8x8x8", "f32") == {}


def outcome(cycles: int) -> dict[str, Any]:
    return SimulatedOnSnitch(
        cycles=cycles, core_cycles=cycles, instructions=10, fpu_operations=8, flops=16, width=8, same_bits=True
    ).to_json()


def record(label: str, cycles: dict[str, int], baselines: dict[str, int], dtype: str = "f64") -> Record:
    rows = [{"library": "pdojo", "variant": k, "outcome": outcome(n)} for k, n in cycles.items()]
    rows.append({"library": "pdojo", "variant": "transformed", "outcome": CompileError("no").to_json()})
    rows.append({"library": "plain C", "variant": "gcc 12", "outcome": outcome(400)})
    facts = {"label": label, "threads": 1, "rows": rows, "baselines": baselines, "dtype": dtype}
    return Record.from_json({**facts, "required_operations": 100, "lanes": 2})


def test_figures() -> None:
    one = record("a", {"naive": 800, "greedy": 400, "heuristic": 200}, {"handwritten": 250})
    two = record("b", {"naive": 100, "greedy": 100, "heuristic": 100}, {"xDSL": 50}, "f32")
    winner = best(one)
    assert winner is not None
    assert winner[0] == "heuristic"
    assert best(two) is not None
    assert part_of_peak(one, 200) == 0.25
    assert [cycles_of(one, by) for by in ("naive", "handwritten", "plain C", "xDSL")] == [800, 250, 400, None]
    found = summary([one, two])
    means = {
        name: (mean["geometric_mean"], mean["kernels"]) for name, mean in found["means"].items() if mean["kernels"]
    }
    assert means["greedy over naive"] == (pytest.approx(2**0.5), 2)
    assert means["heuristic over naive"] == (pytest.approx(2.0), 2)
    assert means["heuristic over handwritten"] == (pytest.approx(1.25), 1)
    assert means["best over xDSL"] == (pytest.approx(0.5), 1)
    assert means["best over plain C"] == (pytest.approx(8**0.5), 2)
    assert means["heuristic over plain C"] == (pytest.approx(8**0.5), 2)
    assert [means[f"heuristic over plain C, {t}"] for t in ("f64", "f32")] == [(pytest.approx(n), 1) for n in (2, 4)]
    assert found["without_result"] == ["a: transformed", "b: transformed"]


def test_bench(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.snitch.run.find_compiler", lambda: None)
    output, folder = tmp_path / "out.json", tmp_path / "assembly"
    command = ["--machine", "snitch", "dot", "sigmoid", "--strategies", "greedy,naive", "--no-plots"]
    assert bench.main([*command, "-o", str(output), "--assembly", str(folder)]) == 0
    out = capsys.readouterr().out
    for text in ("no compiler for plain C", "Figure 8", "Figure 9", "dot 256 f64", "sigmoid 16x16 f32", "293", "exact"):
        assert text in out, text
    assert "on a core with a divider: sigmoid 16x16" in out
    data = json.loads(output.read_text())
    assert data["settings"]["strategies"] == ["naive", "greedy"]
    assert [r["label"] for r in data["records"]] == [f"{k} {t}" for k in ("dot:1x256", "sigmoid:16x16") for t in DTYPES]
    assert not list(tmp_path.glob("*.partial.jsonl"))
    index = json.loads((folder / "cycles.json").read_text())
    assert len(index) == 4
    dot = index["dot-1x256-f64.s"]
    assert abs(dot["cycles"] - dot["cycles_of_pdojo_snitch"]) < 20
    arguments = [word for each in dot["arguments"] for word in ("--arg", each)]
    assert snitch.main([str(folder / "dot-1x256-f64.s"), *arguments]) == 0
    assert re.search(rf"cycles +{dot['cycles_of_pdojo_snitch']}\b", capsys.readouterr().out)
    assert bench.main(["--show", str(output)]) == 0
    assert "Figure 9" in capsys.readouterr().out


def test_search_from_the_naive_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is beside the passes, and how often it reaches them is counted."""
    output = tmp_path / "out.json"
    chosen = ["dot", "--dtype", "f64", "--strategies", "search,naive,heuristic", "--evaluations", "4"]
    assert bench.main(["--machine", "snitch", *chosen, "--no-plots", "-o", str(output)]) == 0
    assert re.search(
        r"the search from the naive program reaches the heuristic pass on [01] of 1 kernels", capsys.readouterr().out
    )
    data = json.loads(output.read_text())
    (record,) = data["records"]
    cycles = {row["variant"]: row["outcome"]["cycles"] for row in record["rows"] if row["library"] == "pdojo"}
    assert cycles.keys() == {"naive", "heuristic", "search"}
    assert cycles["search"] <= cycles["naive"]
    assert data["summary"]["search"] == {"kernels": 1, "reached": int(cycles["search"] <= cycles["heuristic"])}


def _other(_: SnitchBackend) -> str:
    return "other"


def test_resuming(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is finished is not simulated again; another simulator does not go on."""
    monkeypatch.setattr("benchmarks.snitch.run.find_compiler", lambda: None)
    original = "benchmarks.snitch.run.measure"
    from benchmarks.snitch.run import measure

    done: list[str] = []

    def interrupted(kernel: MicroKernel, dtype: str, *rest: Any) -> Any:
        if len(done) == 1:
            done.append("")
            raise KeyboardInterrupt
        done.append(dtype)
        return measure(kernel, dtype, *rest)

    monkeypatch.setattr(original, interrupted)
    output = tmp_path / "out.json"
    command = ["--machine", "snitch", "copy", "--strategies", "naive", "--no-plots", "-o", str(output)]
    assert bench.main(command) == 130
    partial = tmp_path / "out.partial.jsonl"
    assert f"go on with --resume {partial}" in capsys.readouterr().out.replace("\n", "")
    with monkeypatch.context() as patch:
        patch.setattr(SnitchBackend, "version", _other)
        assert bench.main(["--resume", str(partial), "--no-plots"]) == 2
        assert "cannot resume: version was" in capsys.readouterr().err
    assert bench.main(["--resume", str(partial), "--no-plots"]) == 0
    assert done == ["f64", "", "f32"]
    assert len(json.loads(output.read_text())["records"]) == 2


def test_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = {
        ("--machine", "snitch", "--threads", "2"): "--threads is for processors that are measured",
        ("--machine", "snitch", "--pass", "naive"): "--pass is for processors",
        ("--machine", "snitch", "--dtype", "f16"): "micro-kernels have the types f64 and f32, not 'f16'",
        ("--machine", "snitch", "nothing"): "'nothing' is no micro-kernel",
        ("--machine", "nvidia-sm90"): "is no CPU: give host, another CPU, or a Snitch core",
        ("--assembly", "x"): "--assembly is for Snitch cores",
        ("--strategies", "naive"): "--strategies is for Snitch cores",
    }
    for args, message in wrong.items():
        assert bench.main([*args]) == 2
        assert message in capsys.readouterr().err


def test_plain_c_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_: str) -> None:
        return None

    monkeypatch.setattr("benchmarks.snitch.compiler.shutil.which", nothing)
    monkeypatch.setattr("benchmarks.snitch.compiler.find_spec", nothing)
    assert find_compiler() is None


def test_plain_c() -> None:
    """A compiler's code is run and checked like ours; what it cannot compile is a reason."""
    compiler = find_compiler()
    if compiler is None:
        pytest.skip(compiling.MISSING)
    try:
        compiler.assembly("int one(void) { return 1; }\n")
    except PdojoError as error:
        pytest.skip(str(error))
    for name in ("matmul:8x8x8", "relu:16x16"):
        (kernel,) = chosen([name])
        found = compiled_outcome(compiler, kernel.c_source("f64"), kernel.instantiate("f64"), SNITCH, 0)
        assert isinstance(found, SimulatedOnSnitch), found
        assert found.check is not None
    with pytest.raises(PdojoError, match="-O2: "):
        compiler.assembly("int main( {")


def test_c_source() -> None:
    (kernel,) = chosen(["matmul:8x8x8"])
    text = c_source(kernel.instantiate("f64"))
    assert "for (int32_t i0 = 0; i0 < 8; i0++)" in text
    assert "int64_t i" not in text
    assert "CONTRACT" not in text
    assert "fp-contract" not in text


def test_drawn_kernels() -> None:
    """A fixed seed draws the same kernels again, each at sizes of both kinds; NumPy agrees with the interpreter."""
    kernels = drawn_kernels()
    assert len({kernel.form.name for kernel in kernels}) >= 30
    assert len({kernel.text for kernel in kernels}) == len(kernels)
    assert kernels[0].text == "hardswish:120"
    for kernel, dtype in product(kernels, DTYPES):
        assert {size % 4 == 0 for size in kernel.sizes.values()} == {kernel in kernels[::2]}
        nest = nest_of(kernel.instantiate(dtype))
        inputs = random_inputs(parameters_of(nest), 1)
        found = interpret(nest, inputs)
        outputs = {p.name: found[p.name] for p in parameters_of(nest) if p.written}
        kernel.check(dtype, inputs, outputs)
        last = list(outputs)[-1]
        with pytest.raises(MeasurementError, match="differs from NumPy's"):
            kernel.check(dtype, inputs, {**outputs, last: outputs[last] + 1})


def test_bench_of_drawn_kernels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Plain C compiles, if a compiler is there, and has the interpreter's results."""
    output = tmp_path / "out.json"
    names = [kernel.text for kernel in drawn_kernels()[::8]]
    command = ["--machine", "snitch", "--drawn", *names, "--dtype", "f32", "--strategies", "naive", "-o", str(output)]
    assert bench.main(command) == 0
    assert "naive, f32:" in capsys.readouterr().out
    settings, records = read_results(output)
    assert settings["drawn"]
    for record in records:
        plain = [row for row in record.rows if row.library == "plain C"]
        assert len(plain) == (settings["compiler"] is not None)
        assert all(isinstance(row.outcome, SimulatedOnSnitch) for row in plain), record.label
    page = page_of(records)
    assert page.count("\n| ") == len(records) + 2
    assert bench.main(["--machine", "snitch", "--drawn", "matmul"]) == 2
    assert bench.main(["--drawn"]) == 2
    assert "--drawn is for Snitch cores" in capsys.readouterr().err
