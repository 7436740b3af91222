"""Bad calls of `pdojo.build` and their messages."""

from __future__ import annotations

import re
from inspect import Parameter, signature

import pytest

from pdojo import build
from pdojo.build.contractions import causal_conv_with_state
from pdojo.errors import UsageError

X = build.input("x", "f32", (4, 8))
LEAKED: list[build.Array] = []
"""States of a scan, kept behind its step."""
NAMES = {
    "build": build,
    "x": X,
    "causal_conv_with_state": causal_conv_with_state,
    "LEAKED": LEAKED,
    "i": build.input("i", "i32", (4, 8)),
    "b": build.input("b", "i1", (4, 8)),
    "u": build.input("u", "u8", (4, 8)),
    "u64": build.input("u64", "u64", (4, 8)),
    "h": build.input("h", "f16", (4, 8)),
    "e": build.input("e", "f32", (0, 8)),
    "im": build.input("im", "f32", (2, 4, 8, 8)),
}
SIGNED = "; they are signed integers: an input or a view of one, a table, iota or integers"
build.scan(lambda states, _: LEAKED.append(states[0]) or [states[0]], [X[0]], [X])
MISTAKES = [
    (
        'build.input("x", "float", (4,))',
        "'float' is no element type; known: bool, f64, f32, f16, bf16, i64, i32, i16, i8, i1, u8, u16, u32, u64",
    ),
    ('build.input("x", "f23", (4,))', "'f23' is no element type; did you mean 'f32'?"),
    ('build.input("x", "f32", (4, -1))', "shape [4, -1] has a negative extent"),
    ('build.constant(300, "i8")', "300 does not fit i8"),
    ('build.constant(-1, "u8")', "-1 does not fit u8"),
    ('build.constant(2, "i1")', "2 does not fit i1"),
    ('build.constant(1e6, "f16")', "1000000.0 does not fit f16"),
    ('build.constant(2.5, "i32")', "2.5 is no constant of type i32"),
    ('build.iota((300,), "u8")', "299 does not fit u8"),
    ("build.iota((4,), axis=1)", "axis 1 is out of bounds for an array of 1 dimensions"),
    ("x + i", "'+' takes no i32 beside f32; use x.astype('f32')"),
    ("i % x", "'%' takes no i32 beside f32; use x.astype('f32')"),
    ("i ** h", "'**' takes no i32 beside f16; use x.astype('f16')"),
    ("u64 < i", "'<' takes no i32 beside u64; use x.astype('i64')"),
    ("h + i", "'+' takes no i32 beside f16; use x.astype('f16')"),
    ("u + i + x", "'+' takes no i32 beside f32; use x.astype('f32')"),
    ('build.map("+", x, h)', "'+' takes operands of one element type, not f32 and f16; use build.cast"),
    ("build.maximum(u, i)", "'max' takes operands of one element type, not u8 and i32; use build.cast"),
    ("build.mse_loss(x, h)", "'mse_loss' takes arrays of one element type, not f32 and f16; use build.cast"),
    ('x + "1"', "an operand is a handle or a number, not str"),
    ("x + 1e39", "1e+39 does not fit f32"),
    ("i + 2.5", "2.5 is no constant of type i32"),
    ("u + -1", "-1 does not fit u8"),
    ("b + b", "'+' does not take i1; use & | ^, or build.cast to a number"),
    ("-b", "'-' does not take i1; use & | ^, or build.cast to a number"),
    ("~x", "'~' takes integers and i1, not f32"),
    ("i / 2", "'/' takes floating-point numbers, not i32; '//' rounds down"),
    ("2 / i", "'/' takes floating-point numbers, not i32; '//' rounds down"),
    ("i ** -1", "integers have no power -1; use build.cast"),
    ("i ** i", "integers are raised to constant powers only; use build.cast"),
    ("x and i", "a handle has no truth value; a kernel has no branches: use build.where"),
    ("x[0, 0, 0]", "3 indices for an array of 2 dimensions"),
    ("x[4]", "index 4 is out of bounds for axis 0 of 4 elements"),
    ("x[-5]", "index -5 is out of bounds for axis 0 of 4 elements"),
    ('x["a"]', "an index is an integer, a slice, a handle, '...' or None, not str"),
    ("x[True]", "an index is an integer, a slice, a handle, '...' or None, not bool"),
    ("x[..., ...]", "several '...' for an array of 2 dimensions"),
    ('x + build.input("y", "f32", (4, 7))', "shapes [4, 8] and [4, 7] do not broadcast: axis -1 has 8 and 7 elements"),
    ('x + build.input("y", "f32", (3, 8))', "shapes [4, 8] and [3, 8] do not broadcast: axis -2 has 4 and 3 elements"),
    ('build.map("expp", x)', "'expp' is no function of elements; did you mean 'exp'?"),
    ('build.map("exp", x, x)', "'exp' takes 1 operand, not 2"),
    ('build.map("elu", x, alpa=2)', "'elu' has no parameter 'alpa'; did you mean 'alpha'?"),
    ('build.map("exp", x, base=2)', "'exp' has no parameters"),
    ('build.map("erf", x, x)', "'erf' takes 1 operand, not 2"),
    ('build.map("erfc", x, x)', "'erfc' takes 1 operand, not 2"),
    ('build.map("erfc", build.input("z", "f64", (4,)))', "'erfc' takes f16, bf16 and f32, not f64; use build.cast"),
    ('build.map("cast", x)', "'cast' is no function of elements; use build.cast"),
    ('build.map("exp", i)', "'exp' does not take i32"),
    ('build.map("&", x, x)', "'&' does not take f32, f32"),
    ('build.map("+", 1, 2)', "'+' needs a handle among its operands; build.constant makes one of a number"),
    ("build.where(x, x, 0)", "a condition has element type i1, not f32; compare it, or use build.cast"),
    ("build.where(b, x, i)", "'select' takes operands of one element type, not f32 and i32; use build.cast"),
    ('build.bitcast(x, "i64")', "the bits of f32 are no bits of i64; bitcast needs a type of the same width"),
    ('build.cast(x, "int32")', "'int32' is no element type; did you mean 'i32'?"),
    ("build.broadcast_to(x, (4, 4))", "shapes [4, 8] and [4, 4] do not broadcast: axis -1 has 8 and 4 elements"),
    ("build.broadcast_to(x, (8,))", "shape [4, 8] does not broadcast to [8]"),
    ("build.transpose(x, (0,))", "an array of 2 dimensions has no order of axes (0,)"),
    ("build.transpose(x, (0, 0))", "axis 0 is given twice"),
    ("build.reshape(x, (5, 6))", "shape [4, 8] of 32 elements cannot become [5, 6]"),
    ("build.reshape(x, (-1, -1))", "shape [4, 8] cannot become [-1, -1]"),
    ("build.reshape(x, (-1, 5))", "shape [4, 8] cannot become [-1, 5]"),
    ("build.squeeze(x, 0)", "axis 0 of shape [4, 8] cannot be dropped: it has 4 elements"),
    ("build.expand_dims(x, 3)", "axis 3 is out of bounds for an array of 3 dimensions"),
    ("build.flip(x, 2)", "axis 2 is out of bounds for an array of 2 dimensions"),
    ("build.repeat(x, -1, 0)", "shape [-1] has a negative extent"),
    ("build.tile(x, (2,))", "an array of 2 dimensions has a count for each, not 1"),
    ("build.windows(x, (5, 1))", "a window of 5 elements does not fit an axis of 4"),
    ("build.windows(x, (1, 1, 1))", "windows of 3 dimensions do not fit an array of 2"),
    ("build.windows(x, (2, 2), stride=0)", "stride is a positive number, or one for each of 2 axes, not 0"),
    ("build.sum(x, 2)", "axis 2 is out of bounds for an array of 2 dimensions"),
    ("build.sum(x, (0, -2))", "axis 0 is given twice"),
    ("build.sum(b)", "'+' does not accumulate i1; known: max min and or"),
    ("-u + -i + 1.5", "1.5 is no constant of type i32"),
    ('build.reduce("or", x)', "'or' does not accumulate f32; known: + * max min"),
    ('build.reduce("-", x)', "'-' does not accumulate f32; known: + * max min"),
    ("build.max(e, 0)", "'max' of no elements has no value; give initial="),
    ("build.argmax(e, 0)", "'max' of no elements has no value; give initial="),
    ("build.mean(i)", "'mean' takes floating-point numbers, not i32; use build.cast"),
    ("build.var(i)", "'var' takes floating-point numbers, not i32; use build.cast"),
    ('build.cumulative("+", b)', "'+' does not accumulate i1; known: max min and or"),
    (
        "build.scan(lambda states, elements: [], [x[0]], [i])",
        "a step returns 0 arrays for 1 states",
    ),
    ("build.concatenate([])", "concatenate takes at least one array"),
    (
        "build.concatenate([x, im])",
        "shapes [4, 8] and [2, 4, 8, 8] differ in another axis than 0, along which they are concatenated",
    ),
    (
        'build.concatenate([x, build.input("y", "f32", (4, 7))])',
        "shapes [4, 8] and [4, 7] differ in another axis than 0, along which they are concatenated",
    ),
    ("build.concatenate([x, i])", "pieces of one array have one element type, not f32 and i32; use build.cast"),
    (
        'build.stack([x, build.input("y", "f32", (4, 7))])',
        "shapes [1, 4, 8] and [1, 4, 7] differ in another axis than 0, along which they are concatenated",
    ),
    ("build.split(x, 3)", "an axis of 4 elements has no 3 equal parts"),
    ("build.split(x, [1, 2])", "parts of 1 and 2 elements do not make an axis of 4"),
    ("build.take(x, [4])", "index 4 is out of bounds for axis 0 of 4 elements"),
    ("build.gather(x, [[0, 4], 0])", "index 4 is out of bounds for axis 0 of 4 elements"),
    ("build.gather(x, [[0, 1]])", "an array of 2 dimensions takes places for each, not 1"),
    ("build.gather(x, [build.iota((6,)), 0])", "places from 0 to 5 are out of bounds for axis 0 of 4 elements"),
    ("build.gather(x, [i + 1, 0])", f"the places along axis 0 are computed{SIGNED}"),
    ("x[:, u]", f"the places along axis 1 are of type u8{SIGNED}"),
    ("build.take(x, b)", f"the places along axis 0 are of type i1{SIGNED}"),
    ("e[i]", "axis 0 has no elements, and so no indices"),
    ("build.take(x, i, outside='drop')", "indices outside of an axis are refuse, clamp or wrap, not 'drop'"),
    (
        "build.kernel('k', [x, i], [x[i, i]])",
        "kernel 'k': elements of input 'i' are indices of axes of several lengths, or read in several ways; "
        "pass them as several inputs",
    ),
    ("build.kernel('k', [x], [x[i]])", "kernel 'k' reads input 'i', which is not among its inputs"),
    ("build.scatter(x, [i + 1, 0], x)", f"the places along axis 0 are computed{SIGNED}"),
    ("build.put(x, u, x)", f"the places along axis 0 are of type u8{SIGNED}"),
    ("build.put(x, i, x[:3])", "shapes [3, 8] and [4, 8, 8] do not broadcast: axis -2 has 3 and 8 elements"),
    ("build.put(x, [0, 2], x)", "shapes [4, 8] and [2, 8] do not broadcast: axis -2 has 4 and 2 elements"),
    ("build.put(b, i[0, :2], b[:2], accumulation='+')", "'+' does not accumulate i1; known: max min and or"),
    ("build.put_along(x, i[:, 0], x, 1)", "indices of shape [4] do not fit an array of shape [4, 8]"),
    ("build.take_from(x, i[0, 0], 5)", "axis 0 of [4, 8] has no 5 neighbouring elements"),
    ("build.take_from(x, i[0, 0], 2, outside='wrap')", "a start outside of an axis is refuse or clamp, not 'wrap'"),
    ("build.put_from(x, i[0, 0], x[0])", "values have 1 axes, and the array into which they are put has 2"),
    ("build.put_from(x, i[0, 0] + 1, x)", f"the places along axis 0 are computed{SIGNED}"),
    (
        "build.gather(x, [[0, 1], [0, 1, 2]])",
        "shapes [2] and [3] do not broadcast: axis -1 has 2 and 3 elements",
    ),
    ("build.scatter(x, [[3, 1, 3], 1], x[0, :3])", "element [3, 1] is given several values"),
    ("build.scatter(x, [[[3], [1]], [[5, 5]]], x[:2, :2])", "element [3, 5] is given several values"),
    ("build.scatter(x, [build.iota((2, 3)), 1], x[:2, :3])", "element [0, 1] is given several values"),
    ("build.pad(x, 1 << 62)", f"an axis of {(1 << 63) + 8} elements is too long; extents stay below 2^62"),
    ("i ** (1 << 63)", f"{1 << 63} does not fit i64"),
    ("build.power(x, 10 ** 5000)", "an integer of 16610 bits is larger than the numbers of all element types"),
    ("x * 10 ** 5000", "an integer of 16610 bits is larger than the numbers of all element types"),
    ('build.iota((4,), "f32", start=1 << 62)', f"{1 << 62} is too large for iota: its numbers stay below 2^62"),
    (
        'build.split(build.input("l", "f32", (1 << 20,)), 1 << 20)',
        "an axis is split into at most 65536 parts, not 1048576",
    ),
    (
        'build.conv_transpose(im, build.input("k", "f32", (4, 4, 3, 3)), output_padding=(1,))',
        "output_padding is a number from 0, or one for each of 2 axes, not (1,)",
    ),
    ("build.scatter(x, [3, 1], h[0, 0])", "values of type f16 are put into f32; use build.cast"),
    ("build.table([1, 2.5])", "a table has integers, not float64"),
    ("build.table([[1], [2, 3]])", "the rows of a table have one length"),
    ("build.table([1 << 62])", "the numbers of a table stay below 2^61"),
    ('build.table([1, 300], "i8")', "numbers from 1 to 300 do not fit i8"),
    ("build.table(list(range(0, 10000, 2))[::-1])", "a table has at most 4096 numbers, not 5000"),
    (
        "build.take(build.input('x', 'f32', (999,)), [k * 7 % 999 // 2 for k in range(9999)])",
        "9999 indices in 5000 uniform runs are too many; a table has 4096 numbers at most",
    ),
    (
        "build.put(build.input('x', 'f32', (4, 8)), [0, 1, 2, 3], build.input('u', 'i32', (4, 8)))",
        "values of type i32 are put into f32; use build.cast",
    ),
    (
        "build.put(build.input('x', 'f32', (4, 8)), [4], build.input('u', 'f32', (1, 8)))",
        "index 4 is out of bounds for axis 0 of 4 elements",
    ),
    ("build.assemble((4, 4), [])", "an array is assembled from at least one piece"),
    ("build.assemble((4, 4), [((), x)])", "shapes [4, 8] and [4, 4] do not broadcast: axis -1 has 8 and 4 elements"),
    (
        "build.assemble((4, 8), [((), x), ((), i)])",
        "pieces of one array have one element type, not f32 and i32; use build.cast",
    ),
    ("build.pad(x, (1, 2, 3))", "padding of 2 axes is a number, a pair (before, after), or 2 pairs, not (1, 2, 3)"),
    ("build.pad(x, ((1, 2),))", "padding of 2 axes is a number, a pair (before, after), or 2 pairs, not ((1, 2),)"),
    ("build.pad(x, (-5, 0))", "padding cuts 5 elements off an axis of 4"),
    ('build.pad(x, 4, mode="reflect")', "'reflect' takes 4 elements from an axis of 4"),
    ('build.pad(x, 1, mode="mirror")', "'mirror' is no mode of padding; known: constant, edge, reflect, wrap"),
    ('build.contract("mk,kn", x, x)', "'mk,kn' are no subscripts; write letters for the axes: 'mk,kn->mn'"),
    ('build.contract("mk,kn->mn", x, x)', "'k' of 'mk,kn->mn' stands for 8 and for 4 elements"),
    ('build.contract("mk->m", x, x)', "'mk->m' describes 1 operand, not 2"),
    ('build.contract("mkj->m", x)', "'mkj' of 'mkj->m' does not name the 2 axes of [4, 8]"),
    ('build.contract("mk->mm", x)', "'m' of the result of 'mk->mm' is in no operand, or there twice"),
    ('build.contract("mk->z", x)', "'z' of the result of 'mk->z' is in no operand, or there twice"),
    (
        'build.contract("mk,mk->m", x, i)',
        "factors have one element type, not f32 and i32; give dtype=, or use build.cast",
    ),
    ('build.contract("mk,mk->m", b, b)', "'*' does not take i1; use build.cast"),
    ("build.matmul(x, x)", "matmul of [4, 8] and [4, 8]: 8 columns for 4 rows"),
    ('build.matmul(x, build.constant(1, "f32"))', "matmul takes arrays of at least one dimension"),
    (
        "build.matmul(x, build.transpose(i))",
        "factors have one element type, not f32 and i32; give dtype=, or use build.cast",
    ),
    ("build.conv(x, x)", "conv takes x [N, C, ...] and weights of its rank, not [4, 8], [4, 8]"),
    (
        'build.conv(im, build.input("k", "f32", (6, 3, 3, 3)))',
        "1 groups of 3 channels and 6 outputs do not fit x [2, 4, 8, 8] and weights [6, 3, 3, 3]",
    ),
    (
        'build.conv(im, build.input("k", "f32", (6, 2, 3, 3)), groups=4)',
        "4 groups of 2 channels and 6 outputs do not fit x [2, 4, 8, 8] and weights [6, 2, 3, 3]",
    ),
    ('build.conv(im, build.input("k", "f32", (6, 4, 9, 3)))', "a window of 9 elements does not fit an axis of 8"),
    (
        'build.conv(im, build.input("k", "f32", (6, 4, 3, 3)), build.input("b", "f32", (4,)))',
        "a bias of shape [4] is not one of 6 channels",
    ),
    (
        'build.conv(im, build.input("k", "f32", (6, 4, 3, 3)), padding=(1,))',
        "padding is a number, or a number or a pair for each of 2 axes, not (1,)",
    ),
    (
        'build.conv(im, build.input("k", "f32", (6, 4, 3, 3)), stride=(1, 2, 3))',
        "stride is a positive number, or one for each of 2 axes, not (1, 2, 3)",
    ),
    (
        'build.conv_transpose(im, build.input("k", "f32", (6, 4, 3, 3)))',
        "conv_transpose of 1 groups: [2, 4, 8, 8] and [6, 4, 3, 3] do not fit",
    ),
    (
        'build.conv_transpose(im, build.input("k", "f32", (4, 4, 3, 3)), groups=3)',
        "conv_transpose of 3 groups: [2, 4, 8, 8] and [4, 4, 3, 3] do not fit",
    ),
    (
        "causal_conv_with_state(im[0, 0], x)",
        "arrays and windows have 3 axes, not the shapes [8, 8] and [4, 8]",
    ),
    (
        "causal_conv_with_state(im[0], im[:, :1, 0], None, im[0, :, :, :6])",
        "a state of shape [4, 8, 6] is not the 7 elements before those of [4, 8, 8], for a window of 8",
    ),
    ('build.pool("max", x, (2,))', "windows [2] do not fit images [N, C, ...] of shape [4, 8]"),
    ('build.pool("max", im, (9, 2))', "a window of 9 elements does not fit an axis of 8"),
    ('build.pool("avg", im, (2, 2))', "'avg' does not accumulate f32; known: + * max min"),
    (
        'build.avg_pool(build.cast(im, "i32"), (2, 2))',
        "'avg_pool' takes floating-point numbers, not i32; use build.cast",
    ),
    ("build.layer_norm(i)", "'layer_norm' takes floating-point numbers, not i32; use build.cast"),
    ('build.layer_norm(x, build.input("g", "f32", (4,)))', "scale of shape [4] does not broadcast to [4, 8]"),
    ("build.rms_norm(x, im)", "scale of shape [2, 4, 8, 8] does not broadcast to [4, 8]"),
    ("build.group_norm(x, 2)", "group_norm takes images [N, C, ...], not an array of shape [4, 8]"),
    ("build.group_norm(im, 3)", "4 channels do not make 3 equal groups"),
    ("build.instance_norm(im, x)", "values of shape [4, 8] are not one for each of 4 channels"),
    ('build.batch_norm(im, build.input("g", "f32", (3,)))', "values of shape [3] are not one for each of 4 channels"),
    ("build.softmax(i)", "'softmax' takes floating-point numbers, not i32; use build.cast"),
    ("build.softmax(x, 5)", "axis 5 is out of bounds for an array of 2 dimensions"),
    (
        'build.softmax(x, mask=build.input("m", "i1", (3, 4, 8)))',
        "a mask of shape [3, 4, 8] does not broadcast to [4, 8]",
    ),
    ('build.causal_softmax(build.input("x", "f32", (4,)))', "causal_softmax takes matrices, not an array of shape [4]"),
    ('build.attention(x, x, build.input("v", "f32", (5, 8)))', "attention: q [4, 8], k [4, 8] and v [5, 8] do not fit"),
    ("build.attention(i, i, i)", "'attention' takes floating-point numbers, not i32; use build.cast"),
    ("build.gelu(i)", "'gelu' takes floating-point numbers, not i32; use build.cast"),
    (
        'build.cross_entropy(x, build.input("t", "f32", (4,)))',
        "classes are integers, one for each row of [4, 8], not <Array f32 [4]>",
    ),
    (
        'build.cross_entropy(x, build.input("t", "i64", (8,)))',
        "classes are integers, one for each row of [4, 8], not <Array i64 [8]>",
    ),
    (
        'build.cross_entropy(x, build.input("t", "i64", (4,)), reduction="max")',
        "'max' is no reduction of losses; known: mean, sum, none",
    ),
    ('build.mse_loss(x, build.input("y", "f32", (8,)))', "targets of shape [8] are not one for each element of [4, 8]"),
    (
        "build.binary_cross_entropy(i, i)",
        "'binary_cross_entropy' takes floating-point numbers, not i32; use build.cast",
    ),
    ('build.kernel("k", [x], [x + i])', "'+' takes no i32 beside f32; use x.astype('f32')"),
    (
        'build.kernel("k", [x], [x + build.input("y", "f32", (4, 8))])',
        "kernel 'k' reads input 'y', which is not among its inputs",
    ),
    (
        'build.kernel("k", [x + 1], [x])',
        "inputs are results of build.input, and <Array f32 [4, 8]> is a view, or computed",
    ),
    ('build.kernel("k", [e], [x])', "input 'e' has no elements; the arrays of a kernel have at least one"),
    ('build.kernel("k", [x], [e])', "output 'y' has no elements; the arrays of a kernel have at least one"),
    ('build.kernel("k", [x], [])', "kernel 'k' has no outputs"),
    ('build.kernel("k", [x, x], [x + 1])', "kernel 'k' has two arrays 'x'"),
    ('build.kernel("k", [x], {"x": x + 1})', "kernel 'k' has two arrays 'x'"),
    (
        'build.kernel("2k", [x], [x + 1])',
        "'2k' is no name: names are ASCII letters, digits and _, not a digit first, at most 200",
    ),
    (
        'build.kernel("k", [x], {"a b": x + 1})',
        "'a b' is no name: names are ASCII letters, digits and _, not a digit first, at most 200",
    ),
    (
        'build.kernel("k", [x], [x + 1], numerics=["contracts"])',
        "'contracts' is no numerics class; did you mean 'contract'?",
    ),
    (
        'build.kernel("k", [x[1:]], [x + 1])',
        "inputs are results of build.input, and <Array f32 [3, 8]> is a view, or computed",
    ),
    (
        'build.kernel("k", [x], [build.exp(build.broadcast_to(x[0, 0], (1 << 31, 1 << 31)))])',
        "kernel 'k': array 'y' of [2147483648, 2147483648] elements is larger than any memory",
    ),
    ('build.kernel("k", [x], [LEAKED[0]])', "kernel 'k' reads a state or an element of a scan outside of its step"),
    ('build.input("", "f32", (4,))', "the name is empty"),
    ("build.split(x, [-1, 5])", "parts of -1 and 5 elements do not make an axis of 4"),
    ("x[::0]", "a slice has integers, and a step that is not 0, not ::0"),
    ("x[0.5:]", "a slice has integers, and a step that is not 0, not 0.5::"),
    ('x ** "2"', "an operand is a handle or a number, not str"),
    # Arguments of another kind than the annotation
    ('build.kernel("k", [x], [1])', "'kernel': outputs is a sequence of handles or a dictionary, not [1]"),
    ('build.kernel("k", x, [x + 1])', "'kernel': inputs is a sequence of handles, not <Array f32 [4, 8]>"),
    (
        'build.kernel("k", [x], {3: x})',
        "'kernel': outputs is a sequence of handles or a dictionary, not {3: <Array f32 [4, 8]>}",
    ),
    (
        'build.kernel("k", [x], [x], numerics="contract")',
        "'kernel': numerics is a sequence of texts or None, not 'contract'",
    ),
    ('build.input("x", "f32", 4)', "'input': shape is a sequence of integers, not 4"),
    ('build.input("x", "f32", (4.5,))', "'input': shape is a sequence of integers, not (4.5,)"),
    ('build.input("x", "f32", "44")', "'input': shape is a sequence of integers, not '44'"),
    ("build.take(x, [1.5])", "'take': indices is a sequence of integers or a handle, not [1.5]"),
    ("build.sum(x, True)", "'sum': axis is an integer or a sequence of integers or None, not True"),
    ("build.argmax(x, (0, 1))", "'argmax': axis is an integer, not (0, 1)"),
    ("build.exp(3)", "'exp': x is a handle, not 3"),
    ("build.concatenate(x)", "'concatenate': arrays is a sequence of handles, not <Array f32 [4, 8]>"),
    ("build.clip(x, [1])", "'clip': lower is a handle or a number or None, not [1]"),
    ("build.gelu(x, approximate=1)", "'gelu': approximate is True or False, not 1"),
    ("build.pad(x, 1, mode=3)", "'pad': mode is a text, not 3"),
    ("build.assemble((4, 8), [x])", "'assemble': pieces is a sequence, not [<Array f32 [4, 8]>]"),
    (
        "build.batch_norm(im, statistics=x)",
        "'batch_norm': statistics is a sequence of handles or None, not <Array f32 [4, 8]>",
    ),
    ("build.gather(x, 3)", "'gather': places is a sequence, not 3"),
    ("build.scan(3, [x[0]], [x])", "'scan': step is a function, not 3"),
    (
        "build.scan(lambda states, elements: states[0], [x[0]], [x])",
        "a step returns a list of handles, not <Array f32 [8]>",
    ),
    ("build.exp()", "'exp' cannot be called like that: missing a required argument: 'x'"),
]


@pytest.mark.parametrize(("call", "message"), MISTAKES)
def test_mistakes(call: str, message: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        eval(call, dict(NAMES))


@pytest.mark.parametrize("name", [name for name in build.__all__ if name != "Array"])
def test_every_function_refuses_arguments_of_another_kind(name: str) -> None:
    function = getattr(build, name)
    parameters = signature(function).parameters.values()
    several = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    given = [object() for each in parameters if each.default is each.empty and each.kind not in several]
    with pytest.raises(UsageError, match=f"^'{name}': .* is .*, not <object object"):
        function(*given)
    if name != "map":
        with pytest.raises(UsageError, match=f"^'{name}' cannot be called like that: "):
            function(*given, none_of_its_options=1)
