"""Other libraries against the float64 meaning, at small shapes: every variant of every kernel."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pdojo_tools.benchmarking.job import options_for
from pdojo_tools.peers import LIBRARIES, peers_of, reference_of

from pdojo.backends.measure import Limits, Ok, Peer, Program, Worker
from pdojo.kernels import Workload, kernel_names, workload

SMALL = {
    "attention": "3x5x7x8",
    "avgpool": "2x3x8x10x3,S=2,P=1",
    "batchnorm": "3x4x5x6",
    "bmm": "3x5x4x7",
    "conv": "2x5x4x9x10x3,P=1,S=2",
    "depthwise_conv": "2x6x9x10x3,P=1",
    "dequant_matmul": "5x8x6",
    "matmul": "5x8x6",
    "matmul_bf16": "5x8x6",
    "matmul_i8": "5x8x6",
    "maxpool": "2x3x9x10x3",
    "relu_ffn": "3x4x5x6",
    "rotary": "2x5x3x8",
    "swiglu": "1x5x8x6",
}
"""Sizes; 6 rows of 17 for all others."""


def small(name: str) -> Workload:
    return workload(f"{name}:{SMALL.get(name, '6x17')}")


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    limits = Limits(compile=300)
    with Worker(limits=limits, peers="pdojo_tools.peers:build", references="pdojo_tools.peers:reference") as worker:
        yield worker


def skip_without(library: str) -> None:
    reason = LIBRARIES[library].missing
    if reason is not None:
        pytest.skip(f"{LIBRARIES[library].title}: {reason}")


def check(worker: Worker, found: Workload, peers: list[Peer]) -> None:
    options = options_for(found, 1, samples=1, budget=0.01, cold=False, seed=0)
    ours, *others = worker.compare([Program.of(found.instantiate()), *peers], options, reference_of(found))
    assert isinstance(ours, Ok)
    for peer, outcome in zip(peers, others, strict=True):
        assert isinstance(outcome, Ok), f"{peer.library}: {peer.variant}: {outcome}"
        assert outcome.check is not None
        assert outcome.check.relative < 1e-5


@pytest.mark.peers
@pytest.mark.parametrize("name", kernel_names())
@pytest.mark.parametrize("library", [name for name in LIBRARIES if name != "torch.compile"])
def test_peers_compute_the_same(worker: Worker, library: str, name: str) -> None:
    skip_without(library)
    found = small(name)
    peers = peers_of(library, found)
    if not peers:
        pytest.skip(f"{LIBRARIES[library].title} is not compared on {name}")
    check(worker, found, peers)


@pytest.mark.peers
@pytest.mark.slow
@pytest.mark.parametrize("name", kernel_names())
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
    from pdojo_tools.peers import plain_numpy, pytorch, variants

    assert pytorch.INTO.keys() == variants.TORCH_OUT
    assert {k: tuple(v) for k, v in pytorch.ALTERNATIVES.items()} == variants.TORCH_ALTERNATIVES
    assert plain_numpy.INTO.keys() == variants.NUMPY_OUT


@pytest.mark.peers
@pytest.mark.parametrize("library", ["torch", "onnxruntime", "jax", "numpy"])
def test_peers_take_f64(worker: Worker, library: str) -> None:
    skip_without(library)
    found = workload("softmax:6x17", "f64")
    check(worker, found, peers_of(library, found))
