"""The kernels that are in no library: their texts, their meanings, and the benchmark's option."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import bench, runs
from benchmarks.peers import as_text, peers_of, reference
from benchmarks.unseen import UnseenWorkload, unseen, unseen_names, workload_from
from benchmarks.unseen.references import REFERENCES
from benchmarks.work import work_of
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.measure.arrays import random_inputs
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of
from pdojo.errors import UsageError
from pdojo.kernels import kernel_names, workload
from sample import small_unseen

USERS = Path(__file__).parents[2] / "differential" / "user_kernels"


def test_twenty_kernels_are_in_no_library() -> None:
    assert len(unseen_names()) == 20
    assert sorted(REFERENCES) == list(unseen_names())
    assert not set(unseen_names()) & {*kernel_names(), *(path.stem for path in USERS.glob("*.pdojo"))}


@pytest.mark.parametrize("name", unseen_names())
def test_kernels_are_of_a_realistic_size(name: str) -> None:
    kernel = unseen(name).instantiate()
    assert kernel.sym_name.data == name
    work = work_of(unseen(name))
    assert 4e6 <= work.bytes <= 1e8
    assert 1e6 <= work.operations <= 5e9


@pytest.mark.parametrize("name", unseen_names())
def test_kernels_have_their_meaning(name: str) -> None:
    found = small_unseen(name)
    nest = nest_of(found.instantiate())
    inputs = random_inputs(parameters_of(nest), 1)
    (got,) = interpret(nest, inputs).values()
    (expected,) = reference(as_text(found))(*inputs.values())
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, 1e-5, 1e-5)


def test_operations_are_those_of_the_text() -> None:
    found = UnseenWorkload("pointwise_conv_nhwc", (("N", 1), ("H", 2), ("W", 3), ("C", 5), ("O", 7)))
    work = work_of(found)
    assert work.operations == 6 * 7 * (2 * 5 + 2)


def test_workloads_are_read_again() -> None:
    for found in (small_unseen("mish"), unseen("mish"), workload("softmax:6x17")):
        again = workload_from(found.to_json())
        assert again == found
        assert type(again) is type(found)


def test_peers_are_those_of_pytorch() -> None:
    found = unseen("mish")
    assert [peer.variant for peer in peers_of("torch", found)] == ["eager"]
    assert [peer.variant for peer in peers_of("torch.compile", found)] == ["fresh", "out", "autotune"]
    assert not any(peers_of(library, found) for library in ("onnxruntime", "jax", "numpy", "tvm"))


@pytest.mark.parametrize(("names", "expected"), [([], unseen_names()), (["mish", "conv_time"], ("mish", "conv_time"))])
def test_the_benchmark_takes_them(names: list[str], expected: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[tuple[str, ...]] = []

    def create(_: object, settings: bench.JSON) -> None:
        begun.append(tuple(each["label"] for each in settings["workloads"]))
        raise KeyboardInterrupt

    monkeypatch.setattr(runs.Partial, "create", create)
    bench.main(["--unseen", *names, "--peers", "none", "--threads", "1", "-o", "r.json"])
    assert begun == [expected]


def test_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """At a small size, through the worker and the files."""
    monkeypatch.setattr(bench, "unseen", small_unseen)
    target = tmp_path / "r.json"
    quick = ["--peers", "none", "--samples", "1", "--budget", "0.01", "--no-plots", "--no-race", "--threads", "1"]
    assert bench.main(["--unseen", "weighted_heads", *quick, "-o", str(target)]) == 0
    settings, (found,) = runs.read_results(target)
    shown = capsys.readouterr().out
    assert "weighted_heads" in shown
    assert "pass ms" in shown
    assert str(settings["environment"]["processor"]) in shown
    assert found.median is not None
    assert workload_from(found.data["workload"]) == small_unseen("weighted_heads")


def test_unknown_kernels() -> None:
    with pytest.raises(UsageError, match="unknown kernel 'mist'; did you mean 'mish'"):
        unseen("mist")
