"""Named operations of linalg: what they compute, and that MLIR itself has the same maps and bodies."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

import pdojo
from pdojo.dialect.notation import print_notation
from pdojo.dialect.semantics.interpreter import interpret

SIZES = {"n": 2, "c": 3, "f": 4, "m": 2, "g": 2, "h": 9, "w": 8, "d": 7}
CONTRACTIONS = {
    "matmul": "mk,kn->mn",
    "batch_matmul": "bmk,bkn->bmn",
    "batch_matvec": "bmk,bk->bm",
    "batch_vecmat": "bk,bkn->bn",
    "batch_reduce_matmul": "bmk,bkn->mn",
    "dot": "k,k->",
    "matvec": "mk,k->m",
    "vecmat": "k,kn->n",
    "mmt4d": "mkab,nkcb->mnac",
    "batch_mmt4d": "xmkab,xnkcb->xmnac",
}
CONVOLUTIONS = """
conv_1d_nwc_wcf conv_1d_ncw_fcw conv_2d_nhwc_hwcf conv_2d_nhwc_fhwc conv_2d_nchw_fchw conv_2d_ngchw_fgchw
conv_2d_ngchw_gfchw conv_2d_nhwgc_gfhwc conv_3d_ndhwc_dhwcf conv_3d_ncdhw_fcdhw depthwise_conv_1d_nwc_wc
depthwise_conv_1d_ncw_cw depthwise_conv_1d_nwc_wcm depthwise_conv_2d_nhwc_hwc depthwise_conv_2d_nchw_chw
depthwise_conv_2d_nhwc_hwcm depthwise_conv_3d_ndhwc_dhwc depthwise_conv_3d_ncdhw_cdhw depthwise_conv_3d_ndhwc_dhwcm
""".split()
POOLINGS = """
pooling_nwc_sum pooling_nwc_max pooling_nwc_min pooling_ncw_sum pooling_ncw_max pooling_nhwc_sum pooling_nhwc_max
pooling_nhwc_min pooling_nchw_sum pooling_nchw_max pooling_ndhwc_sum pooling_ndhwc_max pooling_ndhwc_min
""".split()
UNARY = "abs ceil erf exp floor log negf reciprocal rsqrt sqrt square tanh".split()
BINARY = "add div max min mul powf sub".split()


def tensor(shape: Sequence[int]) -> str:
    return f"tensor<{''.join(f'{extent}x' for extent in shape)}f32>"


def program(name: str, inputs: Sequence[Sequence[int]], output: Sequence[int], attributes: str = "") -> str:
    """A function whose arguments are the operands; arguments have the names that MLIR gives them."""
    names = [f"%arg{k}" for k in range(len(inputs))]
    types = [tensor(shape) for shape in inputs]
    listed = ", ".join(
        f"{n}: {t}" for n, t in zip((*names, f"%arg{len(names)}"), (*types, tensor(output)), strict=True)
    )
    operands = f"ins({', '.join(names)} : {', '.join(types)}) outs(%arg{len(names)} : {tensor(output)})"
    return f"""func.func @f({listed}) -> {tensor(output)} {{
  %y = linalg.{name} {attributes}{operands} -> {tensor(output)}
  func.return %y : {tensor(output)}
}}
"""


def contraction(name: str) -> str:
    inputs, _, output = CONTRACTIONS[name].partition("->")
    extents = {letter: 2 + k for k, letter in enumerate(sorted(set(inputs) - {","}))}
    return program(name, [[extents[x] for x in word] for word in inputs.split(",")], [extents[x] for x in output])


def windowed(name: str, image: str, window: str, output: str) -> str:
    rank = sum(x in "dhw" for x in image)
    shapes = [
        [SIZES[x] for x in image],
        [3 if x in "dhw" else SIZES[x] for x in window],
        [(SIZES[x] - 3) // 2 + 1 if x in "dhw" else SIZES[x] for x in output],
    ]
    attributes = f"{{dilations = dense<1> : tensor<{rank}xi64>, strides = dense<2> : tensor<{rank}xi64>}} "
    return program(name, shapes[:2], shapes[2], attributes)


def programs() -> dict[str, str]:
    found = {name: contraction(name) for name in CONTRACTIONS}
    for name in CONVOLUTIONS:
        *_, image, window = name.split("_")
        output = image + "m" * window.endswith("m") if name.startswith("depthwise") else image.replace("c", "f")
        found[name] = windowed(name, image, window, output)
    for name in POOLINGS:
        _, image, _ = name.split("_")
        found[name] = windowed(name, image, "".join(x for x in image if x in "dhw"), image)
    found |= {name: program(name, [[3, 4]], [3, 4]) for name in UNARY}
    found |= {name: program(name, [[3, 4]] * 2, [3, 4]) for name in BINARY}
    return found


def computed(text: str) -> tuple[list[NDArray[Any]], NDArray[Any]]:
    """Random operands, and the result."""
    kernel = pdojo.parse(text)
    rng = np.random.default_rng(5)
    arrays: dict[str, NDArray[Any]] = {}
    for line in print_notation(kernel).splitlines():
        name, *rest = line.split(" ", 2)
        if name.startswith("arg"):
            shape = [int(n) for n in rest[1].partition("[")[2].partition("]")[0].split(",") if n.strip()]
            arrays[name] = rng.normal(size=shape).astype(np.float32)
    return list(arrays.values()), interpret(kernel, arrays)["y"]


@pytest.mark.parametrize("name", CONTRACTIONS)
def test_contractions(name: str) -> None:
    (a, b, c), y = computed(contraction(name))
    np.testing.assert_allclose(y, c + np.einsum(CONTRACTIONS[name], a, b), rtol=1e-5, atol=1e-5)


def test_convolution() -> None:
    (x, w, c), y = computed(programs()["conv_2d_nhwc_hwcf"])
    windows = sliding_window_view(x, (3, 3), (1, 2))[:, ::2, ::2]
    np.testing.assert_allclose(y, c + np.einsum("nhwcij,ijcf->nhwf", windows, w), rtol=1e-5, atol=1e-5)


def test_depthwise_convolution() -> None:
    (x, w, c), y = computed(programs()["depthwise_conv_1d_nwc_wcm"])
    windows = sliding_window_view(x, 3, 1)[:, ::2]
    np.testing.assert_allclose(y, c + np.einsum("nwci,icm->nwcm", windows, w), rtol=1e-5, atol=1e-5)


def test_pooling() -> None:
    (x, _, c), y = computed(programs()["pooling_nchw_max"])
    windows = sliding_window_view(x, (3, 3), (2, 3))[:, :, ::2, ::2]
    np.testing.assert_array_equal(y, np.maximum(c, windows.max((4, 5))))


def test_unsigned_numbers_are_widened_as_such() -> None:
    text = """func.func @f(%x: tensor<1x4x1xi8>, %w: tensor<2xi8>, %c: tensor<1x3x1xi32>) -> tensor<1x3x1xi32> {
      %y = linalg.pooling_nwc_max_unsigned ins(%x, %w : tensor<1x4x1xi8>, tensor<2xi8>)
        outs(%c : tensor<1x3x1xi32>) -> tensor<1x3x1xi32>
      func.return %y : tensor<1x3x1xi32>
    }"""
    x = np.array([200, 3, 7, 130], np.uint8).view(np.int8).reshape(1, 4, 1)
    given = {"x": x, "w": np.zeros(2, np.int8), "c": np.full((1, 3, 1), 5, np.int32)}
    assert interpret(pdojo.parse(text), given)["y"].ravel().tolist() == [200, 7, 130]


@pytest.mark.parametrize(("name", "reason"), [("div_unsigned", "Could not build"), ("pooling_ncw_min", "ncw_min")])
def test_names_and_types_that_mlir_lacks(name: str, reason: str) -> None:
    text = windowed(name, "ncw", "w", "ncw") if name.startswith("pooling") else program(name, [[3, 4]] * 2, [3, 4])
    with pytest.raises(pdojo.PdojoError, match=reason):
        pdojo.parse(text)


@pytest.fixture(scope="module")
def generic_forms(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The programs in MLIR's generic form, in which bodies are written."""
    if importlib.util.find_spec("jaxlib") is None or importlib.util.find_spec("jax") is None:
        pytest.skip("needs JAX, which brings MLIR along")
    folder = tmp_path_factory.mktemp("named")
    for name, text in programs().items():
        (folder / f"{name}.mlir").write_text(text)
    script = Path(__file__).parents[2] / "jax_scripts/generic_forms.py"
    subprocess.run([sys.executable, str(script), str(folder)], check=True, capture_output=True, text=True)
    return {path.stem: path.read_text() for path in folder.glob("*.generic")}


@pytest.mark.parametrize("name", programs())
def test_mlir_means_the_same(name: str, generic_forms: dict[str, str]) -> None:
    short, generic = pdojo.parse(programs()[name]), pdojo.parse(generic_forms[name])
    assert print_notation(short) == print_notation(generic)
