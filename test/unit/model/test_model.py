"""Models: groups of operations, the memory plan, and the results of interpreted and compiled models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from ctypes import memset
from functools import partial
from itertools import combinations, pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pdojo import build
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.llvm.executable import Constants, LoadedKernel
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.view.build import nest_of
from pdojo.errors import MeasurementError, UsageError
from pdojo.model import compiling
from pdojo.model.classify import Kind
from pdojo.model.graph import Graph, Known, Operand, Tensor
from pdojo.model.memory import plan_memory
from pdojo.model.model import Model
from pdojo.model.partition import partition
from unit.model.graphs import Graphs, constant


def names(graph: Graph) -> list[list[str]]:
    return [[operation.name for operation in group.operations] for group in partition(graph)]


def network() -> Graph:
    """Two layers with a residual connection and a normalisation by rows."""
    made = Graphs()
    x = made.input("x", 4, 32)
    first = made("matmul", build.matmul, x, constant(32, 32))
    first = made("relu", build.relu, made("add", lambda a, b: a + b, first, constant(32)))
    second = made("matmul", build.matmul, first, constant(32, 32))
    total = made("residual", lambda a, b: a + b, second, first)
    shifted = made("scale", lambda a: a * 0.5, made("reshape", lambda a: build.reshape(a, (2, 2, 32)), total))
    return made.finish(made("softmax", lambda a: build.softmax(a, axis=-1), shifted), total)


def expected(x: Known) -> tuple[Known, Known]:
    first = np.maximum(x @ constant(32, 32) + constant(32), 0)
    total = first @ constant(32, 32) + first
    e = np.exp(total * 0.5 - (total * 0.5).max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True)).reshape(2, 2, 32), total


def test_elementwise_operations_join_what_they_follow_or_the_only_reader() -> None:
    assert names(network()) == [["matmul", "add", "relu"], ["matmul", "residual", "reshape"], ["scale", "softmax"]]


def test_a_group_whose_operations_move_to_their_reader_is_no_kernel() -> None:
    made = Graphs()
    x, y = made.input("x", 4, 8), made.input("y", 4, 8)
    scaled = made("scale", lambda a: a * 2, made("flip", lambda a: build.flip(a, 1), x))
    graph = made.finish(made("add", lambda a, b: a + b, made("relu", build.relu, y), scaled))
    assert names(graph) == [["relu", "flip", "scale", "add"]]
    assert len(Model.of(graph).kernels) == 1


def test_a_reduction_joins_elementwise_operations_unless_its_row_is_long() -> None:
    for extent, groups in ((256, [["exp", "sum", "divide"]]), (1 << 15, [["exp"], ["sum"], ["divide"]])):
        made = Graphs()
        e = made("exp", build.exp, made.input("x", 4, extent))
        total = made("sum", lambda a: build.sum(a, axis=-1, keepdims=True), e)
        assert names(made.finish(made("divide", lambda a, b: a / b, e, total))) == groups


def test_a_long_row_that_nothing_else_reads_is_summed_up_where_it_is_computed() -> None:
    made = Graphs()
    x, y = made.input("x", 4, 1 << 15), made.input("y", 4, 1 << 15)
    product = made("product", lambda a, b: a * b, made("exp", build.exp, x), y)
    graph = made.finish(made("relu", build.relu, made("sum", lambda a: build.sum(a, axis=(0, 1)), product)))
    assert names(graph) == [["exp", "product", "sum", "relu"]]
    a, b = constant(4, 1 << 15), constant(4, 1 << 15)
    wanted = max(0.0, float((np.exp(a.astype(np.float64)) * b).sum()))
    assert np.allclose(run(graph, a, b)[0], wanted, rtol=1e-4)


def test_operations_move_to_their_only_reader_with_what_they_read() -> None:
    """Both parts of interleaved elements are computed where they are put together."""
    made = Graphs()
    x, c, s = made.input("x", 4, 16), made.input("c", 4, 8), made.input("s", 4, 8)
    even, odd = (made("part", lambda a, n=n: a[:, n::2], x) for n in (0, 1))

    def product(a: Operand, b: Operand) -> Operand:
        return made("product", lambda a, b: a * b, a, b)

    first = made("difference", lambda a, b: a - b, product(even, c), product(odd, s))
    second = made("total", lambda a, b: a + b, product(even, s), product(odd, c))
    graph = made.finish(made("stack", lambda a, b: build.stack([a, b], -1), first, second))
    assert len(names(graph)) == 1
    v, cos, sin = constant(4, 16), constant(4, 8), constant(4, 8) + 1
    e, o = v[:, ::2], v[:, 1::2]
    assert np.allclose(run(graph, v, cos, sin)[0], np.stack([e * cos - o * sin, e * sin + o * cos], -1), atol=1e-6)


def test_operations_that_others_read_stay() -> None:
    made = Graphs()
    x, y, w = made.input("x", 4, 8), made.input("y", 4, 8), made.input("w", 8, 8)
    scaled = made("scale", lambda a: a * 2, x)
    shifted = made("shift", lambda a: a + 1, scaled)
    product = made("product", build.matmul, scaled, w)
    total = made("total", lambda a, b: a + b, shifted, made("exp", build.exp, y))
    # The product reads `scale`, which therefore is in memory; `shift` alone moves.
    assert names(made.finish(product, total)) == [["scale"], ["product"], ["exp", "shift", "total"]]


def test_views_take_no_kernel_and_no_memory() -> None:
    made = Graphs()
    x = made.input("x", 4, 8)
    flat = made("flatten", lambda a: build.reshape(a, (32,)), x)
    model = Model.of(made.finish(flat, made("again", lambda a: build.reshape(a, (8, 4)), flat)))
    assert model.steps == ()
    given = constant(4, 8)
    for outputs in (model.interpret(given), model.compile(tune="none")(given)):
        assert [output.tolist() for output in outputs] == [given.reshape(32).tolist(), given.reshape(8, 4).tolist()]


def run(graph: Graph, *inputs: Known) -> list[Known]:
    """The outputs of the interpreted model."""
    return list(Model.of(graph).interpret(*inputs))


def test_copies_in_another_order_are_read_through() -> None:
    made = Graphs()
    x = made.input("x", 4, 8)
    turned = made("turn", build.transpose, x)
    graph = made.finish(made("exp", build.exp, turned), made("product", build.matmul, turned, made.input("w", 4, 8)))
    # The copy is in both kernels, and neither writes it.
    assert names(graph) == [["turn", "exp"], ["turn", "product"]]
    assert [len(step.outputs) for step in Model.of(graph).steps] == [1, 1]
    given, weights = constant(4, 8), constant(4, 8) + 1
    first, second = run(graph, given, weights)
    assert np.allclose(first, np.exp(given.T))
    assert np.allclose(second, given.T @ weights, atol=1e-6)


def test_copies_stay_before_their_first_reader_if_another_one_joins_the_kernel() -> None:
    made = Graphs()
    turned = made("turn", build.transpose, made.input("x", 4, 8))
    first = made("product", lambda a, b: a * b, turned, made.input("v", 8, 4))
    second = made("quotient", lambda a, b: a / b, turned, made.input("w", 8, 4))
    graph = made.finish(made("difference", lambda a, b: b - a, first, second))
    assert names(graph) == [["turn", "quotient", "product", "difference"]]
    x, v, w = constant(4, 8), constant(8, 4), constant(8, 4) + 2
    assert np.allclose(run(graph, x, v, w)[0], x.T / w - x.T * v, atol=1e-6)


def test_the_only_use_of_an_array_in_another_order_is_written_in_that_order() -> None:
    made = Graphs()
    product = made("product", build.matmul, made.input("x", 4, 8), made.input("w", 8, 4))
    turned = made("turn", build.transpose, product)
    graph = made.finish(made("again", build.matmul, turned, made.input("v", 4, 8)))
    assert names(graph) == [["product", "turn"], ["again"]]
    x, w, v = constant(4, 8), constant(8, 4), constant(4, 8) + 1
    assert np.allclose(run(graph, x, w, v)[0], (x @ w).T @ v, atol=1e-5)


def test_squares_belong_to_the_kernel_that_sums_them_up() -> None:
    made = Graphs()
    total = made(
        "residual",
        lambda a, b: a + b,
        made("product", build.matmul, made.input("x", 4, 8), constant(8, 8)),
        made.input("r", 4, 8),
    )
    mean = made("mean", lambda a: build.mean(a, -1, keepdims=True), made("square", lambda a: a * a, total))
    graph = made.finish(made("divide", lambda a, b: a / b, total, mean))
    assert names(graph) == [["product", "residual"], ["square", "mean", "divide"]]
    x, r = constant(4, 8), constant(4, 8) + 2
    wanted = x @ constant(8, 8) + r
    assert np.allclose(run(graph, x, r)[0], wanted / (wanted**2).mean(-1, keepdims=True), atol=1e-5)


def test_a_rotary_embedding_is_one_kernel() -> None:
    made = Graphs()
    x, sines = made.input("x", 6, 2, 8), made.input("s", 6, 8)
    turned = made("turn", lambda a: build.transpose(a, (1, 0, 2)), x)
    second = made("negate", lambda a: -a[..., 4:], turned)
    halves = made("cat", lambda a, b: build.concatenate([a, b[..., :4]], -1), second, turned)
    scaled = made("scale", lambda a, b: a * b, halves, sines)
    graph = made.finish(made("add", lambda a, b: a + build.transpose(b, (1, 0, 2)), x, scaled))
    model = Model.of(graph)
    assert len(model.steps) == 1
    # All nests run over rows in the order of the result, so that moves can join them.
    nests = print_notation(model.steps[0].kernel).split("\n\n")[1].splitlines()
    assert {line.split()[0] for line in nests if line[0].isdigit()} == {"6"}
    given, s = constant(6, 2, 8), constant(6, 8)
    t = given.transpose(1, 0, 2)
    wanted = given + (np.concatenate([-t[..., 4:], t[..., :4]], -1) * s).transpose(1, 0, 2)
    assert np.allclose(run(graph, given, s)[0], wanted, atol=1e-6)


def test_factors_that_are_parts_of_one_tensor_are_inputs_of_their_own() -> None:
    made = Graphs()
    x = made.input("x", 4, 8)
    graph = made.finish(made("gram", lambda a, b: build.matmul(a, build.transpose(b)), x, x))
    (step,) = Model.of(graph).steps
    assert len(step.inputs) == 2
    assert np.allclose(run(graph, constant(4, 8))[0], constant(4, 8) @ constant(4, 8).T, atol=1e-6)


def test_heads_that_share_keys_are_split_in_all_nests() -> None:
    made = Graphs()
    q, k = made.input("q", 4, 3, 8), made.input("k", 2, 5, 8)
    keys = made("repeat", lambda a: build.reshape(build.broadcast_to(a[:, None], (2, 2, 5, 8)), (4, 5, 8)), k)
    graph = made.finish(made("attention", lambda a, b: build.attention(a, b, b), q, keys))
    (step,) = Model.of(graph).steps
    nests = print_notation(step.kernel).split("\n\n")[1].splitlines()
    assert {tuple(line.split()[:2]) for line in nests if line.startswith(("2", "4"))} == {("2", "2")}
    given, shared = constant(4, 3, 8), constant(2, 5, 8)
    whole = shared.repeat(2, 0)
    e = np.exp(given @ whole.transpose(0, 2, 1) / np.sqrt(np.float32(8)))
    assert np.allclose(run(graph, given, shared)[0], e / e.sum(-1, keepdims=True) @ whole, atol=1e-5)


def test_groups_are_in_an_order_of_execution() -> None:
    made = Graphs()
    x, w = made.input("x", 8, 8), made.input("w", 8, 8)
    left = made("left", build.matmul, x, w)
    right = made("right", build.matmul, left, w)
    # It may not join the group of `left`, which is before that of `right`.
    late = made("late", lambda a, b: a + b, left, right)
    graph = made.finish(late, made("early", build.relu, left))
    assert names(graph) == [["left", "early"], ["right", "late"]]


def test_kinds_of_operations() -> None:
    made = Graphs()
    x = made.input("x", 1, 3, 8, 8)
    made("relu", build.relu, x)
    made("softmax", lambda a: build.softmax(a, axis=-1), x)
    made("conv", lambda a, b: build.conv(a, b), x, constant(4, 3, 3, 3))
    made("pool", lambda a: build.pool("max", a, (2, 2)), x)
    made("transpose", lambda a: build.transpose(a, (0, 2, 3, 1)), x)
    kinds = {operation.name: operation.kind for operation in made.builder.operations}
    assert kinds == {
        "relu": Kind.ELEMENTWISE,
        "softmax": Kind.REDUCTION,
        "conv": Kind.CONTRACTION,
        "pool": Kind.OTHER,
        "transpose": Kind.VIEW,
    }


def test_equal_kernels_are_one() -> None:
    made = Graphs()
    x = made.input("x", 8, 8)
    for _ in range(3):
        x = made("matmul", build.matmul, x, constant(8, 8))
    model = Model.of(made.finish(x))
    assert (len(model.steps), len(model.kernels)) == (3, 1)


@pytest.mark.parametrize("tune", ["none", "pass"])
def test_compiled_models_agree_with_the_interpreter_and_with_numpy(tune: str) -> None:
    model = Model.of(network())
    x = constant(4, 32)
    compiled = model.compile(tune=tune)  # pyright: ignore[reportArgumentType]
    for ours, interpreted, right in zip(compiled(x), model.interpret(x), expected(x), strict=True):
        np.testing.assert_allclose(ours, right, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(interpreted, right, rtol=1e-4, atol=1e-5)


def test_calls_write_into_given_outputs_and_take_unaligned_arrays() -> None:
    model = Model.of(network())
    compiled = model.compile()
    memory = np.zeros(4 * 32 + 1, np.float32)
    unaligned = memory[1:].reshape(4, 32)
    unaligned[...] = constant(4, 32)
    out = np.zeros(4 * 32 + 1, np.float32)[1:].reshape(4, 32)
    _, total = compiled(unaligned, out1=out)
    assert total is not None
    np.testing.assert_allclose(out, expected(constant(4, 32))[1], rtol=1e-4, atol=1e-5)


def test_a_kernel_that_writes_outside_of_its_outputs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = Model.of(network()).compile(tune="none")
    compiled.check_memory()

    def bind(self: LoadedKernel, *arrays: NDArray[Any]) -> Callable[[], object]:
        behind = arrays[-1].ctypes.data + arrays[-1].nbytes
        return partial(memset, behind, 0, 1)

    monkeypatch.setattr(LoadedKernel, "bind", bind)
    with pytest.raises(MeasurementError, match=r"kernel '\w+' of \w+: memory after array '\w+' was written"):
        compiled.check_memory()


def test_threads_may_call_a_model_at_once() -> None:
    compiled = Model.of(network()).compile(tune="none")
    rows = [np.random.default_rng(seed).uniform(-1, 1, (4, 32)).astype(np.float32) for seed in range(16)]
    alone = [compiled(x)[0] for x in rows]
    with ThreadPoolExecutor(4) as pool:
        together = [outputs[0] for outputs in pool.map(compiled, rows * 4)]
    for left, right in zip(alone * 4, together, strict=True):
        assert left.tobytes() == right.tobytes()


def test_constants_are_folded_and_outputs_may_be_known() -> None:
    made = Graphs()
    made.input("x", 2)
    given = constant(4, 4)
    total = made("sum", lambda a: build.sum(a, axis=0), made("double", lambda a: a * 2, given))
    assert isinstance(total, np.ndarray)
    model = Model.of(made.finish(total))
    assert model.steps == ()
    np.testing.assert_allclose(model.compile(tune="none")(np.zeros(2, np.float32)), (given * 2).sum(0), rtol=1e-6)


def test_sums_of_nothing_are_known() -> None:
    """Nests without iterations do nothing, and nothing that they read is computed."""
    made = Graphs()
    empty = np.empty((2, 0, 4), np.float32)
    total = made("total", lambda a: build.sum(a * a, axis=1), empty)
    assert not isinstance(total, Tensor)
    assert np.array_equal(total, np.zeros((2, 4)))


def test_arrays_that_do_not_fit_are_refused() -> None:
    model = Model.of(network())
    compiled = model.compile(tune="none")
    with pytest.raises(UsageError, match="'x' has shape"):
        compiled(np.zeros((4, 31), np.float32))
    with pytest.raises(UsageError, match="needs x"):
        model.interpret()
    with pytest.raises(UsageError, match="tune is 'none' or 'pass', not 'fast'"):
        model.compile(tune="fast")  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="snitch is of another kind"):
        model.compile("snitch")


def chain(extents: Sequence[int]) -> Model:
    """Matrix products whose sizes are the extents, with every second result used at the end."""
    made = Graphs()
    x = made.input("x", 4, extents[0])
    kept: list[Operand] = []
    for number, (rows, columns) in enumerate(pairwise(extents)):
        x = made("matmul", build.matmul, x, constant(rows, columns))
        if number % 2:
            kept.append(made("total", lambda a: build.sum(a), x))
    for each in kept:
        x = made("add", lambda a, b: a + b, x, each)
    return Model.of(made.finish(x))


def test_tensors_that_live_together_lie_apart_and_others_share_memory() -> None:
    extents = np.random.default_rng(3).integers(3, 40, 12).tolist()
    model = chain(extents)
    lives: dict[Tensor, tuple[int, int]] = {}
    for number, step in enumerate(model.steps):
        for operand in (*step.inputs, *step.outputs):
            if isinstance(operand, Tensor) and operand.memory in model.memory.offsets:
                first, _ = lives.get(operand.memory, (number, number))
                lives[operand.memory] = (first, number)
    assert lives.keys() == model.memory.offsets.keys()
    places = {tensor: (offset, offset + tensor.bytes) for tensor, offset in model.memory.offsets.items()}
    assert all(start % 64 == 0 and end <= model.memory.bytes for start, end in places.values())
    for one, other in combinations(places, 2):
        apart = places[one][1] <= places[other][0] or places[other][1] <= places[one][0]
        in_turns = lives[one][1] < lives[other][0] or lives[other][1] < lives[one][0]
        assert apart or in_turns, (one, other)
    assert model.memory.bytes < sum(tensor.bytes for tensor in places)
    assert plan_memory(model.steps, model.results) == model.memory


def test_kernels_of_a_model_are_ordinary_kernels() -> None:
    (first, *_) = Model.of(network()).kernels
    assert first.sym_name.data == "matmul_add_relu"
    assert print_notation(first).startswith("kernel matmul_add_relu(x, w0_1, w1_1) -> (y)\n")


def test_what_depends_on_constants_only_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tuned program of `x * w` has a constant temporary, as the pass makes for packed weights."""
    graphs = Graphs()
    x, w = graphs.input("x", 4, 8), constant(4, 8)
    model = Model.of(graphs.finish(graphs("product", lambda a, b: a * b, x, w)))
    text = print_notation(model.kernels[0])
    header, statement = text.rstrip().rsplit("\n", 1)
    name = next(p.name for p in parameters_of(nest_of(model.kernels[0])) if p.constant)
    reading = statement.replace(f"{name}[", "p[")
    packed = f"p f32 [4, 8] heap const\n\n4 8 p[{{0}},{{1}}] = {name}[{{0}},{{1}}]\n{reading}\n"
    (program,) = parse_notation(header.rstrip() + "\n" + packed, "packed")
    count: list[object] = []
    computed = Constants.computed

    def tuned(*_: object) -> SimpleNamespace:
        return SimpleNamespace(after=program)

    def counted(constants: Constants, given: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        count.append(given)
        return computed(constants, given)

    monkeypatch.setattr(compiling, "make_moves", tuned)
    monkeypatch.setattr(Constants, "computed", counted)
    run = model.compile(cached=False)
    for seed in range(3):
        values = np.random.default_rng(seed).uniform(-1, 1, (4, 8)).astype(np.float32)
        assert np.array_equal(run(values), values * w)
    assert len(count) == 1
