"""Sums over rows beside other nests over the rows, as in the gradients of a layer norm."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import pdojo
from pdojo import build
from pdojo.build import Array
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.nest import Scope
from pdojo.kernels import workload
from pdojo.passes.scheduled_kernel import PASS, assume_alignment, make_moves
from qa.audited import layer_norm_gradients


def gradients(rows: int, columns: int) -> KernelOp:
    return assume_alignment(layer_norm_gradients(rows, columns), None)


def test_rows_are_read_in_one_nest() -> None:
    tuned = make_moves(gradients(4096, 1024), replace(machine("x86-64-avx512"), threads=2), PASS)
    nest = tuned.game.program.nest
    readers = {id(leaf.chain[0]) for leaf in nest.leaves if {"g", "x"} & {r.array.name for r in leaf.reads}}
    assert len(readers) == 1
    (root,) = (node for node in nest.children if id(node) in readers)
    assert isinstance(root, Scope)
    assert root.mapping is Mapping.PARALLEL


@pytest.mark.parametrize("sizes", ["3072x4096", "40x12000", "700x333"])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "layernorm", "rmsnorm", "residual_layernorm"])
def test_rows_of_norms_are_read_in_one_nest(name: str, sizes: str) -> None:
    """Sums of squares are contractions, whose rows nothing reuses: threads share rows, not terms."""
    kernel = assume_alignment(workload(f"{name}:{sizes}").instantiate(), None)
    nest = make_moves(kernel, replace(machine("x86-64-avx512"), threads=2), PASS).game.program.nest
    roots = {leaf.chain[0].id: leaf.chain[0] for leaf in nest.leaves if "x" in {r.array.name for r in leaf.reads}}
    assert [root.mapping for root in roots.values()] == [Mapping.PARALLEL]


@pytest.mark.parametrize(("rows", "columns", "threads"), [(512, 70, 2), (513, 70, 2), (1024, 33, 4), (512, 64, 1)])
def test_results(rows: int, columns: int, threads: int) -> None:
    kernel = gradients(rows, columns)
    described = replace(machine("x86-64-avx2"), threads=threads)
    tuned = make_moves(kernel, described, PASS).after
    inputs = {name: pdojo.aligned(each) for name, each in pdojo.compile(kernel).random_inputs().items()}
    wanted = pdojo.run(kernel, *inputs.values())
    found = pdojo.run(tuned, *inputs.values())
    for ours, right in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(ours), np.asarray(right), rtol=1e-3, atol=1e-3)


def test_a_sum_alone_takes_several_rows_at_a_time() -> None:
    x = build.input("x", "f32", (4096, 1024))
    total: Array = build.sum(x, axis=0)
    kernel = assume_alignment(build.kernel("total", [x], [total]), None)
    tuned = make_moves(kernel, replace(machine("x86-64-avx512"), threads=2), PASS)
    sums = [leaf for leaf in tuned.game.program.nest.leaves if "x" in {read.array.name for read in leaf.reads}]
    assert all(4 in {s.extent for s in leaf.chain if s.mapping is Mapping.UNROLL} for leaf in sums)
