"""Other libraries against the float64 meaning, at small shapes: every variant of every kernel."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.job import options_for
from benchmarks.peers import LIBRARIES, build, peers_of, reference_of, tvm_cache, variants
from benchmarks.unseen import unseen_names
from pdojo.backends.calling.arrays import aligned_empty, parameters_of
from pdojo.backends.llvm.worker import CpuWorker
from pdojo.backends.measure import MeasuredProgram, Ok, Peer, PhaseLimits, Worker
from pdojo.dialect.view.build import nest_of
from pdojo.errors import UsageError
from pdojo.kernels import LONG, Workload, kernel_names, workload
from pdojo.kernels.reference import numpy_reference
from sample import sampled, small_unseen

SMALL = {
    "attention": "3x5x7x8",
    "attention_online": "2x2x2x8x8x4,R=4,C=4",
    "avgpool": "2x3x8x10x3,S=2,P=1",
    "avgpool_ceil": "2x3x8x10x3,P=1",
    "batchnorm": "3x4x5x6",
    "bmm": "3x5x4x7",
    "bmm_broadcast_a": "3x5x4x7",
    "bmm_broadcast_b": "3x5x4x7",
    "causal_softmax": "3x17",
    "conv": "2x5x4x9x10x3,P=1,S=2",
    "conv_transpose": "2x5x4x5x6x3",
    "conv_winograd": "2x5x4x9x10",
    "depthwise_conv": "2x6x9x10x3,P=1",
    "dequant_matmul": "5x8x6",
    "grouped_conv": "2x6x9x7x8x3,G=3",
    "groupnorm": "3x6x5x4,G=3",
    "instancenorm": "3x4x5x6",
    "matmul": "5x8x6",
    "matmul_bf16": "5x8x6",
    "matmul_i8": "5x8x6",
    "matmul_nt": "5x8x6",
    "matmul_tn": "5x8x6",
    "matmul_tt": "5x8x6",
    "maxpool": "2x3x9x10x3",
    "maxpool_ceil": "2x3x9x10x3,P=1",
    "relu_ffn": "3x4x5x6",
    "rotary": "2x5x3x8",
    "rotary_interleaved": "2x5x3x8",
    "sumpool": "2x3x8x10x3,S=2,P=1",
    "swiglu": "1x5x8x6",
}
"""Sizes; 6 rows of 17 for all others."""


def small(name: str) -> Workload:
    if name in unseen_names():
        return small_unseen(name)
    return workload(f"{name}:{SMALL.get(name, '6x17')}")


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    limits = PhaseLimits(compile=300)
    with CpuWorker(limits=limits, peers="benchmarks.peers:build", references="benchmarks.peers:reference") as worker:
        yield worker


def skip_without(library: str) -> None:
    reason = LIBRARIES[library].missing
    if reason is not None:
        pytest.skip(f"{LIBRARIES[library].title}: {reason}")


def check(worker: Worker, found: Workload, peers: list[Peer]) -> None:
    # Results matter here, not times.
    options = replace(options_for(found, 1, samples=1, budget=0.01, cold=False, seed=0), steady=False)
    ours, *others = worker.compare([MeasuredProgram.of(found.instantiate()), *peers], options, reference_of(found))
    assert isinstance(ours, Ok)
    for peer, outcome in zip(peers, others, strict=True):
        assert isinstance(outcome, Ok), f"{peer.library}: {peer.variant}: {outcome}"
        assert outcome.check is not None
        assert outcome.check.relative < 1e-5


@pytest.mark.peers
@pytest.mark.parametrize("name", sampled())
@pytest.mark.parametrize("library", [name for name in LIBRARIES if name not in ("torch.compile", "tvm")])
def test_peers_compute_the_same(worker: Worker, library: str, name: str) -> None:
    skip_without(library)
    found = small(name)
    peers = peers_of(library, found)
    if not peers:
        pytest.skip(f"{LIBRARIES[library].title} is not compared on {name}")
    check(worker, found, peers)


@pytest.mark.peers
@pytest.mark.parametrize("name", sorted(LONG))
def test_long_kernels_have_a_peer(worker: Worker, name: str) -> None:
    skip_without("torch")
    found = small(name)
    peers = peers_of("torch", found)
    assert peers
    check(worker, found, peers)


@pytest.mark.peers
@pytest.mark.parametrize("name", unseen_names())
def test_expressions_of_unseen_kernels_compute_the_same(worker: Worker, name: str) -> None:
    skip_without("torch")
    found = small(name)
    check(worker, found, peers_of("torch", found))


@pytest.mark.peers
@pytest.mark.slow
@pytest.mark.parametrize("name", [*kernel_names(), *unseen_names()])
def test_compiled_peers_compute_the_same(worker: Worker, name: str) -> None:
    skip_without("torch.compile")
    found = small(name)
    peers = [peer for peer in peers_of("torch.compile", found) if peer.variant != "autotune"]
    if not peers:
        pytest.skip(f"torch.compile is not compared on {name}")
    check(worker, found, peers)


@pytest.mark.peers
def test_variants_are_those_of_the_implementations() -> None:
    skip_without("torch")
    from benchmarks.peers import plain_numpy, pytorch, pytorch_unseen

    assert sorted(pytorch_unseen.EXPRESSIONS) == list(unseen_names())
    assert pytorch.INTO.keys() == variants.TORCH_OUT
    assert {k: tuple(v) for k, v in pytorch.ALTERNATIVES.items()} == variants.TORCH_ALTERNATIVES
    assert plain_numpy.INTO.keys() == variants.NUMPY_OUT


@pytest.mark.peers
@pytest.mark.parametrize("library", ["torch", "onnxruntime", "jax", "numpy"])
def test_peers_take_f64(worker: Worker, library: str) -> None:
    skip_without(library)
    found = workload("softmax:6x17", "f64")
    check(worker, found, peers_of(library, found))


@pytest.mark.peers
@pytest.mark.parametrize("name", sorted(variants.TVM))
def test_tensor_expressions_mean_the_same(name: str) -> None:
    """Without a schedule, on one thread."""
    skip_without("tvm")
    from benchmarks.peers.tvm_tuning import definition_of, target

    tvm: Any = import_module("tvm")
    found = small(name)
    parameters = parameters_of(nest_of(found.instantiate()))
    arrays = [aligned_empty(p.shape, np.dtype(np.float32), 64) for p in parameters]
    for number, array in enumerate(arrays):
        array[...] = np.random.default_rng(number).standard_normal(array.shape)
    tvm.compile(definition_of(found), target=target(1))["main"](*map(tvm.runtime.from_dlpack, arrays))
    (expected,) = numpy_reference(found)(*(array.astype(np.float64) for array in arrays[:-1]))
    np.testing.assert_allclose(arrays[-1], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.peers
@pytest.mark.slow
def test_a_schedule_is_found_kept_and_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_without("tvm")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = workload("softmax:64x48")
    told: list[str] = []
    seconds = tvm_cache.tune(found, 1, 4, sorted(os.sched_getaffinity(0))[:1], told.append)
    assert seconds > 0
    assert told[-1].startswith("TVM: trial 4 of 4, best ")
    before = len(told)
    assert tvm_cache.tune(found, 1, 4, [], told.append) == seconds
    assert len(told) == before
    with CpuWorker(peers="benchmarks.peers:build", references="benchmarks.peers:reference") as worker:
        check(worker, found, peers_of("tvm", found, 4))


def test_a_tvm_candidate_that_ends_has_no_time() -> None:
    skip_without("tvm")
    from benchmarks.peers.tvm_tuning import Apart

    def broken() -> Callable[[], list[float]]:
        raise ValueError("no such thing")

    assert Apart(broken).prepared() == "ValueError: no such thing"
    fork = Apart(lambda: lambda: [1.0, 2.0])
    assert fork.prepared() is None
    assert fork.samples() == [1.0, 2.0]
    fork = Apart(lambda: lambda: [1.0])
    assert fork.prepared() is None
    os.kill(fork.process, signal.SIGKILL)
    os.waitid(os.P_PID, fork.process, os.WEXITED | os.WNOWAIT)
    assert fork.samples() == []


def test_a_schedule_that_nobody_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_without("tvm")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (peer,) = peers_of("tvm", workload("add:4x6"), 3)
    with pytest.raises(UsageError, match="TVM has no schedule for this"):
        build(peer, 1)


def test_trials_are_part_of_the_name() -> None:
    (peer,) = peers_of("tvm", workload("add:4x6"), 3)
    assert peer.variant == "MetaSchedule, 3 trials"
    assert tvm_cache.trials_of(peer.variant) == 3
    assert peers_of("tvm", workload("argmax")) == []
