"""The heuristic pass's plans for Snitch cores: the cheapest by simulation, and causes of lost cycles, one by one."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from differential.compiled import Arrays
from differential.snitch import DIVIDES, run_snitch
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.flow.program import Program
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.scheduled_kernel import make_moves
from pdojo.passes.snitch.costs import cheapest
from pdojo.transforms.game import Game
from qa.simulated import simulated_code_differs

NUMERICS = "numerics contract reassociate\n"


def tuned(text: str) -> KernelOp:
    """The heuristic pass's program for a kernel, whose code gives the interpreter's bits."""
    (kernel,) = parse_notation(text)
    program = make_moves(kernel, DIVIDES, "heuristic").after
    assert simulated_code_differs(Program(program, DIVIDES), 11) is None
    return program


def measured(text: str, inputs: Arrays) -> tuple[Arrays, int]:
    """The outputs of the heuristic pass's program, and its cycles."""
    outputs, simulated = run_snitch(tuned(text), inputs)
    return outputs, simulated.cycles


@pytest.mark.parametrize("size", [72, 91])
def test_sums_of_one_loop_are_made_one_by_one(size: int) -> None:
    """Two products a step that wait for each other take eight cycles."""
    random = np.random.default_rng(size)
    x, y, z = random.standard_normal((3, size))
    arrays = "".join(f"{name} f64 [{size}] heap\n" for name in "xyz")
    tree = f"1\n| s[0] = 0\n| s[1] = 0\n| {size}\n| | s[0] += x[{{1}}] * y[{{1}}]\n| | s[1] += x[{{1}}] * z[{{1}}]\n"
    outputs, cycles = measured(
        f"kernel k(x, y, z) -> (s)\n{NUMERICS}{arrays}s f64 [2] heap\n\n{tree}", {"x": x, "y": y, "z": z}
    )
    assert np.allclose(outputs["s"], [x @ y, x @ z])
    assert cycles < 2.5 * size + 100


def test_updates_in_place_are_streamed() -> None:
    """A statement that reads what it writes needs no register for it: one instruction an element."""
    random = np.random.default_rng(2)
    x, y = random.standard_normal((2, 300))
    text = f"kernel k(x, y) -> (y)\n{NUMERICS}x f64 [300] heap\ny f64 [300] heap\nt f64 [] stack\n\n"
    text += "100\n| t[] = x[{0}*3] * 0.5\n| y[{0}*3+1] = y[{0}*3+1] + t[]\n"
    outputs, cycles = measured(text, {"x": x, "y": y})
    y[1::3] += x[::3] * 0.5
    assert np.allclose(outputs["y"], y)
    assert cycles < 150


def test_rows_of_bands_without_guards_are_one_nest() -> None:
    """Three products a row, and the set-up of streams for three nests."""
    random = np.random.default_rng(3)
    a, x = random.standard_normal((50, 3)), random.standard_normal(50)
    tree = "50\n| y[{0}] = 0\n| 3 where ({0}+{1} >= 1, {0}+{1} < 51) y[{0}] += a[{0},{1}] * x[{0}+{1}-1]\n"
    text = f"kernel k(a, x) -> (y)\n{NUMERICS}a f64 [50, 3] heap\nx f64 [50] heap\ny f64 [50] heap\n\n{tree}"
    outputs, cycles = measured(text, {"a": a, "x": x})
    padded = np.pad(x, 1)
    assert np.allclose(outputs["y"], sum(a[:, k] * padded[k : k + 50] for k in range(3)))
    assert cycles < 5 * 50


@pytest.mark.parametrize("dtype", ["f64", "f32"])
def test_products_of_carried_values_are_contracted(dtype: str) -> None:
    """The product of the carried value and the sum are one instruction, whichever product is written first."""
    x = np.random.default_rng(4).standard_normal(90).astype(dtype.replace("f", "float"))
    arrays = "x $T [90] heap\ny $T [90] heap\ns $T [1] heap\nt $T [] stack\n".replace("$T", dtype)
    text = f"kernel k(x) -> (y)\n{NUMERICS}{arrays}"
    text += "\n1 s[0] = 0\n90\n| s[0] = s[0] * 0.75\n| t[] = x[{0}] * 0.25\n| s[0] = s[0] + t[]\n| y[{0}] = s[0]\n"
    outputs, cycles = measured(text, {"x": x})
    wanted = [0.0]
    for value in x:
        wanted.append(0.75 * wanted[-1] + 0.25 * float(value))
    assert np.allclose(outputs["y"], wanted[1:], rtol=1e-5, atol=1e-6)
    assert cycles < 7.3 * 90


def test_values_used_twice_are_computed_once() -> None:
    """Squares of differences, computed again in another loop, have one difference each."""
    x = np.random.default_rng(5).standard_normal((12, 20))
    arrays = "x f64 [12, 20] heap\ny f64 [12] heap\nm f64 [12] heap\nd f64 [12, 20] heap\n"
    tree = "12\n| m[{0}] = 0\n| 20 m[{0}] += x[{0},{1}]\n12 m[{0}] = m[{0}] * 0.05\n"
    tree += "12 20 d[{0},{1}] = x[{0},{1}] - m[{0}]\n12\n| y[{0}] = 0\n| 20 y[{0}] += d[{0},{1}] * d[{0},{1}]\n"
    program = tuned(f"kernel k(x) -> (y)\n{NUMERICS}{arrays}\n{tree}")
    outputs, simulated = run_snitch(program, {"x": x})
    assert np.allclose(outputs["y"], 20 * x.var(axis=1))
    assert [leaf.function for leaf in nest_of(program).leaves].count("arith.subf") == 1
    assert simulated.cycles < 4 * x.size


def test_packed_sums_have_a_rest() -> None:
    """Four registers of partial sums, though they do not divide the number of terms."""
    x = np.random.default_rng(6).standard_normal(170).astype(np.float32)
    text = f"kernel k(x) -> (s)\n{NUMERICS}x f32 [170] heap align 64\ns f32 [1] heap\n\n"
    outputs, cycles = measured(f"{text}1\n| s[0] = 0\n| 170 s[0] += x[{{1}}] * x[{{1}}]\n", {"x": x})
    assert np.allclose(outputs["s"], x @ x, rtol=1e-5)
    assert cycles < 170


def test_long_straight_code_streams() -> None:
    """Numbers that no stream delivers do not keep others from being streamed."""
    random = np.random.default_rng(7)
    a, x = random.standard_normal((18, 12)).astype(np.float32), random.standard_normal(18).astype(np.float32)
    arrays = "a f32 [18, 12] heap align 64\nx f32 [18] heap\ny f32 [12] heap align 64\n\n"
    program = tuned(
        f"kernel k(a, x) -> (y)\n{NUMERICS}{arrays}12\n| y[{{0}}] = 0\n| 18 y[{{0}}] += a[{{1}},{{0}}] * x[{{1}}]\n"
    )
    outputs, _ = run_snitch(program, {"a": a, "x": x})
    assert np.allclose(outputs["y"], x @ a, rtol=1e-4, atol=1e-5)
    assert any(scope.mapping is Mapping.STREAM for scope in nest_of(program).scopes)


def test_initial_values_are_loaded_beside_streams() -> None:
    """A product that adds to a matrix streams both factors and the result."""
    random = np.random.default_rng(8)
    a, b, c = random.standard_normal((3, 10, 10))
    arrays = "".join(f"{name} f64 [10, 10] heap\n" for name in "abc")
    tree = "10 10 10 c[{0},{1}] += a[{0},{2}] * b[{2},{1}]\n"
    outputs, cycles = measured(f"kernel k(a, b, c) -> (c)\n{NUMERICS}{arrays}\n{tree}", {"a": a, "b": b, "c": c})
    assert np.allclose(outputs["c"], c + a @ b)
    assert cycles < 1.4 * 1000


@pytest.mark.parametrize(("sizes", "other"), [((2, 8, 4), 1), ((2, 4), 8), ((2,), 8)])
def test_the_cheapest_plan_is_made(sizes: tuple[int, ...], other: int) -> None:
    """The plan with the fewest cycles, wherever it stands; the first one if its cycles are not known."""

    def prepare(builder: PassBuilder) -> str:
        builder.make("delete_op", "z", "first of all")
        return "straight code"

    def unrolled(builder: PassBuilder, why: str, by: int) -> None:
        builder.make("tile_scope", "y:0", "parts", size=by)
        builder.make("unroll", "y:1", why)

    def alone(builder: PassBuilder) -> None:
        unrolled(builder, prepare(builder), other)

    plans = [partial(unrolled, by=n) for n in sizes]
    form = "x f64 [$n] heap\ny f64 [$n] heap\nz f64 [] heap\n\nz[] = 0\n$n y[{0}] = x[{0}] + 1\n"
    fixed = "kernel k(x) -> (y)\n" + form.replace("$n", "64")
    unknown = "kernel k(x) -> (y)\nsize n in 8..64 multiple 8\n" + form.replace("$n", "n")
    for text, extent in ((fixed, 8), (unknown, 2)):
        (kernel,) = parse_notation(text)
        game = Game(kernel, DIVIDES)
        played = PassBuilder.play(game, lambda builder: cheapest(builder, prepare, plans, alone))
        assert nest_of(game.kernel).scopes[-1].extent == extent
        assert [note.why for note in played.notes] == ["first of all", "parts", "straight code"]
