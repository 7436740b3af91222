"""The notation: canonical text, types of open operands, and one clear error per mistake."""

from __future__ import annotations

import pytest
from pdojo_tools.steps import suggestion
from xdsl.dialects.builtin import UnitAttr

from pdojo.dialect.attributes import Intent, Mapping, Numerics
from pdojo.dialect.functions import check_types
from pdojo.dialect.notation import parse_notation, print_notation, same_program
from pdojo.dialect.notation.spelling import spell
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Access, Leaf
from pdojo.errors import NotationError, UsageError, did_you_mean
from pdojo.kernels import kernel_names, kernel_path, workload
from pdojo.math.functions import FUNCTIONS, Signature

_HEADER = """kernel f(x, y, b) -> (z)
x f32 [4, 5] heap
y i32 [4] heap
b i1 [4] heap
z f32 [4] heap
i i32 [4] heap
h f16 [4] heap
q i1 [4] heap

"""


def kernel(tree: str) -> KernelOp:
    (parsed,) = parse_notation(_HEADER + tree, "f.pdojo")
    return parsed


def tree_of(text: str) -> str:
    """What the tree prints as."""
    return print_notation(kernel(text)).partition("\n\n")[2].rstrip("\n")


def statement(text: str) -> Leaf:
    return nest_of(kernel(text)).leaves[0]


def message(text: str) -> str:
    with pytest.raises(NotationError) as caught:
        kernel(text)
    return str(caught.value)


def test_no_word_is_suggested_in_place_of_itself() -> None:
    assert did_you_mean("layernorm_2", ["layernorm_2", "layernorm_1", "softmax"]) == "did you mean 'layernorm_1'?"
    assert did_you_mean("x", ["x"]) == ""
    assert suggestion("softmax", {"softmax": 1}) == ""


def test_capital_letters_are_suggested_as_small_ones() -> None:
    assert did_you_mean("F32", ["i32", "f32"]) == "did you mean 'f32'?"
    assert did_you_mean("ReLU", ["gelu", "relu"]) == "did you mean 'relu'?"


@pytest.mark.parametrize("name", kernel_names())
def test_library_kernels_are_read_back(name: str) -> None:
    printed = print_notation(workload(name).instantiate())
    (parsed,) = parse_notation(printed, name)
    assert print_notation(parsed) == printed
    assert parsed.sym_name.data == name


def test_unknown_library_kernel() -> None:
    with pytest.raises(UsageError, match=r"unknown kernel 'soft'; did you mean 'softmax'"):
        kernel_path("soft")


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("4\n| 5\n| | z[{0}]   max=x[{0},{1}]", "4 5 z[{0}] max= x[{0},{1}]"),
        ("4 5\n| z[{0}] = 0 # why\n\n| i[{0}] = 1", "4 5\n| z[{0}] = 0\n| i[{0}] = 1"),
        ("4 z[{0}] = arith.addf(x[{0},0], 1.0)", "4 z[{0}] = x[{0},0] + 1"),
        ("4 z[{0}] = -x[{0}, 2*2]", "4 z[{0}] = -x[{0},4]"),
        ("4 z[{0}] = arith.maxnumf(x[{0},0], -inf)", "4 z[{0}] = maxnum(x[{0},0], -inf)"),
        ("4 z[{0}] = {0}*2+1", "4 z[{0}] = {0}*2+1"),
        ("4 z[{0}] = x[{0},0] * (1+{0})", "4 z[{0}] = x[{0},0] * ({0}+1)"),
        ("4 z[{0}] = arith.mulf({0}, 2)", "4 z[{0}] = arith.mulf({0}, 2)"),
        ("4 z[{0}] = {0} * 0.5", "4 z[{0}] = arith.mulf({0}, 0.5)"),
        ("4 z[{0}] = index(3)", "4 z[{0}] = index(3)"),
        ("4 z[{0}] = cast(y[{0}])", "4 z[{0}] = cast(y[{0}])"),
        ("4 z[{0}] = arith.sitofp(y[{0}])", "4 z[{0}] = cast(y[{0}])"),
        ("4 z[{0}] = arith.uitofp(b[{0}])", "4 z[{0}] = cast(b[{0}])"),
        ("4 z[{0}] = arith.sitofp(b[{0}])", "4 z[{0}] = arith.sitofp(b[{0}])"),
        ("4 h[{0}] = cast(1:f32)", "4 h[{0}] = cast(1:f32)"),
        ("4 q[{0}] = arith.cmpf.olt({0}:f64, 1)", "4 q[{0}] = arith.cmpf.olt({0}:f64, 1:f64)"),
        ("4 q[{0}] = 1:f32 < x[{0},0]", "4 q[{0}] = 1 < x[{0},0]"),
        ("4 q[{0}] = ult(y[{0}], 3)", "4 q[{0}] = ult(y[{0}], 3)"),
        ("4 q[{0}] = true", "4 q[{0}] = true"),
        ("4 z[{0}] = select(b[{0}], x[{0},0], 1e-5)", "4 z[{0}] = select(b[{0}], x[{0},0], 1e-05)"),
        ("4 z[{0}] = 0.1", "4 z[{0}] = 0.1"),
        ("4 z[{0}] = -0.0", "4 z[{0}] = -0.0"),
        ("4 i[{0}] = 4294967295", "4 i[{0}] = -1"),
        ("4 i[{0}] umax= y[{0}] << 2", "4 i[{0}] umax= y[{0}] << 2"),
        ("4 q[{0}] and= b[{0}] & true", "4 q[{0}] and= b[{0}] & true"),
        ("4 5 z[{0}] fma= x[{0},{1}] * x[0,{1}]", "4 5 z[{0}] fma= x[{0},{1}] * x[0,{1}]"),
        ("2:u 2:v z[{0}*2+{1}] = 0", "2:u 2:v z[{0}*2+{1}] = 0"),
        ("4 z[({0}*4+{0}) // 5] = 0", "4 z[{0}] = 0"),
        ("3 2 where ({0}*2+{1}<=3, {1}==1) z[{0}*2+{1}] = 0", "3 2 where ({0}*2+{1} < 4, {1} == 1) z[{0}*2+{1}] = 0"),
        ("4 where ({0} > 1) z[{0}] = 0", "4 where ({0} >= 2) z[{0}] = 0"),
        ('4 z[{0}]!stream!way("a\\"b")!on(true)!n(-3) = 0', '4 z[{0}]!stream!way("a\\"b")!on(true)!n(-3) = 0'),
        ("4 q[{0}] = x[{0},0]!nontemporal!=0", "4 q[{0}] = x[{0},0]!nontemporal != 0"),
    ],
)
def test_canonical_text(written: str, canonical: str) -> None:
    assert tree_of(written) == canonical
    assert tree_of(canonical) == canonical


def test_open_operands_take_the_wanted_type() -> None:
    leaf = statement("4 q[{0}] = {0} < y[{0}]")
    assert leaf.function == "arith.cmpi.slt"
    assert [i.array.dtype if isinstance(i, Access) else i.dtype for i in leaf.inputs] == ["i32", "i32"]


def test_unequal_is_true_for_nan() -> None:
    assert statement("4 q[{0}] = x[{0},0] != 0").function == "arith.cmpf.une"


@pytest.mark.parametrize("function", sorted(FUNCTIONS))
def test_every_function_is_spelled(function: str) -> None:
    """Every function, with accesses and with open operands, is read back from its spelling."""
    spec = FUNCTIONS[function]
    for dtype in ("f32", "i32"):
        for result in ("f32", "i32", "f64", "f16", "i64", "i8", "i1"):
            operands = ("i1", dtype, dtype) if spec.signature is Signature.SELECT else (dtype,) * spec.arity
            if check_types(function, operands, result) is None:
                names = [f"a{k}" for k in range(spec.arity)]
                for known in range(spec.arity + 1):
                    values = [f"{n}[]" if k < known else "1" for k, n in enumerate(names)]
                    _check_spelling(function, operands, result, names, values)


def _check_spelling(function: str, operands: tuple[str, ...], result: str, names: list[str], values: list[str]) -> None:
    shown = spell(function, operands, tuple(v.endswith("]") for v in values), result)
    typed = [v if "[" in v or not shown.typed else f"{v}:{t}" for v, t in zip(values, operands, strict=True)]
    declared = "\n".join(f"{n} {t} [] heap" for n, t in zip(names, operands, strict=True))
    text = (
        f"kernel f({', '.join(names)}) -> (r)\n{declared}\nr {result} [] heap\n\nr[] = {function}({', '.join(typed)})"
    )
    (parsed,) = parse_notation(text)
    assert nest_of(parsed).leaves[0].function == function
    (again,) = parse_notation(print_notation(parsed))
    assert same_program(parsed, again)


def test_header() -> None:
    text = """kernel a_b(x, c) -> (c, y)
numerics contract
machine sm_90
y f32 [4] heap
c f32 [4] heap align 32
x f32 [4] heap
t f32 [4:N, 2] register
u f32 [4] heap -> v, w

4 y[{0}] = x[{0}]
"""
    (parsed,) = parse_notation(text)
    nest = nest_of(parsed)
    assert [a.intent for a in nest.arrays.values()][:3] == [Intent.IN, Intent.INOUT, Intent.OUT]
    assert list(nest.arrays) == ["x", "c", "y", "t", "v", "w"]
    assert parsed.permitted == (Numerics.CONTRACTS,)
    assert [b.alignment for b in nest.buffers[:3]] == [4, 32, 4]
    assert nest.arrays["v"].buffer is nest.arrays["w"].buffer
    assert nest.arrays["t"].buffer.reuse == (1, 0)
    printed = print_notation(parsed)
    assert "v f32 [4] heap -> v, w\n" in printed
    (again,) = parse_notation(printed)
    assert same_program(parsed, again)


@pytest.mark.parametrize("numerics", ["numerics none", "numerics exact", "numerics reassociate contract", None])
def test_numerics(numerics: str | None) -> None:
    fact = "" if numerics is None else numerics + "\n"
    text = f"kernel f(x) -> (y)\n{fact}x f32 [] heap\ny f32 [] heap\n\ny[] = x[]\n"
    assert print_notation(parse_notation(text)[0]) == text


def test_several_kernels() -> None:
    first, second = parse_notation(
        "kernel a() -> (y)\ny f32 [] heap\ny[] = 0\nkernel b() -> (y)\ny f32 [] heap\ny[] = 1"
    )
    assert (first.sym_name.data, second.sym_name.data) == ("a", "b")


def test_names_that_are_words_of_the_notation() -> None:
    text = """kernel kernel(inf, where) -> (max)
inf f32 [4] heap
where f32 [4] heap
max f32 [4] heap
machine f32 [4] heap
for f32 [4] heap

4 max[{0}] = inf
4 machine[{0}] = inf[{0}]
4 for[{0}] = max(where[{0}], exp[{0}])
"""
    text = text.replace("exp[{0}]", "max[{0}]")
    (parsed,) = parse_notation(text)
    assert print_notation(parsed) == text


@pytest.mark.parametrize("mapping", [m for m in Mapping if m not in (Mapping.SEQUENTIAL, Mapping.TENSOR)])
def test_mappings(mapping: Mapping) -> None:
    inside_grid = mapping in (Mapping.BLOCK, Mapping.WARP)
    text = f"{'2:g ' * inside_grid}4:{mapping.value} z[{{{int(inside_grid)}}}] = x[{{{int(inside_grid)}}},0]"
    assert nest_of(kernel(text)).scopes[-1].mapping is mapping
    assert tree_of(text) == text


def test_hints_are_attributes_of_the_access() -> None:
    leaf = statement("4 z[{0}]!nontemporal = x[{0},0]!prefetch(4096)")
    assert leaf.output.hints.data == {"nontemporal": UnitAttr()}
    assert list(leaf.reads[0].hints.data) == ["prefetch"]


@pytest.mark.parametrize(
    ("written", "position", "expected", "hint"),
    [
        ("4 z[{0}] = xx[{0},0]", "10:12", "unknown array 'xx'", "did you mean 'x'?"),
        ("4 z[{0}] = x[{0}]", "10:12", "array 'x' has 2 dimensions, not 1", ""),
        ("4 z[{0}] = x[y[{0}],0]", "10:14", "indirection is not supported", ""),
        ("4 y[{0}] z[{0}] = 0", "10:3", "data-dependent range is not supported", ""),
        ("4 y[{0}]\n| z[{0}] = 0", "10:9", "expected '=' or an accumulation", ""),
        ("3 z[{0}+1] = z[{0}] * 2", "10:14", "dependent iteration is not supported", ""),
        ("4 z[{0}] = z[3-{0}]", "10:12", "dependent iteration is not supported", "write the result to another array"),
        ("3 z[{0}] += z[{0}+1]", "10:13", "write of z[{0}] at iteration (1) and read of z[{0}+1] at", ""),
        ("2 2 z[{0}*2+{1}] = max(z[{0}*2], 1)", "10:24", "dependent iteration is not supported", ""),
        ("while z[{0}++] z[{0}] = 0", "10:1", "general control flow is not supported: 'while'", ""),
        ("4 if z[{0}] = 0", "10:3", "general control flow is not supported: 'if'", ""),
        ("4 where (b[{0}] > 0) z[{0}] = 0", "10:10", "general control flow is not supported: a guard may not", ""),
        ("4 where ({0}) z[{0}] = 0", "10:13", "expected a comparison in a guard", ""),
        ("4 where ({0} != 1) z[{0}] = 0", "10:14", "expected a comparison in a guard", ""),
        ("4 z[{0}] = expp(x[{0},0])", "10:12", "unknown function 'expp'", "did you mean 'exp'?"),
        ("4 z[{0}] = exp(x[{0},0], 1)", "10:12", "'exp' takes 1 operand, not 2", ""),
        ("4 z[{0}] = y[{0}]", "10:12", "a copy cannot turn i32 into f32", "convert with cast(...)"),
        ("4 z[{0}] = y[{0}] + x[{0},0]", "10:12", "'+' cannot take (i32, f32) to f32", "convert with cast"),
        ("4 z[{0}] = exp(y[{0}])", "10:12", "'exp' cannot take (i32) to f32", "convert with cast"),
        ("4 z[{0}] = x[{0},0]*2+1", "10:22", "a statement applies one function", "temporary"),
        ("4 z[{0}] = max(1, exp(x[{0},0]))", "10:19", "a statement applies one function", "temporary"),
        ("4 z[{0}] = {0}*{0}", "10:12", "one side of '*' must be an integer", "quasi-affine"),
        ("4 z[{0}//0] = 0", "10:5", "'//' needs a positive integer on its right", ""),
        ("4 z[{0}] = x[{0},0] % 2", "10:21", "'%' is for index expressions only", "rem(a, b)"),
        ("4 z[{1}] = 0", "10:5", "there is only 1 scope around this", ""),
        ("4 z[{i}] = 0", "10:5", "an iteration is written {k}", ""),
        ("4 z[{0}] -= x[{0},0]", "10:10", "'-=' is no accumulation", "+= *= max="),
        ("4 z[{0}] and= x[{0},0]", "10:10", "'and=' does not accumulate into f32 array 'z'", ""),
        ("4 z[{0}] fma= x[{0},0]", "10:3", "'fma=' must add a floating-point product", ""),
        ("4 z[{0}] async= exp(x[{0},0])", "10:3", "only a plain copy of an array can be asynchronous", ""),
        ("4 z[{0}] async= x[{0},0]", "10:3", "must copy from heap to shared memory, not from heap to heap memory", ""),
        ("4:q z[{0}] = 0", "10:3", "unknown mapping 'q'", "known: u, p, v"),
        ("4:N z[{0}] = 0", "10:3", "':N' does not belong to a scope", "reuse"),
        ("4v z[{0}] = 0", "10:1", "'4v' is no number", "4:v"),
        ("0 z[{0}] = 0", "10:1", "a scope needs at least one iteration", ""),
        ("5 z[{0}] = 0", "10:3", "out of bounds: dimension 0 of 'z' has extent 4, the index runs from 0 to 4", ""),
        ("4 x[{0},0] = 0", "10:3", "array 'x' is an input of the kernel and cannot be written", ""),
        ("N M z[{0}] = 0", "10:1", "'N' is neither an extent nor an array access", "extents are integers"),
        ("4 z = 0", "10:3", "array 'z' needs an index", ""),
        ("4 z[{0}] = C", "10:12", "'C' is neither an array nor a number", ""),
        ("4 q[{0}] = 1 < 2", "10:12", "the operand type of '<' is not determined", "type: 1:i32"),
        ("4 q[{0}] = {0} == 3", "10:12", "the operand type of '==' is not determined", "type: {0}:i32"),
        ("4 z[{0}] = y[{0}] == 1", "10:12", "'==' cannot take (i32, i32) to f32", "a comparison is of type i1"),
        ("4 i[{0}] = 1.5", "10:12", "1.5 is no constant of type i32", ""),
        ("4 i[{0}] = 4294967296", "10:12", "4294967296 does not fit i32", ""),
        ("4 h[{0}] = 70000", "10:12", "70000 does not fit f16", ""),
        ("4 z[{0}] = 1e999", "10:12", "1e999 is too large", ""),
        ("| z[0] = 0", "10:1", "this line has 1 bar, but the line above it allows at most 0", "child of the nearest"),
        ("4 z[{0}] = 0\n| i[{0}] = 0", "11:1", "a statement has no children", ""),
        ("4", "10:1", "scope of extent 4 is empty", ""),
        ("4 z[{0}] = 0 0", "10:14", "unexpected '0' after a statement", ""),
        ("4 z[{0}]!a!a = 0", "10:12", "hint 'a' is given twice", ""),
        ("4 z[{0}]!a(x) = 0", "10:12", "the value of a hint is", ""),
        ("4 z[{0} = 0", "10:9", "expected ',' or ']' in an index", ""),
        ("4 z[{0}] = (x[{0},0]", "10:21", "expected ')' to close the parenthesis", ""),
        ('4 z[{0}] = "a', "10:12", "the string is not closed", ""),
        ("4 z[{0}] = $", "10:12", "unexpected character '$'", ""),
        ("4 z[{0}] = 0\nx f32 [4] heap", "11:1", "declarations stand above the first scope", ""),
    ],
)
def test_errors_of_the_tree(written: str, position: str, expected: str, hint: str) -> None:
    text = message(written)
    first, _, rest = text.partition("\n")
    assert first.startswith(f"f.pdojo:{position}: error: ")
    assert expected in first
    assert "^" in rest
    assert hint in rest


@pytest.mark.parametrize(
    ("source", "call", "target", "hint"),
    [
        ("bf16", "cast", "f16", "go through f32"),
        ("f16", "cast", "bf16", "go through f32"),
        ("f32", "ucast", "f64", "cast(...) converts the value"),
        ("f32", "bitcast", "i64", "cast(...) converts the value"),
        ("f32", "arith.truncf", "i32", "cast(...) converts the value"),
        ("i32", "ucast", "i32", "cast(...) converts the value"),
    ],
)
def test_a_refused_cast_says_what_converts(source: str, call: str, target: str, hint: str) -> None:
    text = f"kernel k(x) -> (y)\nx {source} [8] heap\ny {target} [8] heap\n\n8 y[{{0}}] = {call}(x[{{0}}])\n"
    with pytest.raises(NotationError) as caught:
        parse_notation(text)
    assert f"'{call}' cannot take ({source}) to {target}" in str(caught.value)
    assert f"hint: {hint}" in str(caught.value)
    if hint.startswith("cast"):
        parse_notation(text.replace(call, "cast"))
    else:
        twice = "t f32 [8] heap\n\n8\n| t[{0}] = cast(x[{0}])\n| y[{0}] = cast(t[{0}])\n"
        parse_notation(text.partition("\n\n")[0] + "\n" + twice)


@pytest.mark.parametrize(
    ("value", "typed"),
    [
        ("{0} == 3", "{0}:i32 == 3"),
        ("2.5 < {0}", "2.5:f32 < {0}"),
        ("({0}+1)-({0}*2) < 0", "(({0}+1)-({0}*2)):i32 < 0"),
        ("cast({0})", "cast({0}:i32)"),
        ("cast({0} // 2)", "cast(({0} // 2):i32)"),
        ("cast(-({0}+1))", "cast((-({0}+1)):i32)"),
        ("cast(index(3))", "cast(index(3):i32)"),
        ("cast(-1)", "cast(-1:i32)"),
        ("cast(2+3)", "cast((2+3):i32)"),
        ("cast(-inf)", "cast(-inf:f32)"),
        ("cast(1e-3)", "cast((1e-3):f32)"),
    ],
)
def test_the_suggested_type_of_an_operand_is_accepted(value: str, typed: str) -> None:
    head = f"kernel k() -> (y)\ny {'f64' if 'cast' in value else 'i1'} [8] heap\n\n8 y[{{0}}] = "
    with pytest.raises(NotationError) as caught:
        parse_notation(head + value)
    suggested = str(caught.value).partition("hint: give an operand its type: ")[2]
    assert suggested in typed
    parse_notation(head + typed)


@pytest.mark.parametrize(
    ("header", "expected", "hint"),
    [
        ("", "the text has no kernel", "a kernel begins with"),
        ("4 z[{0}] = 0", "expected the header of a kernel", ""),
        ("kernel f(x) (y)", "expected '->' and the list of outputs", ""),
        ("kernel f(x, x) -> (y)", "array 'x' is listed twice in the list of inputs", ""),
        ("kernel f() -> (y)", "kernel 'f' has no statements", ""),
        ("kernel f() -> (y)\ny[] = 0", "interface array 'y' is not declared", "y f32 [512] heap"),
        ("kernel f() -> (y)\ny float32 [] heap", "unknown element type 'float32'", "f32"),
        ("kernel f() -> (y)\ny f8 [] heap", "unknown element type 'f8'", "hint: known: f64, f32, f16, bf16"),
        ("kernel f() -> (y)\ny f32 [] heep", "unknown location 'heep'", "did you mean 'heap'?"),
        ("kernel f() -> (y)\ny f32 [0] heap", "an extent is at least 1", ""),
        ("kernel f() -> (y)\ny f32 [N] heap", "expected an extent, an integer", ""),
        ("kernel f() -> (y)\ny f32 [4:M] heap", "expected 'N' after ':'", ""),
        ("kernel f() -> (y)\ny f32 [4:N] heap", "the memory of interface array 'y' is the caller's", ""),
        ("kernel f() -> (y)\ny f32 [4] stack", "the memory of interface array 'y' is the caller's", ""),
        ("kernel f(x) -> (y)\nx f32 [4] heap -> x, t", "no other array lives in it", ""),
        ("kernel f(z) -> (y, z)\ny f32 [4] heap -> y, z", "interface arrays 'y' and 'z' cannot share memory", ""),
        ("kernel f() -> (y)\nt f32 [4:N0] heap", "expected 'N' after ':'", ""),
        ("kernel f() -> (y)\ny f32 [4] heap align 3", "an alignment is a power of two of at least 4 bytes", ""),
        ("kernel f() -> (y)\nt f32 [4] heap align 64", "only interface arrays have an alignment", ""),
        ("kernel f() -> (y)\nt f32 [4, 8] heap strided", "only interface arrays are strided", ""),
        ("kernel f(x) -> (y)\nx f32 [4] heap strided", "an array of 1 dimensions has 0 strides", ""),
        ("kernel f(x) -> (y)\nx f32 [4, 8] heap strided 8, 1", "an array of 2 dimensions has 1 strides", ""),
        ("kernel f(x) -> (y)\nx f32 [4, 8] heap const strided", "strided array 'x': it is constant, which", ""),
        ("kernel f(x) -> (y)\nx i8 [4, 8] heap strided in 0..3", "strided array 'x': it is an array of indices", ""),
        ("kernel f(x) -> (y)\ny f32 [4, 8] heap strided 7", "strided array 'y': its elements overlap in memory", ""),
        ("kernel f() -> (y)\ny f32 [] heap\ny f32 [] heap", "array 'y' is declared twice, first on line 2", ""),
        ("kernel f() -> (y)\nnumerics fast", "unknown numerics class 'fast'", "known: exact"),
        ("kernel f() -> (y)\nmachine", "expected the name of a machine description", ""),
        ("kernel f() -> (y)\nmachine a\nmachine b", "'machine' is stated twice", ""),
        ("kernel f(x) -> (y)\narguments y", "'arguments' lists every interface array once: x, y", ""),
        ("kernel f() -> (y)\ny f32 [] heap\ny[] = 0\nkernel f() -> (y)", "kernel 'f' is defined twice", ""),
    ],
)
def test_errors_of_the_header(header: str, expected: str, hint: str) -> None:
    with pytest.raises(NotationError) as caught:
        parse_notation(header, "f.pdojo")
    text = str(caught.value)
    assert text.startswith("f.pdojo:")
    assert expected in text
    assert hint in text


@pytest.mark.parametrize(
    "text",
    ["2 z[{0}] = z[{0}+2]", "2 z[{0}*2] = z[{0}*2+1]", "4 z[{0}] = z[{0}] / 2"],
)
def test_reading_other_elements_of_the_array_written(text: str) -> None:
    assert tree_of(text) == text
