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
MAPPED = {
    "matmul": ["km,kn->mn", "mk,nk->mn", "k,kn->mn", "m,kn->mn", "mk,kn->nm"],
    "batch_matmul": ["bkm,bkn->bmn", "bmk,bnk->bmn", "mk,bkn->bmn", "k,bkn->bmn"],
    "batch_reduce_matmul": ["bmk,bnk->mn", "k,bnk->mn"],
    "contract": ["mk,kn->mn", "mkb,bkn->nm", "bk,bk->b", "k,k->"],
}
"""Maps that programs choose; iterations of the named ones are in the order `bmnk`."""
PDOJO_ONLY = ("m,kn->mn", "mk,kn->nm")
"""Maps of `linalg.matmul` on which jaxlib's MLIR crashes, or which it refuses."""
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
QUANTIZED = """
conv_2d_nhwc_hwcf conv_2d_nhwc_fhwc conv_2d_nchw_fchw conv_2d_ngchw_gfchw conv_2d_nhwgc_gfhwc conv_3d_ndhwc_dhwcf
depthwise_conv_2d_nhwc_hwc depthwise_conv_2d_nhwc_hwcm
""".split()
KINDS = {
    "f32": "add sub mul div max_signed min_signed powf log abs ceil erf exp negf reciprocal rsqrt sqrt square tanh",
    "i32": "add sub mul div div_unsigned max_signed min_signed max_unsigned min_unsigned",
}
UNARY = "abs ceil erf exp floor log negf reciprocal rsqrt sqrt square tanh".split()
BINARY = "add div max min mul powf sub".split()


def tensor(shape: Sequence[int], dtype: str = "f32") -> str:
    return f"tensor<{''.join(f'{extent}x' for extent in shape)}{dtype}>"


def program(
    name: str,
    inputs: Sequence[Sequence[int]],
    output: Sequence[int],
    attributes: str = "",
    dtypes: tuple[str, str] = ("f32", "f32"),
    scalars: Sequence[str] = (),
) -> str:
    """A function whose arguments are the operands, inputs first; arguments have the names that MLIR gives them."""
    names = [f"%arg{k}" for k in range(len(inputs) + len(scalars))]
    types = [*[tensor(shape, dtypes[0]) for shape in inputs], *scalars]
    result = tensor(output, dtypes[1])
    listed = ", ".join(f"{n}: {t}" for n, t in zip((*names, f"%arg{len(names)}"), (*types, result), strict=True))
    operands = f"ins({', '.join(names)} : {', '.join(types)}) outs(%arg{len(names)} : {result})"
    return f"""func.func @f({listed}) -> {result} {{
  %y = linalg.{name} {attributes}{operands} -> {result}
  func.return %y : {result}
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


EXTENTS = {"b": 2, "m": 3, "n": 4, "k": 5}


def mapped(name: str, subscripts: str, dtypes: tuple[str, str] = ("f32", "f32"), cast: str = "") -> str:
    """A contraction with the maps of subscripts like `km,kn->mn`."""
    words = subscripts.replace("->", ",").split(",")
    own = {"matmul": "mnk", "contract": "".join(x for x in "bmnk" if x in subscripts)}
    order = own.get(name, "bmnk")
    dims = ", ".join(f"d{k}" for k in range(len(order)))
    maps = [f"affine_map<({dims}) -> ({', '.join(f'd{order.index(x)}' for x in word)})>" for word in words]
    attributes = f"indexing_maps = [{', '.join(maps)}] " + f"{{cast = #linalg.type_fn<{cast}>}} " * bool(cast)
    shapes = [[EXTENTS[x] for x in word] for word in words]
    return program(name, shapes[:2], shapes[2], attributes, dtypes)


def quantized(name: str) -> str:
    """A convolution of bytes with zero points."""
    *_, image, window = name.split("_")
    output = image + "m" * window.endswith("m") if name.startswith("depthwise") else image.replace("c", "f")
    shapes = [
        [SIZES[x] for x in image],
        [3 if x in "dhw" else SIZES[x] for x in window],
        [SIZES[x] - 2 if x in "dhw" else SIZES[x] for x in output],
    ]
    return program(f"{name}_q", shapes[:2], shapes[2], "", ("i8", "i32"), ["i32", "i32"])


def elementwise(kind: str, dtype: str) -> str:
    inputs = 1 if kind in UNARY else 2
    attribute = f"kind=#linalg.elementwise_kind<{kind}> "
    return program("elementwise", [[3, 4]] * inputs, [3, 4], attribute, (dtype, dtype))


BODIES = {
    "map function": (
        "{ arith.subf }",
        "ins(%arg0, %arg1 : tensor<3x5xf32>, tensor<3x5xf32>) outs(%arg2 : tensor<3x5xf32>)",
        "",
    ),
    "map": (
        "",
        "ins(%arg0, %arg1 : tensor<3x5xf32>, tensor<3x5xf32>) outs(%arg2 : tensor<3x5xf32>)",
        "(%a: f32, %b: f32, %o: f32) {\n%c = arith.mulf %a, %b : f32\nlinalg.yield %c : f32\n}",
    ),
    "reduce function": (
        "{ arith.subf }",
        "ins(%arg0 : tensor<3x5xf32>) outs(%arg1 : tensor<3xf32>) dimensions = [1]",
        "",
    ),
    "reduce": (
        "",
        "ins(%arg0, %arg1 : tensor<3x5xf32>, tensor<3x5xf32>) outs(%arg2, %arg3 : tensor<5xf32>, tensor<5xf32>)"
        " dimensions = [0]",
        "(%a: f32, %b: f32, %o: f32, %p: f32) {\n%c = arith.addf %a, %o : f32\n%d = arith.maximumf %b, %p : f32\n"
        "linalg.yield %c, %d : f32, f32\n}",
    ),
}
"""The function in braces, the operands, and the body of operations with a body."""


def with_body(key: str) -> str:
    function, operands, body = BODIES[key]
    types = [each for part in operands.split("(")[1:] for each in part.split(" : ")[1].split(")")[0].split(", ")]
    results = operands.partition("outs(")[2].split(" : ")[1].split(")")[0]
    count = results.count(",") + 1
    values = ", ".join(f"%y#{k}" for k in range(count)) if count > 1 else "%y"
    listed = ", ".join(f"%arg{k}: {kind}" for k, kind in enumerate(types))
    return f"""func.func @f({listed}) -> ({results}) {{
  %y{f":{count}" if count > 1 else ""} = linalg.{key.split()[0]} {function} {operands}
  {body}
  func.return {values} : {results}
}}
"""


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
    for name, rows in MAPPED.items():
        found |= {f"{name} {row}": mapped(name, row) for row in rows if row not in PDOJO_ONLY}
        # MLIR's `batch_reduce_matmul` casts only its first factor as `cast` says.
        for cast in ("cast_signed", "cast_unsigned")[: 1 if name == "batch_reduce_matmul" else 2]:
            found[f"{name} {cast}"] = mapped(name, rows[0], ("i8", "i32"), cast)
        found[f"{name} f16"] = mapped(name, rows[0], ("f16", "f32"))
    for name in ("matmul", "batch_matmul"):
        batch = [2] * name.startswith("batch")
        shapes = [[*batch, 3, 5], [*batch, 5, 4], [*batch, 3, 4]]
        found[f"quantized_{name}"] = program(
            f"quantized_{name}", shapes[:2], shapes[2], "", ("i8", "i32"), ["i32", "i32"]
        )
    found |= {f"{name}_q": quantized(name) for name in QUANTIZED}
    found |= {f"{kind} {dtype}": elementwise(kind, dtype) for dtype, kinds in KINDS.items() for kind in kinds.split()}
    found["copy"] = program("copy", [[3, 4]], [3, 4], "{cast = #linalg.type_fn<cast_unsigned>} ", ("i8", "i32"))
    found |= {key: with_body(key) for key in BODIES}
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


@pytest.mark.parametrize("name", MAPPED)
def test_maps_of_the_program(name: str) -> None:
    for subscripts in MAPPED[name]:
        (a, b, c), y = computed(mapped(name, subscripts))
        # NumPy sums what the output lacks only if an input has it.
        left, right, output = subscripts.replace("->", ",").split(",")
        missing = "".join(x for x in output if x not in left + right)
        ones = np.ones([EXTENTS[x] for x in missing], np.float32)
        wanted = np.einsum(f"{left},{right},{missing}->{output}", a, b, ones)
        np.testing.assert_allclose(y, c + wanted, rtol=1e-5, atol=1e-5, err_msg=subscripts)


def test_casts_of_bytes() -> None:
    for cast, dtype in (("cast_signed", np.int8), ("cast_unsigned", np.uint8)):
        kernel = pdojo.parse(mapped("matmul", "mk,nk->mn", ("i8", "i32"), cast))
        rng = np.random.default_rng(3)
        a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((3, 5), (4, 5)))
        c = rng.integers(-9, 9, (3, 4)).astype(np.int32)
        found = interpret(kernel, {"arg0": a, "arg1": b, "arg2": c})["y"]
        np.testing.assert_array_equal(found, c + a.view(dtype).astype(np.int32) @ b.view(dtype).astype(np.int32).T)


def test_zero_points() -> None:
    kernel = pdojo.parse(programs()["conv_2d_nchw_fchw_q"])
    rng = np.random.default_rng(4)
    x = rng.integers(-128, 128, (2, 3, 9, 8)).astype(np.int8)
    w = rng.integers(-128, 128, (4, 3, 3, 3)).astype(np.int8)
    c = rng.integers(-9, 9, (2, 4, 7, 6)).astype(np.int32)
    given = {"arg0": x, "arg1": w, "arg2": np.int32(7), "arg3": np.int32(-3), "arg4": c}
    windows = sliding_window_view(x.astype(np.int32) - 7, (3, 3), (2, 3))
    wanted = c + np.einsum("nchwij,fcij->nfhw", windows, w.astype(np.int32) + 3)
    np.testing.assert_array_equal(interpret(kernel, {k: np.asarray(v) for k, v in given.items()})["y"], wanted)


def test_the_body_of_former_maps_lacks_the_output() -> None:
    new = with_body("map")
    assert print_notation(pdojo.parse(new)) == print_notation(pdojo.parse(new.replace(", %o: f32", "")))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (mapped("matmul", "mn,kn->mn"), "indexing map 0, .* operand 0 of 'linalg.matmul' has no dimension d1"),
        (mapped("contract", "m,n->mn"), "no iteration is summed"),
        (mapped("contract", "mkb,kn->mn"), "iteration d0 indexes neither the output nor both inputs"),
        (program("contract", [[3], [3]], []), "'linalg.contract' needs indexing_maps"),
        (program("elementwise", [[3], [3]], [3]), "'linalg.elementwise' needs a kind"),
        (
            program("elementwise", [[3]], [3], "kind=#linalg.elementwise_kind<add> "),
            "takes 2 inputs and 1 output, not 1",
        ),
        (program("matvec", [[3, 3], [3]], [3], "indexing_maps = [] "), "'linalg.matvec' has no 'indexing_maps'"),
        (program("matvec", [[3, 3], [3]], [3], "{cast = #linalg.type_fn<cast_signed>} "), "has no 'cast'"),
        (with_body("reduce").replace("[0]", "[2]"), "dimension 2 is reduced, and the inputs have 2"),
        (with_body("map").replace("tensor<3x5xf32>) -> ", "tensor<3x4xf32>) -> "), "tensor<3x5xf32>"),
        (program("add", [[3, 4]] * 2, [3, 4], "", ("f16", "f32")), "'rhs'|yields"),
    ],
)
def test_refusals_name_the_map_and_the_place(text: str, reason: str) -> None:
    with pytest.raises(pdojo.PdojoError, match=r"<text>:\d+:\d+: error: .*" + reason):
        pdojo.parse(text)


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


@pytest.mark.parametrize(
    ("name", "reason"), [("div_unsigned", "no such function of f32"), ("pooling_ncw_min", "ncw_min")]
)
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
