"""Versions that the expert pass advises, and tuning of kernels with versions."""

import io
from pathlib import Path

import numpy as np
import pytest
from pdojo_tools.tune import main

import pdojo
from pdojo.backends.versions import VersionedKernel
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import print_notation
from pdojo.kernels import workload
from pdojo.passes.scheduled_kernel import make_moves
from pdojo.passes.versions import advised_versions


def advised(kernel: str) -> list[dict[str, tuple[int, int]]]:
    found = advised_versions(workload(kernel).instantiate(), machine("x86-64-avx2"))
    return [] if found is None else [{n: (s.low, s.high) for n, s in nest.sizes.items()} for nest in found.nests]


def test_few_rows_and_small_products_get_versions() -> None:
    assert advised("matmul:1..100x512x512") == [{"M": (1, 1)}, {"M": (1, 8)}, {"M": (1, 100)}]
    small = {"M": (1, 32), "K": (1, 32), "N": (1, 32)}
    every = {"M": (1, 90), "K": (1, 90), "N": (1, 90)}
    assert advised("matmul:1..90x1..90x1..90") == [every | {"M": (1, 1)}, every | {"M": (1, 8)}, small, every]
    assert advised("matmul:8..64/8x64x64") == [{"M": (8, 8)}, {"M": (8, 64)}]


def test_rows_beyond_the_caches_get_a_version_that_stores_past_them() -> None:
    parts = advised("layernorm:1..4096x768")
    assert parts == [{"R": (1, 2729)}, {"R": (2730, 4096)}]
    # The arrays have 16 MiB.
    assert 2 * 2730 * 768 * 4 + 2 * 768 * 4 >= 16 << 20 > 2 * 2729 * 768 * 4 + 2 * 768 * 4
    found = advised_versions(workload("layernorm:1..4096x768").instantiate(), machine("x86-64-avx2"))
    assert found is not None
    texts = [
        print_notation(make_moves(with_alignment(nest.kernel, 64), machine("x86-64-avx2"), "heuristic").after)
        for nest in found.nests
    ]
    assert ["nontemporal" in text for text in texts] == [False, True]


def test_rows_of_unknown_length_are_not_fetched_ahead() -> None:
    """The next row would be at another distance in each call."""
    kernel = with_alignment(workload("rmsnorm:1..4096x1..4096").instantiate(), 64)
    assert "prefetch" not in print_notation(make_moves(kernel, machine("x86-64-avx2"), "heuristic").after)


@pytest.mark.parametrize("kernel", ["softmax:1..64x1..64", "matmul:9..100x512x512", "matmul:64x64x64", "gelu:1..9x8"])
def test_other_kernels_have_one_program(kernel: str) -> None:
    assert advised(kernel) == []


def test_machines_without_advice_have_one_program() -> None:
    kernel = workload("matmul:1..100x16x16").instantiate()
    assert advised_versions(kernel, machine("snitch")) is None


def test_a_kernel_of_standard_input_is_read_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = "kernel k(x) -> (y)\nsize N in 1..9\nx f32 [N] heap\ny f32 [N] heap\n\nN y[{0}] = x[{0}] * 2\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    file = tmp_path / "tuned.pdojo"
    main(["-", "--no-measure", "--no-calibrate", "--emit", str(file)])
    assert file.read_text().startswith("kernel k(x) -> (y)")


def test_tuned_versions_are_one_file_that_can_be_called(tmp_path: Path) -> None:
    file, traces = tmp_path / "tuned.pdojo", tmp_path / "traces"
    main(["matmul:1..12x4x16", "--no-measure", "--no-calibrate", "--emit", str(file), "-o", str(traces)])
    text = file.read_text()
    assert text.endswith("versions matmul = matmul_1, matmul_2, matmul_3\n")
    assert len(list(traces.iterdir())) == 3
    kernel = pdojo.compile(file)
    assert isinstance(kernel, VersionedKernel)
    random = np.random.default_rng(3)
    for rows in (1, 8, 9, 12):
        a, b = (pdojo.aligned(random.standard_normal(shape).astype(np.float32)) for shape in ((rows, 4), (4, 16)))
        np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-4, atol=1e-5)
    again = tmp_path / "again.pdojo"
    main([str(file), "--pass", "greedy", "--no-measure", "--no-calibrate", "--emit", str(again)])
    assert again.read_text().splitlines()[-1] == text.splitlines()[-1]
