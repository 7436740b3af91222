"""Cycles of other authors' programs for the micro-kernels, measured elsewhere on RTL."""

from __future__ import annotations

from dataclasses import dataclass

SOURCE = "measured on a Verilator model of one core complex (RTL of snitch_cluster, warm instruction cache)"


@dataclass(frozen=True)
class Baseline:
    """Another author's program for a micro-kernel."""

    kernel: str
    """The kernel in the form of `MicroKernel.text`."""
    dtype: str
    by: str
    """`handwritten`: assembly with streams and hardware loops; `xDSL`: its micro-kernel compiler; `gcc -O2`."""
    cycles: int


BASELINES = (
    Baseline("axpy:1x256", "f64", "gcc -O2", 2321),
    Baseline("axpy:1x256", "f64", "handwritten", 278),
    Baseline("dot:1x256", "f64", "handwritten", 293),
    Baseline("gemv:16x32", "f64", "gcc -O2", 2190),
    Baseline("matmul:16x16x16", "f64", "gcc -O2", 26764),
    Baseline("matmul:16x16x16", "f64", "handwritten", 4150),
    Baseline("matmul:8x8x8", "f64", "handwritten", 566),
    Baseline("matmul:8x8x8", "f64", "xDSL", 734),
    Baseline("matmul:16x16x16", "f32", "gcc -O2", 27864),
    Baseline("matmul:16x16x16", "f32", "handwritten", 4025),
    Baseline("batchnorm_folded:16x16", "f64", "handwritten", 363),
    Baseline("transpose:16x16", "f64", "gcc -O2", 1392),
    Baseline("transpose:16x16", "f64", "handwritten", 284),
    Baseline("layernorm:16x64", "f32", "gcc -O2", 37146),
    Baseline("relu:16x16", "f64", "xDSL", 282),
    Baseline("reducesum:1x128", "f64", "xDSL", 156),
    Baseline("fill:16x16", "f64", "xDSL", 280),
    Baseline("conv:1x1x1x10x10x3", "f64", "xDSL", 1286),
    Baseline("maxpool:1x1x10x10x3,S=1,P=0", "f64", "xDSL", 1155),
    Baseline("sumpool:1x1x10x10x3,S=1,P=0", "f64", "xDSL", 1185),
)
"""The table's rows by name: `naive` of the source is plain C by gcc -O2."""


def baselines_of(kernel: str, dtype: str) -> dict[str, int]:
    """Cycles by author."""
    return {each.by: each.cycles for each in BASELINES if (each.kernel, each.dtype) == (kernel, dtype)}
