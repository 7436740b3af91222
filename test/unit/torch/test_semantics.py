"""Shapes that change, aliases, changes in place, layouts, contexts, training, changed parameters, threads, memory."""

from __future__ import annotations

import copy
import gc
import pickle
import random
import threading
import weakref
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from pdojo.model import sized_programs
from pdojo.model.compiling import KernelRequest, compile_kernels
from pdojo.torch import FallbackWarning
from pdojo.torch.backend import CompiledGraph, compiled_graph
from pdojo.torch.options import Options

PLAIN = {"tune": "none"}


pytestmark = pytest.mark.usefixtures("no_caches")


def compiled(function: Callable[..., Any], **keywords: Any) -> Callable[..., Any]:
    return torch.compile(function, backend="pdojo", options=PLAIN, **keywords)


def recorded(function: Callable[..., Any], **keywords: Any) -> tuple[Callable[..., Any], list[CompiledGraph]]:
    """The compiled function, and the graphs that are made of it."""
    graphs: list[CompiledGraph] = []

    def make(*arguments: Any) -> CompiledGraph:
        graphs.append(CompiledGraph(*arguments))
        return graphs[-1]

    def backend(graph: Any, inputs: Any) -> Any:
        return compiled_graph(graph, inputs, Options(tune="none"), make)

    return torch.compile(function, backend=backend, **keywords), graphs


def agree(ours: Any, theirs: Any) -> None:
    """Compare results: values, element types, strides, offsets, and which of them share memory."""
    rows = [(a, b) for a, b in zip(ours, theirs, strict=True) if isinstance(b, torch.Tensor)]
    for a, b in rows:
        torch.testing.assert_close(a, b)
        assert (a.stride(), a.storage_offset()) == (b.stride(), b.storage_offset())
        assert a.requires_grad == b.requires_grad
    for k, (a, b) in enumerate(rows):
        for c, d in rows[:k]:
            assert shared(a, c) == shared(b, d)


def shared(a: Any, b: Any) -> bool:
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def agrees(function: Callable[..., Any], *inputs: Any, **keywords: Any) -> None:
    """Compare results and inputs after calls of the compiled function and of the function, two of each."""
    ours = compiled(function, **keywords)
    left, right = copy.deepcopy(inputs), copy.deepcopy(inputs)
    for _ in range(2):
        found, wanted = ours(*left), function(*right)
        agree((*_rows(found), *left), (*_rows(wanted), *right))


def _rows(found: Any) -> tuple[Any, ...]:
    return tuple(found) if isinstance(found, tuple | list) else (found,)


class Indexed(torch.nn.Module):
    """A function of a table, updates and indices that it keeps."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        self.register_buffer("rows", torch.tensor([4, 0, 4, 1, 4, 0]))
        self.register_buffer("places", torch.randint(0, 5, (6, 4)))

    def forward(self, x: Any, u: Any) -> Any:
        return self.function(self, x, u)


_STORED: dict[str, Callable[..., Any]] = {
    "index_add": lambda m, x, u: x.index_add(0, m.rows, u, alpha=-2),
    "index_copy": lambda m, x, u: x.index_copy(0, m.rows, u),
    "index_fill": lambda m, x, u: x.index_fill(0, m.rows, 3.0) + u.sum(),
    "index_put": lambda m, x, u: x.index_put((m.rows, m.rows % 4), u[:, 0], accumulate=True),
    "put": lambda m, x, u: x.clone().put_(m.rows, u[:, 0]),
    "scatter": lambda m, x, u: x.scatter(0, m.places, u),
    "one_hot": lambda m, x, u: torch.nn.functional.one_hot(m.rows, 5).float() @ x,
}
_LOOKED_UP: dict[str, Callable[..., Any]] = {
    "index": lambda m, x, u: x[m.rows] * u,
    "take": lambda m, x, u: x.take(m.rows) * u[:, 0],
    "gather": lambda m, x, u: x.gather(0, m.places) * u,
    "embedding": lambda m, x, u: torch.nn.functional.embedding(m.rows, x, padding_idx=1) * u,
    "index_add": lambda m, x, u: x.index_add(0, m.rows, u) * 2,
    "pool": lambda m, x, u: torch.nn.functional.max_pool2d(x[None, None], 3, 1, 1) * u[None, None, :5],
    "equal elements": lambda m, x, u: torch.nn.functional.max_pool2d(x[None, None].round(), 3, 1, 1) * u[:5],
}


@pytest.mark.parametrize("name", _STORED)
def test_elements_are_stored_at_indices_given_several_times(name: str) -> None:
    with torch.no_grad():
        agrees(Indexed(_STORED[name]), torch.randn(5, 4), torch.randn(6, 4))


@pytest.mark.parametrize("name", _LOOKED_UP)
def test_gradients_of_indices_given_several_times(name: str) -> None:
    module, x, u = Indexed(_LOOKED_UP[name]), torch.randn(5, 4), torch.randn(6, 4)
    found: list[Any] = []
    for function in (compiled(module), module):
        given = [x.clone().requires_grad_(), u.clone().requires_grad_()]
        function(*given).sin().sum().backward()
        found.append([each.grad for each in given])
    torch.testing.assert_close(*found)


def test_sizes_become_symbols() -> None:
    linear = torch.nn.Linear(4, 3).eval()
    ours, graphs = recorded(lambda x: torch.relu(linear(x)) * x.shape[0])
    with torch.no_grad():
        for rows in (2, 3, 5, 3, 2):
            x = torch.randn(rows, 4)
            torch.testing.assert_close(ours(x), torch.relu(linear(x)) * rows)
    assert len(graphs) == 2
    assert [len(graph.programs) for graph in graphs] == [1, 3]


@pytest.mark.filterwarnings("ignore::pdojo.torch.FallbackWarning")
@pytest.mark.parametrize("dynamic", [True, False])
def test_dynamic_or_not(dynamic: bool) -> None:
    ours, graphs = recorded(lambda x: torch.softmax(x + x.shape[1], 1), dynamic=dynamic)
    for shape in ((2, 3), (2, 5), (4, 5)):
        x = torch.randn(shape)
        torch.testing.assert_close(ours(x), torch.softmax(x + shape[1], 1))
    assert [len(graph.programs) for graph in graphs] == ([3] if dynamic else [1, 1, 1])


def test_shapes_without_programs_run_in_pytorch_which_is_said_once() -> None:
    ours = torch.compile(
        lambda x: torch.relu(x.view(-1)) + 1, backend="pdojo", dynamic=True, options={**PLAIN, "specialisations": 2}
    )
    # A product of sizes is no axis of a kernel. The programs of 6 and 9 elements are for up to 18.
    inputs = [torch.randn(3, rows) for rows in range(2, 12)]
    with pytest.warns(FallbackWarning, match="2 combinations of shapes; PyTorch runs others") as said:
        found = [ours(x) for x in inputs]
    assert len(said) == 1
    torch.testing.assert_close(found, [torch.relu(x.view(-1)) + 1 for x in inputs])


class Block(torch.nn.Module):
    """Products of flattened rows that are read as rows of sequences, attention, and one row for any length."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(12, 24), torch.nn.GELU(), torch.nn.Linear(24, 12))

    def forward(self, x: Any) -> Any:
        y = x + self.layers(torch.nn.functional.scaled_dot_product_attention(x, x, x))
        return y + self.layers(self.layers(x[:, :1]))


@pytest.mark.parametrize(("dynamic", "graphs_made"), [(True, 1), (None, 2)])
def test_sizes_are_looked_up(dynamic: bool | None, graphs_made: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Automatic symbols have a graph before; several sequences have programs with sizes at their second shape."""
    compiled_texts: list[str] = []

    def counted(requests: Sequence[KernelRequest], **options: Any) -> Any:
        compiled_texts.extend(each.text for each in requests)
        return compile_kernels(requests, **options)

    monkeypatch.setattr(sized_programs, "compile_kernels", counted)
    model = Block().eval()
    ours, graphs = recorded(model, dynamic=dynamic)
    with torch.no_grad():
        for length in range(5, 5 + graphs_made + 1):
            x = torch.randn(2, length, 12)
            torch.testing.assert_close(ours(x), model(x), rtol=1e-5, atol=1e-5)
        before = len(compiled_texts)
        assert any("size" in text for text in compiled_texts)
        for length in (12, 4, 9, 11, 8, 3, 2, 10, 5, 6, 7):
            x = torch.randn(2, length, 12)
            torch.testing.assert_close(ours(x), model(x), rtol=1e-5, atol=1e-5)
    assert len(compiled_texts) == before
    assert len(graphs) == graphs_made
    assert None not in graphs[-1].programs.values()
    assert len(graphs[-1].programs) > Options().specialisations


def test_changed_constants_of_programs_with_sizes() -> None:
    model = Block().eval()
    ours, graphs = recorded(model, dynamic=True)
    with torch.no_grad():
        for length in (5, 6, 7):
            ours(torch.randn(2, length, 12))
        for length in (7, 8):
            model.layers[0].weight += 1
            x = torch.randn(2, length, 12)
            torch.testing.assert_close(ours(x), model(x), rtol=1e-5, atol=1e-5)
    assert len(graphs) == 1


def test_layouts_of_symbolic_shapes_are_specialised() -> None:
    ours = compiled(lambda x: torch.relu(x) + 1, dynamic=True)
    for x in (torch.randn(4, 6), torch.randn(6, 4).t(), torch.randn(4, 12)[:, ::2], torch.randn(4, 1).expand(4, 6)):
        agree((ours(x),), (torch.relu(x) + 1,))


def test_changes_in_place() -> None:
    def function(x: Any, y: Any) -> Any:
        x.add_(y)
        y[1:] = x[:1]
        z = x * 2
        x.relu_()
        return z, x

    agrees(function, torch.randn(2, 3), torch.randn(2, 3))
    agrees(function, torch.randn(3, 2).t(), torch.randn(2, 6)[:, ::2])


def test_changes_in_place_of_buffers() -> None:
    class Counter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(3))

        def forward(self, x: Any) -> Any:
            self.count += 1
            return x * self.count

    ours, theirs = Counter(), Counter()
    call = compiled(ours)
    with torch.no_grad():
        for _ in range(5):
            x = torch.randn(3)
            torch.testing.assert_close(call(x), theirs(x))
            torch.testing.assert_close(ours.count, theirs.count)


def test_aliases_of_inputs() -> None:
    agrees(lambda x: (x, x.view(6), x.t(), torch.relu(x), x[1]), torch.randn(2, 3))
    agrees(lambda x, y: (y, x, x + y, x), torch.randn(2, 3), torch.randn(2, 3))


def test_aliases_of_results() -> None:
    def function(x: Any) -> Any:
        y = torch.relu(x + 1)
        return y, y.t(), y[1:], y.view(-1)[::2], y

    agrees(function, torch.randn(2, 3))
    agrees(lambda x: torch.relu(x + 1)[:, 1:], torch.randn(4, 3))
    agrees(lambda x: torch.relu(x + 1)[2].expand(5, 3), torch.randn(4, 3))
    agrees(lambda x: (x + 1).chunk(2), torch.randn(4, 3))


def test_one_tensor_as_several_inputs() -> None:
    def function(x: Any, y: Any) -> Any:
        z = x * y
        x.add_(1)
        return z + y

    def both(call: Callable[..., Any]) -> Any:
        torch.manual_seed(1)
        x = torch.randn(2, 3)
        return [call(x, x), x, call(x, x), x]

    torch.testing.assert_close(both(compiled(function)), both(function))


def test_inputs_that_overlap() -> None:
    def function(x: Any, y: Any) -> Any:
        x.mul_(2)
        return y + 1

    def overlapping(call: Callable[..., Any]) -> Any:
        base = torch.arange(8.0)
        return [call(base[:6], base[2:]), base]

    torch.testing.assert_close(overlapping(compiled(function)), overlapping(function))


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.randn(5, 4).t(),
        lambda: torch.randn(8, 5)[::2],
        lambda: torch.randn(4, 1).expand(4, 5),
        lambda: torch.randn(21)[1:].view(4, 5),
        lambda: torch.randn(2, 4, 5)[1],
        lambda: torch.randn(4, 5).flip(0),
        lambda: torch.as_strided(torch.randn(20), (4, 5), (1, 1)),
        lambda: torch.randn(5).expand(4, 5),
        lambda: torch.randn(1, 1).expand(4, 5),
    ],
    ids=["transposed", "strided", "expanded", "misaligned", "offset", "flipped", "overlapping", "rows", "one"],
)
def test_layouts_of_inputs(make: Callable[[], Any]) -> None:
    agrees(lambda x, y: (x + y, torch.relu(x), x.sum(0), x @ y.t()), make(), torch.randn(4, 5))


def test_other_memory_in_each_call() -> None:
    ours = compiled(lambda x: torch.relu(x) + 1)
    whole = torch.randn(64)
    for start in range(20):
        x = whole[start : start + 33]
        torch.testing.assert_close(ours(x), torch.relu(x) + 1)


def test_channels_last() -> None:
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    agrees(lambda x: (torch.relu(x) + 1, x * x[:1], x.mean((2, 3))), x)


def test_inference_mode() -> None:
    linear = torch.nn.Linear(4, 3).eval()
    ours = compiled(linear)
    x = torch.randn(2, 4)
    for context in (torch.inference_mode, torch.no_grad, torch.enable_grad, torch.inference_mode):
        with context():
            found, wanted = ours(x), linear(x)
            torch.testing.assert_close(found, wanted)
            assert found.is_inference() == wanted.is_inference()
            assert found.requires_grad == wanted.requires_grad


def test_parameters_of_inference_mode() -> None:
    with torch.inference_mode():
        linear = torch.nn.Linear(4, 3).eval()
        ours = compiled(linear)
        x = torch.randn(2, 4)
        torch.testing.assert_close(ours(x), linear(x))
        linear.weight.mul_(2)
        torch.testing.assert_close(ours(x), linear(x))
        linear.weight[1, 2] += 1
        torch.testing.assert_close(ours(x), linear(x))


def test_autocast() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).eval()
    ours = compiled(model)
    x = torch.randn(2, 8)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        found, wanted = ours(x), model(x)
    assert found.dtype == wanted.dtype == torch.bfloat16
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
def test_training(optimizer: Any) -> None:
    ours = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4))
    theirs = copy.deepcopy(ours)
    call = compiled(ours)

    def step(model: Any, call: Any, steps: Any, x: Any, y: Any) -> Any:
        loss = torch.nn.functional.mse_loss(call(x), y)
        steps.zero_grad()
        loss.backward()
        steps.step()
        return loss.detach(), [each.grad.clone() for each in model.parameters()]

    left, right = optimizer(ours.parameters(), lr=0.05), optimizer(theirs.parameters(), lr=0.05)
    for _ in range(4):
        x, y = torch.randn(5, 8), torch.randn(5, 4)
        torch.testing.assert_close(step(ours, call, left, x, y), step(theirs, theirs, right, x, y))
        with torch.no_grad():
            torch.testing.assert_close(call(x), theirs(x))
    torch.testing.assert_close(list(ours.parameters()), list(theirs.parameters()))


def test_gradients_of_inputs() -> None:
    def gradients(call: Callable[..., Any]) -> Any:
        torch.manual_seed(2)
        x, w = torch.randn(4, 3, requires_grad=True), torch.randn(3, 2, requires_grad=True)
        torch.softmax(call(x, w), 1)[:, 0].sum().backward()
        return x.grad, w.grad

    def function(x: Any, w: Any) -> Any:
        return torch.tanh(x @ w) + torch.sigmoid(x).sum(1, keepdim=True)

    torch.testing.assert_close(gradients(compiled(function)), gradients(function))


def _in_place(model: Any) -> None:
    with torch.no_grad():
        model.weight.mul_(2)


def _element(model: Any) -> None:
    with torch.no_grad():
        model.weight[1, 2] += 1


def _data(model: Any) -> None:
    model.weight.data.mul_(3)


def _new_data(model: Any) -> None:
    model.weight.data = torch.randn_like(model.weight)


def _state(model: Any) -> None:
    model.load_state_dict({"weight": torch.randn(3, 4), "bias": torch.randn(3)})


def _assigned(model: Any) -> None:
    model.load_state_dict({"weight": torch.randn(3, 4), "bias": torch.randn(3)}, assign=True)


def _parameter(model: Any) -> None:
    model.weight = torch.nn.Parameter(torch.randn(3, 4))


def _initialised(model: Any) -> None:
    model.reset_parameters()


def _optimized(model: Any) -> None:
    with torch.enable_grad():
        model(torch.ones(2, 4)).sum().backward()
    torch.optim.SGD(model.parameters(), lr=0.5).step()


CHANGES = (_in_place, _element, _data, _new_data, _state, _assigned, _parameter, _initialised, _optimized)


@pytest.mark.parametrize("change", CHANGES)
def test_changed_parameters(change: Callable[[Any], None]) -> None:
    model = torch.nn.Linear(4, 3).eval()
    ours = compiled(model)
    x = torch.randn(2, 4)
    with torch.no_grad():
        for _ in range(4):  # More changes than constants survive.
            torch.testing.assert_close(ours(x), model(x))
            change(model)
        torch.testing.assert_close(ours(x), model(x))


def test_parameters_that_share_memory() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)).eval()
    model[1].weight = model[0].weight
    ours = compiled(model)
    x = torch.randn(2, 4)
    with torch.no_grad():
        torch.testing.assert_close(ours(x), model(x))
        model[0].weight.mul_(2)
        torch.testing.assert_close(ours(x), model(x))


def test_threads_call_at_once() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8)).eval()
    ours, graphs = recorded(model)
    inputs = [torch.randn(4, 16) for _ in range(4)]
    with torch.no_grad():
        wanted = [model(x) for x in inputs]
        ours(inputs[0])
    right: list[bool] = []

    def work(number: int) -> None:
        with torch.no_grad():
            right.extend(torch.allclose(ours(inputs[number]), wanted[number], atol=1e-5) for _ in range(50))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [True] * 200
    assert len(graphs) == 1


def test_first_calls_at_once() -> None:
    ours = compiled(lambda x: torch.softmax(x * 2, -1))
    x = torch.randn(4, 16)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(ours(x))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    for each in found:
        torch.testing.assert_close(each, torch.softmax(x * 2, -1))


def test_the_number_of_threads_is_pytorchs() -> None:
    ours, graphs = recorded(lambda x: torch.relu(x) * 2)
    before = torch.get_num_threads()
    x = torch.randn(8, 8)
    try:
        for threads in (1, 2, 1):
            torch.set_num_threads(threads)
            torch.testing.assert_close(ours(x), torch.relu(x) * 2)
    finally:
        torch.set_num_threads(before)
    programs = [program for graph in graphs for program in graph.programs.values() if program is not None]
    models = [region.compiled for program in programs for region in program.regions.values()]
    steps = [step for model in models for step in model._calls.steps]
    assert [executable.threads for executable, _ in steps] == [1, 2]


def test_modules_are_pickled_and_copied() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()).eval()
    ours: Any = compiled(model)
    x = torch.randn(2, 4)
    with torch.no_grad():
        wanted = ours(x).clone()
        again = copy.deepcopy(model)
        torch.testing.assert_close(pickle.loads(pickle.dumps(model))(x), wanted)
        torch.testing.assert_close(compiled(again)(x), wanted)
        again[0].weight.zero_()
        torch.testing.assert_close(ours(x), wanted)
        stored = BytesIO()
        torch.save(ours.state_dict(), stored)
        stored.seek(0)
        assert len(torch.load(stored)) == 2
        torch.testing.assert_close(copy.deepcopy(ours)(x), wanted)


def test_deletion_frees_memory() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU()).eval()
    ours, graphs = recorded(model)
    with torch.no_grad():
        ours(torch.randn(2, 64))
    dying = [weakref.ref(model[0].weight), weakref.ref(graphs[0])]
    graphs.clear()
    del model, ours
    gc.collect()
    torch._dynamo.reset()
    gc.collect()
    assert [each() for each in dying] == [None, None]


def test_tensors_of_a_call_die_with_it() -> None:
    ours = compiled(lambda x: torch.relu(x) + 1)
    x = torch.randn(4)
    y = ours(x)
    dying = [weakref.ref(x), weakref.ref(y)]
    del x, y
    gc.collect()
    assert [each() for each in dying] == [None, None]


def test_random_numbers_of_python() -> None:
    def function(x: Any, draw: random.Random) -> Any:
        return x * 2 if draw.random() < 0.5 else x

    ours, theirs = compiled(function), torch.compile(lambda x, draw: function(x, draw), backend="eager")
    x = torch.randn(3)
    for seed in range(4):
        torch.testing.assert_close(ours(x, random.Random(seed)), theirs(x, random.Random(seed)))


def test_zeros_of_both_signs_are_no_single_number() -> None:
    agrees(lambda x: x / torch.tensor([0.0, -0.0]), torch.ones(3, 2))
