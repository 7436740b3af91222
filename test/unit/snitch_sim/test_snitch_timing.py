"""Every latency that was measured on the RTL, as a tiny program. What a test states is the measured figure."""

from __future__ import annotations

import pytest

from pdojo.snitch_sim.simulator import Result
from snitch_programs import BASE, FENCE, OFF, OLD, ON, issues, loop, run, stream

ACCUMULATE = "\n".join(f"fadd.d fs{i}, fs{i}, fa1" for i in range(4))


def cycles(body: str) -> int:
    return run(body).cycles


def core_gap(first: str, second: str) -> int:
    """Cycles from the core's issue of the first instruction to its issue of the second."""
    times = core_times(f"{first}\n{second}")
    return times[1] - times[0]


def core_times(body: str, skip: int = 0) -> list[int]:
    result = run(f"{body}", trace=True, arguments=[BASE])
    return [e.cycle for e in result.events if e.unit == "core" and not e.cause][skip:]


def float_times(body: str) -> list[int]:
    result = run(body, trace=True, arguments=[BASE])
    return [e.cycle for e in result.events if e.unit == "fp" and not e.cause]


def numbers(letter: str) -> str:
    """Eight instructions that put 7 and 3 into fa0 and fa1, in a format or packed (`v`)."""
    end = "vfcpka.s.s fa0, fa0, fa0\nvfcpka.s.s fa1, fa1, fa1\n" if letter == "v" else "nop\n" * 2
    letter = "s" if letter == "v" else letter
    return f"li t5, 7\nfcvt.{letter}.w fa0, t5\nli t5, 3\nfcvt.{letter}.w fa1, t5\n{end}" + "nop\n" * 2


# Integer core


def test_one_instruction_a_cycle() -> None:
    assert core_times("addi t0, t0, 1\n" * 10) == list(range(11))


@pytest.mark.parametrize("branch", ["beq zero, zero, 1f", "bne zero, zero, 1f", "j 1f", "call 1f\n"])
def test_branches_and_jumps_take_a_cycle_taken_or_not(branch: str) -> None:
    assert core_times(f"mv t0, ra\n{branch}\n1: mv ra, t0") == [0, 1, 2, 3]


def test_load_to_use() -> None:
    assert core_gap("lw t0, 0(a0)", "addi t1, t0, 1") == 4


def test_independent_loads_and_stores_come_each_cycle() -> None:
    loads = "\n".join(f"lw t{i % 7}, {8 * i}(a0)" for i in range(7))
    assert core_times(loads)[:7] == list(range(7))
    stores = "\n".join(f"sw t0, {8 * i}(a0)" for i in range(16))
    assert core_times(stores)[:16] == list(range(16))


def test_results_that_the_core_computes_have_the_write_port_before_loads() -> None:
    assert core_gap("lw t0, 0(a0)", "addi t1, t0, 1") == 4
    busy = "\n".join(f"addi t{2 + i % 3}, zero, {i}" for i in range(6))
    times = core_times(f"lw t0, 0(a0)\n{busy}\naddi t1, t0, 1")
    assert times[7] - times[0] == 8  # written in the first cycle in which the core writes nothing
    idle = "\n".join("nop" for _ in range(6))
    times = core_times(f"lw t0, 0(a0)\n{idle}\naddi t1, t0, 1")
    assert times[7] - times[0] == 7


@pytest.mark.parametrize("name", ["mul", "mulh", "mulhu", "mulhsu"])
def test_multiplication(name: str) -> None:
    assert core_gap(f"{name} t0, a0, a0", "addi t1, t0, 1") == 4
    assert core_times("\n".join(f"{name} t{i}, a0, a0" for i in range(6)))[:6] == list(range(6))


@pytest.mark.parametrize(("a", "b", "bits"), [(100, 3, 7 - 2 + 1), (1 << 20, 1, 21), (3, 100, 0), (7, 7, 1)])
@pytest.mark.parametrize("name", ["div", "rem", "divu", "remu"])
def test_division_takes_a_cycle_for_each_bit_of_the_quotient(name: str, a: int, b: int, bits: int) -> None:
    result = run(f"{name} t0, a0, a1\naddi t1, t0, 1", trace=True, arguments=[a, b])
    times = [e.cycle for e in result.events if e.unit == "core" and not e.cause]
    assert times[1] - times[0] == 4 + bits


# FP subsystem


@pytest.mark.parametrize(
    ("instruction", "latency"),
    [
        *((f"{name}.{f} fa0, fa0, fa1", 4) for name in ("fadd", "fsub", "fmul") for f in "ds"),
        *((f"fmadd.{f} fa0, fa0, fa1, fa2", 4) for f in "ds"),
        *((f"{name}.{f} fa0, fa0, fa1", 4) for name in ("vfadd", "vfmul", "vfsub") for f in "sh"),
        ("vfmac.s fa0, fa0, fa1", 4),
        ("vfsum.s fa0, fa1", 4),
        ("vfdotpex.s.h fa0, fa1, fa2", 4),
        *((f"{name}.{f} fa0, fa0, fa1", 2) for name in ("fmin", "fmax", "fsgnj") for f in "ds"),
        ("vfmax.s fa0, fa0, fa1", 2),
        ("fcvt.s.d fa0, fa0", 3),
        ("fcvt.d.s fa0, fa0", 3),
        ("vfcpka.s.s fa0, fa0, fa1", 3),
    ],
)
def test_dependent_instructions(instruction: str, latency: int) -> None:
    """A chain of n costs n latencies."""
    assert [cycles(f"{instruction}\n" * n) - cycles(instruction) for n in (2, 5)] == [latency, 4 * latency]


@pytest.mark.parametrize(("instruction", "interval"), [("fadd.d", 1), ("fmin.d", 1)])
def test_independent_instructions(instruction: str, interval: int) -> None:
    body = [f"{instruction} fa{i}, ft3, ft4\n" for i in range(6)]
    assert cycles("".join(body)) - cycles(body[0]) == 5 * interval


@pytest.mark.parametrize(
    ("instruction", "letter", "latency", "interval"),
    [
        ("fdiv.d {}, {}, fa1", "d", 21, 19),
        ("fsqrt.d {}, {}", "d", 21, 19),
        ("fdiv.s {}, {}, fa1", "s", 14, 12),
        ("fsqrt.s {}, {}", "s", 14, 12),
        ("vfdiv.s {}, {}, fa1", "v", 14, 12),
        ("vfsqrt.s {}, {}", "v", 14, 12),
    ],
)
def test_divisions_and_roots(instruction: str, letter: str, latency: int, interval: int) -> None:
    """A chain of n costs n latencies; n that are independent cost n intervals."""
    before = numbers(letter)
    one = cycles(before + instruction.format("fs0", "fa0") + "\n")
    chain = "".join(f"{instruction}\n".format("fa0", "fa0") for _ in range(5))
    independent = "".join(f"{instruction}\n".format(f"fs{i}", "fa0") for i in range(5))
    assert cycles(before + chain) - one == 4 * latency
    assert cycles(before + independent) - one == 4 * interval


def test_an_instruction_issues_two_cycles_after_the_core_has_handed_it_on() -> None:
    assert float_times("fadd.d fa0, fa0, fa1") == [2]


def test_a_destination_that_is_reused_waits() -> None:
    assert float_times("fadd.d fa0, fa1, fa2\nfadd.d fa0, fa3, fa4") == [2, 6]


def test_float_loads() -> None:
    assert float_times("fld fa0, 0(a0)\nfadd.d fa1, fa0, fa0") == [2, 5]
    loads = "\n".join(f"fld fa{i}, {8 * i}(a0)" for i in range(8))
    assert float_times(loads) == list(range(2, 10))
    stores = "\n".join(f"fsd fa1, {8 * i}(a0)" for i in range(16))
    assert float_times(stores) == list(range(2, 18))


def test_the_write_port_is_the_fpus_before_it_is_that_of_loads() -> None:
    """The sum leaves the FPU in the cycle in which the load arrives, which is written one later."""
    times = float_times("fadd.d fa1, fa2, fa3\nfld fa0, 0(a0)\nfadd.d fa4, fa0, fa0")
    assert times == [2, 3, 7]


@pytest.mark.parametrize(
    ("instruction", "latency"),
    [
        ("fmv.x.w t0, fa0", 5),
        *((f"{name}.d t0, fa0, fa1", 4) for name in ("feq", "fle")),
        ("fclass.d t0, fa0", 4),
        ("flt.d t0, fa0, fa1", 5),
        *((f"{name}.s t0, fa0, fa1", 4) for name in ("feq", "flt", "fle")),
        ("fclass.s t0, fa0", 4),
        ("fcvt.w.d t0, fa0", 6),
        ("fcvt.w.s t0, fa0", 5),
    ],
)
def test_results_for_the_core(instruction: str, latency: int) -> None:
    assert core_gap(instruction, "addi t1, t0, 1") == latency


BEFORE = (
    "mv a6, ra\n" + "".join(f"fld ft{3 + k}, {8 * k}(a0)\n" for k in range(5)) + "li t0, 3\nli t6, 5\n" + "nop\n" * 6
)
AFTER = "sw t6, 0(a1)\nmv ra, a6"
USE = "addi t6, t6, 1\n"
REPEATED = {
    **{f"{name}.d t6, ft3, ft4\n{USE}": 97 for name in ("feq", "fle")},
    **{f"{name}.s t6, ft3, ft4\n{USE}": 97 for name in ("feq", "flt", "fle")},
    **{f"fclass.{f} t6, ft3\n{USE}": 97 for f in "ds"},
    f"flt.d t6, ft3, ft4\n{USE}": 113,
    f"fmv.x.w t6, ft3\n{USE}": 113,
    f"fcvt.w.d t6, ft3\n{USE}": 129,
    "addi t0, t0, 1\nfcvt.d.w ft8, t0\nfadd.d ft9, ft8, ft3\n": 65,
    "fmv.w.x ft8, t0\nfadd.s ft9, ft8, ft3\n": 49,
}
"""Cycles of a function on RTL, from its first instruction to its return, 17 of which are around 16 times these."""


@pytest.mark.parametrize("repeated", REPEATED)
def test_between_integer_and_floating_point_registers(repeated: str) -> None:
    result = run(BEFORE + repeated * 16 + AFTER, arguments=[BASE, BASE + 64])
    assert result.core_cycles == REPEATED[repeated]


def test_a_loop_through_memory_and_both_units() -> None:
    """96 times: 1156 cycles on RTL, because what comes from integer registers goes through the queue."""
    body = "li t0, 96\n1: lw t1, 0(a0)\nfcvt.d.w ft8, t1\nfsd ft8, 0(a0)\naddi t0, t0, -1\nbnez t0, 1b"
    assert run(body, arguments=[BASE]).core_cycles == pytest.approx(1156, rel=0.01)


def test_what_comes_from_integer_registers_does_not_wait_for_an_empty_ring() -> None:
    """On older cores it does."""
    body = loop(64, ACCUMULATE) + "fmv.w.x fa4, t0\nfcvt.d.w fa5, t0\nfcvt.d.wu fa6, t0\n"
    assert run(body).core_cycles < 20
    assert run(body, configuration=OLD).core_cycles > 256


def test_integer_accesses_wait_for_float_accesses_to_the_same_word() -> None:
    alone = core_times("fsd fa0, 8(a0)\nlw t0, 0(a0)")
    assert alone[1] - alone[0] == 1
    same = core_times("fsd fa0, 8(a0)\nlw t0, 12(a0)")
    # Handed on, issued two cycles later, in memory one later, answered one later.
    assert same[1] - same[0] == 5
    both_read = core_times("fld fa0, 8(a0)\nlw t0, 12(a0)")
    assert both_read[1] - both_read[0] == 1
    written = core_times("fld fa0, 8(a0)\nsw t0, 12(a0)")
    assert written[1] - written[0] == 5


def test_eight_float_accesses_may_be_in_flight() -> None:
    blocked = numbers("d") + "fdiv.d fa0, fa0, fa1\nfadd.d fa0, fa0, fa1\n"
    times = core_times(blocked + "\n".join(f"fld ft{3 + i}, {8 * i}(a0)" for i in range(9)), skip=8)
    assert times[2:10] == list(range(10, 18))
    assert times[10] > 28


# The queue before the FP subsystem


def test_thirty_four_instructions_can_be_ahead() -> None:
    """32 in the ring and 2 in the register before it, while the FP subsystem waits."""
    slow = numbers("d") + "fdiv.d fa0, fa0, fa1\n" * 2
    body = slow + "fadd.d fa0, fa0, fa1\n" + "\n".join(f"fadd.d fs{i % 12}, fa2, fa3" for i in range(40))
    times = [time - 8 for time in core_times(body, skip=8)]
    # Both divisions have left the ring; the addition that waits for them is the first of those that stay.
    assert times[2 : 2 + 34] == list(range(2, 2 + 34))
    assert times[2 + 34] == 2 + 2 * 21 + 2


def test_a_hardware_loop_of_four_accumulators() -> None:
    """257 cycles for 256 instructions, to the first result of the last iteration."""
    times = issues(loop(64, ACCUMULATE), "fp", "fadd")
    assert len(times) == 256
    assert times[-1] - times[0] + 1 in (256, 257)


def test_a_loop_waits_for_the_end_of_the_one_before() -> None:
    """One or two bubbles, and the core stalls."""
    result = run(loop(8, ACCUMULATE) + loop(8, ACCUMULATE), trace=True)
    times = [e.cycle for e in result.events if e.unit == "fp" and not e.cause]
    assert times[32] - times[31] - 1 in (1, 2)
    assert result.core_stalls["loop waits"] > 20


def test_older_cores_queue_loops() -> None:
    result = run(loop(8, ACCUMULATE) + loop(8, ACCUMULATE), trace=True, configuration=OLD)
    times = [e.cycle for e in result.events if e.unit == "fp" and not e.cause]
    assert times == list(range(times[0], times[0] + 64))
    assert "loop waits" not in result.core_stalls


def test_direct_instructions_wait_for_an_empty_ring() -> None:
    result = run(loop(64, ACCUMULATE) + "feq.d t1, fa0, fa0\n")
    assert result.core_stalls == {}
    after = run(loop(64, ACCUMULATE) + "feq.d t1, fa0, fa0\nmv t2, t1")
    assert after.core_cycles > 256


def test_what_waits_for_the_queue_blocks_what_is_behind_it() -> None:
    """A multiplication behind a comparison, in one register."""
    body = loop(16, ACCUMULATE) + "feq.d t1, fa0, fa0\nmul t2, t3, t3\nmv t4, t2"
    assert run(body).core_cycles > 64
    assert run(loop(16, ACCUMULATE) + "mul t2, t3, t3\nmv t4, t2").core_cycles < 20


def test_staggering_frees_a_reused_destination() -> None:
    plain = issues(loop(64, "fadd.d fs0, fa1, fa2"), "fp", "fadd")
    staggered = issues(loop(64, "fadd.d fs2, fa1, fa2", stagger="3, 1"), "fp", "fadd")
    assert plain[-1] - plain[0] == 63 * 4
    assert staggered[-1] - staggered[0] == 63


def test_nested_loops_have_no_bubbles() -> None:
    inner = "\n".join(f"fmadd.d fs{i}, fa0, fa1, fs{i}" for i in range(8))
    outer = "\n".join(f"fmul.d fs{i}, fa0, fa1" for i in range(8))
    body = f"li t0, 3\nli t1, 5\nfrep.o t0, 16, 0, 0\n{outer}\nfrep.o t1, 8, 0, 0\n{inner}\n"
    times = issues(body, "fp", "fm")
    assert len(times) == 4 * (8 + 6 * 8)
    # One bubble at the inner frep, when it arrives for the first time.
    assert times[-1] - times[0] <= len(times)


# Streams


def test_the_first_element_comes_five_cycles_after_the_pointer() -> None:
    body = ON + stream(0, [(4, 8)], BASE) + loop(4, "fadd.d fa0, ft0, fa1")
    result = run(body, trace=True)
    instructions = result.program.instructions
    started = [e.cycle for e in result.events if e.unit == "core" and instructions[e.index].text.startswith("scfgwi")][
        -1
    ]
    first = [
        e.cycle
        for e in result.events
        if e.unit == "fp" and instructions[e.index].text.startswith("fadd") and not e.cause
    ]
    assert first[0] - started == 5


def reading(count: int) -> str:
    return stream(0, [(count, 8)], BASE) + ON + loop(count // 4, ACCUMULATE.replace("fa1", "ft0")) + OFF


def test_an_element_a_cycle() -> None:
    """256 elements: 260 cycles."""
    times = issues(reading(256), "fp", "fadd")
    assert times[-1] - times[0] + 1 == 256


def test_two_reads_and_a_write() -> None:
    """256 elements: 259 cycles, from the first issue to the last write."""
    body = (
        stream(0, [(256, 8)], BASE)
        + stream(1, [(256, 8)], BASE + 8192 + 8)
        + stream(2, [(256, 8)], BASE + 16400, write=True)
    )
    body += ON + loop(256, "fadd.d ft2, ft0, ft1")
    times = issues(body, "fp", "fadd")
    assert abs(run(body).cycles - times[0] - 259) <= 2


def test_a_stream_read_twice_in_an_instruction_gives_one_element() -> None:
    result = run(stream(0, [(8, 8)], BASE) + ON + loop(8, "fmul.d fa0, ft0, ft0") + OFF)
    assert result.stream_elements[0] == 8


def beside(lane: int) -> Result:
    loads = "\n".join(f"lw a{1 + i % 6}, 0(a0)" for i in range(64))
    adds = ACCUMULATE.replace("fa1", f"ft{lane}")
    return run(
        stream(lane, [(256, 8)], BASE) + ON + loop(64, adds) + loads + "\n" + FENCE + OFF, arguments=[BASE + 4096]
    )


def test_stream_0_shares_its_port_with_the_core() -> None:
    """64 loads beside 256 elements: 332 cycles on lane 0, 271 on lane 1."""
    shared, own = beside(0), beside(1)
    assert abs(shared.cycles - own.cycles - (332 - 271)) <= 3
    assert abs(own.cycles - 271) <= 10


def test_three_streams_in_one_bank() -> None:
    """3.07 cycles for each element."""

    def total(count: int) -> int:
        dims = [(16, 256), (count // 16, 0)]
        body = "".join(stream(k, dims, BASE + 4096 * k, write=k == 2) for k in range(3))
        return cycles(body + ON + loop(count, "fadd.d ft2, ft0, ft1") + OFF)

    assert abs((total(512) - total(256)) / 256 - 3.07) < 0.1


def test_configuration_is_shadowed() -> None:
    """The next job is configured while one runs; a second one behind it waits."""
    one = stream(0, [(64, 8)], BASE)
    result = run(ON + one + one + loop(32, ACCUMULATE.replace("fa1", "ft0")) + OFF)
    assert "stream configured" not in result.core_stalls
    result = run(ON + one + loop(48, ACCUMULATE.replace("fa1", "ft0")) + one + one + OFF)
    assert result.core_stalls["stream configured"] > 20
    times = issues(ON + one + one + loop(32, ACCUMULATE.replace("fa1", "ft0")) + OFF, "fp", "fadd")
    # The buffer hides all but one of the cycles that the change of jobs takes.
    assert times[-1] - times[0] + 1 == 129


def test_switching_streams_is_in_order_and_does_not_drain_writes() -> None:
    body = (
        stream(2, [(16, 8)], BASE, write=True) + ON + loop(16, "fadd.d ft2, fa0, fa1") + OFF + "fmin.d fa3, fa4, fa5\n"
    )
    result = run(body, trace=True)
    last = [e.cycle for e in result.events if e.unit == "fp" and not e.cause][-1]
    assert last < result.cycles - 1
