"""Streams and hardware loops: random patterns against NumPy, nests, staggering; deadlocks and traps."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from pdojo.errors import SimulationError, UsageError
from pdojo.snitch_sim.assembler import assemble
from pdojo.snitch_sim.simulator import Configuration, Placement, simulate
from snitch_programs import BASE, FENCE, OFF, OLD, ON, loop, run, stream

SIZE = 128 << 10


def memory_of(values: np.ndarray) -> bytearray:
    memory = bytearray(SIZE)
    np.frombuffer(memory, np.float64)[: values.size] = values.ravel()
    return memory


@pytest.mark.parametrize("seed", range(12))
def test_random_patterns(seed: int) -> None:
    """One to four dimensions, strides of either sign and zero, repeated elements: like a gather."""
    rng = random.Random(seed)
    count = 512
    values = np.random.default_rng(seed).standard_normal(count)
    lanes = [0, 1, 2]
    rng.shuffle(lanes)
    source, target = lanes[:2]
    dims = [(rng.randint(1, 5), rng.randint(-6, 6)) for _ in range(rng.randint(1, 4))]
    repeat = rng.randint(1, 4)
    indices = np.zeros(1, int)
    for extent, stride in dims:
        indices = (np.arange(extent)[:, None] * stride + indices).ravel()
    start = rng.randint(-int(indices.min()), count - 1 - int(indices.max()))
    total = indices.size * repeat
    memory = memory_of(values)
    out = 64 << 10
    body = stream(source, [(n, 8 * s) for n, s in dims], BASE + 8 * start, repeat=repeat)
    body += (
        stream(target, [(total, 8)], BASE + out, write=True)
        + ON
        + loop(total, f"fmv.d ft{target}, ft{source}")
        + FENCE
        + OFF
    )
    run(body, memory=memory)
    found = np.frombuffer(memory, np.float64)[out // 8 :][:total]
    np.testing.assert_array_equal(found, np.repeat(values[start + indices], repeat))


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_of_streams(seed: int) -> None:
    """Several statements over three streams in one loop, against NumPy."""
    rng = random.Random(seed)
    count = rng.choice([4, 32, 57])
    generator = np.random.default_rng(seed)
    memory = bytearray(SIZE)
    words = np.frombuffer(memory, np.float64)
    x, y = words[:count], words[2048 : 2048 + count]
    x[:], y[:] = generator.standard_normal((2, count))
    steps = [
        ("fadd.d", np.add),
        ("fsub.d", np.subtract),
        ("fmul.d", np.multiply),
        ("fmax.d", np.maximum),
        ("fmin.d", np.minimum),
    ]
    first = rng.choice(steps)
    more = [rng.choice(steps) for _ in range(rng.randint(0, 3))]
    value = first[1](x, y)
    lines = [f"{first[0]} fa0, ft0, ft1"]
    for k, (name, function) in enumerate(more):
        lines.append(f"{name} fa{k + 1}, fa{k}, fs0")
        value = function(value, 1.25)
    lines.append(f"fmv.d ft2, fa{len(more)}")
    text = (
        stream(0, [(count, 8)], BASE)
        + stream(1, [(count, 8)], BASE + 16384)
        + stream(2, [(count, 8)], BASE + 32768, write=True)
    )
    body = "fld fs0, 0(a0)\n" + text + ON + loop(count, "\n".join(lines)) + FENCE + OFF
    words[8191] = 1.25
    run(body, memory=memory, arguments=[BASE + 8 * 8191])
    np.testing.assert_array_equal(words[4096 : 4096 + count], value)


def test_a_word_is_read_after_it_was_written_only_where_something_waits() -> None:
    """As in hardware: switching streams off does not drain what they write; a load may come too early."""
    body = stream(2, [(32, 8)], BASE, write=True) + ON + loop(32, "fadd.d ft2, fa0, fa0") + FENCE + OFF
    memory = bytearray(SIZE)
    run(f"fcvt.d.w fa0, a1\n{body}", memory=memory, arguments=[0, 3])
    assert np.frombuffer(memory, np.float64)[:32].tolist() == [6.0] * 32


def test_nested_loops() -> None:
    """A matrix-vector product: the outer loop starts and stores each sum."""
    rows, columns = 6, 8
    generator = np.random.default_rng(1)
    matrix, vector = generator.standard_normal((rows, columns)), generator.standard_normal(columns)
    placement = Placement()
    m, v, out = placement.place(matrix), placement.place(vector), placement.output((rows,), np.float64)
    body = stream(0, [(rows * columns, 8)], m.address) + stream(1, [(columns, 8), (rows, 0)], v.address)
    body += stream(2, [(rows, 8)], out.address, write=True) + ON
    body += (
        f"""
 li t0, {rows - 1}
 li t1, {columns - 2}
 frep.o t0, 3, 0, 0
 fmul.d fa0, ft0, ft1
 frep.o t1, 1, 0, 0
 fmadd.d fa0, ft0, ft1, fa0
 fmv.d ft2, fa0
"""
        + FENCE
        + OFF
    )
    result = run(body, memory=placement.memory)
    placement.check()
    expected = matrix[:, 0] * vector[0]
    for k in range(1, columns):
        expected = np.array([float(np.float64(a)) for a in expected])
        expected = np.array([_fma(matrix[i, k], vector[k], expected[i]) for i in range(rows)])
    np.testing.assert_array_equal(out.values, expected)
    assert result.flops == rows * (1 + 2 * (columns - 1))


def _fma(a: float, b: float, c: float) -> float:
    from pdojo.snitch_sim.simulator.rounding import exact_fma

    return exact_fma(float(a), float(b), float(c))


def test_staggering_renames_registers() -> None:
    """Destinations fs2, fs3, fs4, fs5, fs2, ...: four partial sums."""
    memory = bytearray(SIZE)
    words = np.frombuffer(memory, np.float64)
    words[:32] = np.arange(32)
    body = "\n".join(f"fcvt.d.w fs{2 + k}, zero" for k in range(4)) + "\n"
    body += stream(0, [(32, 8)], BASE) + ON + loop(32, "fadd.d fs2, ft0, fs2", stagger="3, 5") + OFF
    body += "\n".join(f"fsd fs{2 + k}, {8 * k}(a0)" for k in range(4)) + "\n"
    run(body, memory=memory, arguments=[BASE + 65536])
    assert words[8192:8196].tolist() == [sum(range(k, 32, 4)) for k in range(4)]


def test_older_cores_repeat_each_instruction() -> None:
    memory = bytearray(SIZE)
    body = "fcvt.d.w fa0, zero\nfcvt.d.w fa1, a1\nli t0, 3\nfrep.i t0, 2, 0, 0\n"
    body += "fadd.d fa0, fa0, fa1\nfadd.d fa0, fa0, fa0\nfsd fa0, 0(a0)"
    run(body, memory=memory, arguments=[BASE, 1], configuration=OLD)
    assert np.frombuffer(memory, np.float64)[0] == 4 * 16
    with pytest.raises(SimulationError, match=r"t\.s:5:1: error: 'snitch' has no frep\.i"):
        run(body, memory=memory, arguments=[BASE, 1])


def test_older_cores_have_no_nests() -> None:
    body = "li t0, 3\nfrep.o t0, 2, 0, 0\nfadd.d fa0, fa1, fa2\nfrep.o t0, 1, 0, 0\nfadd.d fa0, fa1, fa2"
    with pytest.raises(SimulationError, match=r"t\.s:5:1: error: the sequencer can have no loop inside another"):
        run(body, configuration=OLD)


READ4 = stream(0, [(4, 8)], BASE) + ON
WRITE4 = stream(2, [(4, 8)], BASE, write=True) + ON

DEADLOCKS = {
    "more reads than elements": (
        READ4 + loop(5, "fadd.d fa0, fa1, ft0"),
        r"reads SSR0: all 4 elements of its stream .* have been read",
    ),
    "no stream": (ON + "fadd.d fa0, fa1, ft0", "reads SSR0: it has no stream"),
    "no write stream": (ON + "fadd.d ft1, fa0, fa1", "a result for SSR1 cannot leave the FPU: it has no write stream"),
    "more writes than elements": (
        WRITE4 + loop(12, "fadd.d ft2, fa0, fa1"),
        "a result for SSR2 cannot leave the FPU: its write stream of line .* has had all its 4 elements",
    ),
    "left-over elements": (
        stream(0, [(16, 8)], BASE) + ON + loop(4, "fadd.d fa0, fa1, ft0") + 3 * stream(0, [(4, 8)], BASE),
        "SSR0 still has a job that waits behind the one of line .*: SSR0 .* has 12 elements that nobody read",
    ),
    "a loop without its instructions": (
        "li t0, 3\nfrep.o t0, 4, 0, 0\nfadd.d fa0, fa1, fa2",
        "has 1 of its 4 instructions",
    ),
}


@pytest.mark.parametrize("name", DEADLOCKS)
def test_deadlocks_say_why(name: str) -> None:
    body, reason = DEADLOCKS[name]
    with pytest.raises(SimulationError, match=f"deadlock in cycle .*{reason}"):
        run(body)


TRAPS = {
    "elements that nobody read": (
        READ4 + loop(3, "fadd.d fa0, fa1, ft0"),
        "at the end, SSR0 .line .* has 1 elements that nobody read",
    ),
    "elements that nobody wrote": (
        WRITE4 + loop(3, "fadd.d ft2, fa0, fa1"),
        "at the end, SSR2 .* is to write 1 more elements",
    ),
    "too many writes": (WRITE4 + loop(6, "fadd.d ft2, fa0, fa1"), "SSR2 .* holds 2 elements that no stream writes"),
    "repeat": (
        "li t1, 16\nscfgwi t1, 32",
        r"t\.s:3:1: error: SSR0: an element is to be read 17 times; the field has room for 16",
    ),
    "repeat changes": (
        READ4 + "nop\n" * 10 + "li t1, 3\nscfgwi t1, 32",
        "number of reads changes from 1 to 4 while 4 elements of the stream before .* are unread",
    ),
    "body": (
        "li t0, 3\nfrep.o t0, 33, 0, 0\n" + "fadd.d fa0, fa1, fa2\n" * 33,
        "a loop of 33 instructions; the sequencer holds 32, and would cut off the rest",
    ),
    "trips": ("li t0, 65536\nfrep.o t0, 1, 0, 0\nfadd.d fa0, fa1, fa2", "65537 iterations; the counter goes to 65536"),
    "direct": (
        "li t0, 3\nfrep.o t0, 2, 0, 0\nfadd.d fa0, fa1, fa2\nfeq.d t1, fa0, fa0",
        "inside of the hardware loop of line 3, where it cannot be repeated",
    ),
    "from an integer register": (
        "li t0, 3\nfrep.o t0, 2, 0, 0\nfadd.d fa0, fa1, fa2\nfmv.w.x fa3, t0",
        "inside of the hardware loop of line 3, where it cannot be repeated",
    ),
    "perfect nest": (
        "li t0, 3\nfrep.o t0, 1, 0, 0\nfrep.o t0, 1, 0, 0\nfadd.d fa0, fa1, fa2",
        "the inner loop is the whole body of the outer one",
    ),
    "three deep": (
        "li t0, 3\nfrep.o t0, 3, 0, 0\nfadd.d fa0, fa1, fa2\nfrep.o t0, 2, 0, 0\nfadd.d fa0, fa1, fa2\n"
        "frep.o t0, 1, 0, 0\nfadd.d fa0, fa1, fa2",
        "the sequencer can have 2 loops inside each other",
    ),
    "stream out of memory": (
        stream(1, [(8, 8)], BASE + SIZE - 32),
        "SSR1: the stream reaches from .* outside of 0x10000000 to 0x1001ffff",
    ),
    "stream below memory": (stream(1, [(8, -8)], BASE + 8), "SSR1: the stream reaches from 0xfffffd0"),
    "stream misaligned": (stream(1, [(8, 8)], BASE + 4), "SSR1: the pointer 0x10000004 is no multiple of 8"),
    "stride": (stream(1, [(8, 4)], BASE), "SSR1: a stride of 4 bytes is no multiple of 8"),
    "no such stream": ("scfgwi t0, 67", "there is no stream 3; there are 3"),
    "load out of memory": ("lw t0, 0(zero)", "the address 0x0 is outside of the memory"),
    "misaligned load": ("lw t0, 2(sp)", "the address 0x10020002 is no multiple of 4"),
    "misaligned float": ("fld fa0, -4(sp)", "the address 0x1001fffc is no multiple of 8"),
    "not modelled": ("dmrep t0", "the simulator does not know this instruction"),
    "rounding": ("fadd.d fa0, fa0, fa0, rtz", "only rounding to nearest is modelled"),
    "control register": ("csrr a0, frm", "this control register is not modelled"),
    "jump": ("jr t3", "a jump to 0x0, which is no instruction"),
}


@pytest.mark.parametrize("name", TRAPS)
def test_traps_name_instruction_and_line(name: str) -> None:
    body, reason = TRAPS[name]
    with pytest.raises(SimulationError, match=reason):
        run(body)


def test_division_needs_a_divider() -> None:
    with pytest.raises(SimulationError, match="this core has no divider"):
        run("fdiv.d fa0, fa0, fa1", configuration=Configuration(division=False))


def test_the_status_tells_when_everything_is_written() -> None:
    """A stream's last write comes after the FP subsystem has issued; bit 31 of the status is set then."""
    write = stream(2, [(4, 8)], BASE, write=True) + ON + loop(4, "fadd.d ft2, fa0, fa0") + FENCE + OFF
    wait = "li t3, 2\n1: scfgr t4, t3\nbgez t4, 1b\nlw t5, 28(a0)\nsw t5, 64(a0)"
    memory = bytearray(SIZE)
    run(f"fcvt.d.w fa0, a1\n{write}{wait}", memory=memory, arguments=[BASE, 3])
    assert memory[64:68] == memory[28:32] != bytes(4)


STATUS = "1: scfgr t3, zero\nbgez t3, 1b\n"
"""Wait until lane 0 has written all."""
TURN_WRITE = stream(0, [(4, 8)], BASE + 64, write=True) + ON
TURN_READ = stream(0, [(4, 8)], BASE)
READS = "\n".join(f"fadd.d fa{k}, ft0, ft3" for k in range(4)) + "\n" + OFF
"""What a lane that has written reads next, from elsewhere."""


def turned(body: str, **options: Any) -> list[float]:
    """The last four sums of a program whose lane 0 writes four words, then reads 1, 2, 3 and 4."""
    memory = bytearray(SIZE)
    words = np.frombuffer(memory, np.float64)
    words[:5] = [1, 2, 3, 4, 2]
    stores = "\n".join(f"fsd fa{k}, {128 + 8 * k}(a0)" for k in range(4))
    run(f"fld ft3, 0(a0)\nfld ft4, 32(a0)\n{body}\n{stores}\n{FENCE}", memory=memory, arguments=[BASE], **options)
    assert words[8:12].tolist() == [2.0] * 4
    return words[16:20].tolist()


@pytest.mark.parametrize("multiplied", ["fmul.d ft0, ft3, ft4", "fdiv.d ft0, ft4, ft3"])
@pytest.mark.parametrize("between", ["", FENCE, "nop\n" * 100])
def test_a_lane_that_has_written_reads_only_after_its_status_was_asked_for(multiplied: str, between: str) -> None:
    """In hardware the reads do not wait, but get what is in the buffer; whether they come early depends on times."""
    write = TURN_WRITE + f"{multiplied}\n" * 4 + OFF
    assert turned(write + STATUS + TURN_READ + ON + READS) == [2.0, 3.0, 4.0, 5.0]
    with pytest.raises(SimulationError, match=r"SSR0: set up to read before its write stream of line 9 .*\n"):
        turned(write + between + TURN_READ + ON + READS)


def test_nor_is_it_set_up_to_read_while_it_still_writes() -> None:
    """A reading job behind a writing one: until that has ended, the lane is a writing one."""
    writes = "fmul.d ft0, ft3, ft4\n" * 4
    with pytest.raises(SimulationError, match="SSR0: set up to read before its write stream"):
        turned(TURN_WRITE + TURN_READ + writes + READS)
    early = TURN_WRITE + "scfgr t3, zero\n" + writes + OFF
    with pytest.raises(SimulationError, match="SSR0: set up to read before its write stream"):
        turned(early + TURN_READ + ON + READS)


def test_between_two_jobs_the_status_tells_of_the_end_of_the_first() -> None:
    """For one cycle: a second question in the cycle behind is answered by the second job."""
    jobs = stream(0, [(1, 8)], BASE + 64, write=True) + stream(0, [(3, 8)], BASE + 72, write=True) + ON
    answers = set[tuple[int, int]]()
    for wait in range(40):
        memory = bytearray(SIZE)
        words = np.frombuffer(memory, np.uint32)
        ask = "scfgr t3, zero\nscfgr t4, zero\n" + "fmul.d ft0, fa0, fa0\n" * 3 + OFF + "sw t3, 0(a0)\nsw t4, 4(a0)\n"
        run(jobs + "fmul.d ft0, fa0, fa0\n" + "nop\n" * wait + ask, memory=memory, arguments=[BASE])
        answers.add((int(words[0]) >> 31, int(words[1]) >> 31))
    assert answers == {(0, 0), (1, 0), (0, 1)}


TURNED = {
    "a write stream read": (WRITE4 + "fadd.d fa0, fa1, ft2", "reads SSR2, whose stream of line 7 writes: .* garbage"),
    "stored": (WRITE4 + "fsd ft2, 0(a0)", "reads SSR2, whose stream of line 7 writes"),
    "written, then read": (WRITE4 + loop(4, "fmv.d ft2, fa0") + "fadd.d fa0, fa1, ft2", "reads SSR2, whose stream"),
    "a read stream written": (
        READ4 + "nop\n" * 9 + "fmv.d ft0, fa0",
        "writes to SSR0, of whose .* 4 elements are still",
    ),
    "before it is read": (READ4 + "fmv.d ft0, fa0", "writes to SSR0, of whose read stream 4 elements are still to be"),
    "a write behind unread elements": (
        READ4 + stream(0, [(4, 8)], BASE, write=True) + loop(3, "fadd.d fa0, ft0, fa1") + "fmv.d ft0, fa0",
        "writes to SSR0, of whose read stream 1 element is still to be read",
    ),
}


@pytest.mark.parametrize("name", TURNED)
def test_lanes_are_for_one_direction_at_a_time(name: str) -> None:
    body, reason = TURNED[name]
    with pytest.raises(SimulationError, match=f"{reason}.*\n  f(add|sd|mv)"):
        run(body, arguments=[BASE])


def test_from_reading_to_writing_a_lane_needs_no_wait() -> None:
    memory = memory_of(np.arange(4.0))
    body = READ4 + stream(0, [(4, 8)], BASE + 64, write=True)
    body += "\n".join(f"fadd.d fa{k}, ft0, ft0" for k in range(4)) + "\n"
    run(body + "\n".join(f"fadd.d ft0, fa{k}, fa{k}" for k in range(4)), memory=memory)
    assert np.frombuffer(memory, np.float64)[8:12].tolist() == [0.0, 4.0, 8.0, 12.0]


def test_loops_without_end_are_stopped() -> None:
    with pytest.raises(SimulationError, match="no end after 1000 cycles"):
        run("1: j 1b", limit=1000)


def test_arguments_and_entries() -> None:
    program = assemble("first: ret\nsecond: sw a0, 0(a1)\nret\n", "t.s")
    memory = bytearray(SIZE)
    simulate(program, entry="second", arguments=[7, BASE], memory=memory)
    assert memory[0] == 7
    assert simulate(program).cycles == 1
    with pytest.raises(UsageError, match="'q1' is no integer register"):
        simulate(program, arguments={"q1": 1})
    with pytest.raises(UsageError, match="the memory has 5 bytes"):
        simulate(program, memory=bytearray(5))


def test_guard_zones_and_poison() -> None:
    placement = Placement()
    first = placement.place(np.zeros(4), "x")
    second = placement.output((2, 3), np.float32, "y")
    assert second.poisoned == 6
    assert first.address % 8 == 0
    placement.check()
    run("sw zero, 32(a0)", arguments=[first.address], memory=placement.memory)
    with pytest.raises(SimulationError, match=r"4 bytes beside x were written, the first at 0x10000060"):
        placement.check()
    with pytest.raises(UsageError, match="does not fit"):
        placement.place(np.zeros(20000))


def test_skipped_cycles_change_nothing() -> None:
    """Counting stalls cycle by cycle or in one step gives the same sums."""
    body = "fdiv.d fa0, fa1, fa2\nfadd.d fa3, fa0, fa1\n"
    result = run(body)
    assert result.fp_stalls == {"operand": 7}
    assert result.cycles == 2 + 8 + 4
