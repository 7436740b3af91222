"""The analytical model: what must hold whatever its constants are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.view.build import nest_of
from pdojo.kernels import workload
from pdojo.passes.cpu.cost_model import BYTES_PER_CYCLE, ModelCost, estimate
from pdojo.passes.scheduled_kernel import ScheduledKernel, make_moves
from pdojo.search.contract.evaluation import Candidate
from pdojo.search.evaluators.analytical import Analytical
from pdojo.transforms.game import Game

MACHINE = machine("x86-64-zen4")


def cost(text: str, on: Machine = MACHINE) -> ModelCost:
    found = estimate(nest_of(parse_notation(text)[0]), on)
    assert found is not None
    return found


def kernel(statements: str, rows: int = 4096, temporaries: str = "") -> str:
    return f"""
kernel k(x) -> (y)
x f32 [{rows}, 1024] heap
y f32 [{rows}, 1024] heap
{temporaries}

{statements}
"""


COPY = "4096 1024 y[{0},{1}] = x[{0},{1}] + 1"
VECTORS = "4096 64 16:v y[{0},{1}*16+{2}] = x[{0},{1}*16+{2}] + 1"


def test_vectors_cost_less() -> None:
    assert cost(kernel(VECTORS)).compute < cost(kernel(COPY)).compute / 4


def test_threads_share_the_arithmetic_and_cost_their_start() -> None:
    one, four = replace(MACHINE, threads=1), replace(MACHINE, threads=4)
    shared = kernel(COPY.replace("4096", "4096:p", 1))
    assert cost(shared, four).compute == pytest.approx(cost(shared, one).compute / 4, rel=0.01)
    assert cost(shared, four).starts > 0 == cost(kernel(COPY), four).starts


def test_traffic_of_a_stream() -> None:
    """From memory, a copy reads the input, and the output before it is written; streaming stores do not."""
    megabytes = 4096 * 1024 * 4
    plain, streamed = cost(kernel(VECTORS)), cost(kernel(VECTORS.replace("] = x", "]!nontemporal = x")))
    assert streamed.memory[-1] / plain.memory[-1] == pytest.approx(2 / 3)
    assert plain.memory[-1] * BYTES_PER_CYCLE[-1] == pytest.approx(3 * megabytes)


def test_columns_touch_more_lines_than_rows() -> None:
    columns = "1024 4096 y[{1},{0}] = x[{1},{0}] + 1"
    assert cost(kernel(columns)).memory[0] > 8 * cost(kernel(COPY)).memory[0]


def test_what_stays_in_a_cache_is_read_once() -> None:
    again = "4096\n| 1024 y[{0},{1}] = x[{0},{1}] + 1\n| 1024 y[{0},{1}] = y[{0},{1}] * x[{0},{1}]"
    apart = "4096 1024 y[{0},{1}] = x[{0},{1}] + 1\n4096 1024 y[{0},{1}] = y[{0},{1}] * x[{0},{1}]"
    assert cost(kernel(again)).memory[-1] == pytest.approx(cost(kernel(apart)).memory[-1] / 2)


def test_a_sum_waits_for_itself_unless_it_has_several_parts() -> None:
    one = "4096\n| t[{0}] = 0\n| 64 16:v t[{0}] += x[{0},{1}*16+{2}]\n| 1024 y[{0},{1}] = t[{0}]"
    many = (
        "4096\n| 4:u 16:v p[{0},{1},{2}] = 0\n| 16 4:u 16:v p[{0},{2},{3}] += x[{0},{1}*64+{2}*16+{3}]\n"
        "| 1024 y[{0},{1}] = p[{0},0,0]"
    )
    alone = cost(kernel(one, temporaries="t f32 [4096:N] stack")).compute
    assert cost(kernel(many, temporaries="p f32 [4096:N, 4, 16] stack")).compute < alone


@pytest.mark.parametrize(
    "name", ["softmax:2048x512", "matmul:256x256x256", "layernorm:512x1024", "conv:1x16x8x30x30x3"]
)
def test_passes_stand_in_their_order(name: str) -> None:
    plain = with_alignment(workload(name).instantiate(), 64)
    costs = [cost_of(make_moves(plain, MACHINE, expert)) for expert in (None, "greedy", "heuristic")]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > 3 * costs[-1]


def cost_of(tuning: ScheduledKernel) -> float:
    game = tuning.game.fork()
    (found,) = Analytical(MACHINE).evaluate([Candidate.of(game)])
    assert found.is_ok
    return found.cost


def test_a_program_for_another_machine_has_no_cost() -> None:
    gpu = machine("nvidia-sm90")
    game = Game(workload("add:64x64").instantiate(), gpu)
    game.apply("map_grid@z:0")
    (found,) = Analytical(MACHINE).evaluate([Candidate.of(game)])
    assert (found.failure, found.is_ok) == ("NoModel", False)


def test_a_program_costs_what_its_text_costs() -> None:
    """States bring their program with them, others only have its text."""
    for name in ("softmax:64x64", "matmul:32x32x32", "layernorm:4x100"):
        plain = with_alignment(workload(name).instantiate(), 64)
        here = Candidate.of(make_moves(plain, MACHINE, "heuristic").game.fork())
        (one,), (other,) = (Analytical(MACHINE).evaluate([c]) for c in (here, replace(here, nest=None)))
        assert one == other
