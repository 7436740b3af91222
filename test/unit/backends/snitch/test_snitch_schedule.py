"""The order of straight code: the same values in registers, memory and streams, in fewer cycles."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from pdojo.backends.snitch.code import CONSTANTS, SLOT, SP, STREAMS, ZERO, CodeLine, FrameOffset, RareLabel, Register
from pdojo.backends.snitch.latency import latency
from pdojo.backends.snitch.schedule import Schedule, check_values
from pdojo.snitch_sim.simulator.configuration import Timing

TIMING = Timing()
A, B, ANYWHERE = Register("x", area="a"), Register("x", area="b"), Register("x")


def execute(code: Sequence[CodeLine]) -> tuple[dict[object, object], ...]:
    """Registers, memory and streams after the code, as terms over what they were before."""
    values: dict[Register, object] = {}
    memory: dict[object, object] = {}
    streams: dict[object, list[object]] = {}
    condition: list[object] = []
    for instruction in code:
        if instruction.name == "label":
            condition.clear()
            continue
        operands: list[object] = []
        for register in dict.fromkeys(instruction.uses):
            if register in STREAMS:
                streams.setdefault(("pop", register.fixed), []).append(None)
                operands.append((register.fixed, len(streams["pop", register.fixed])))
            else:
                operands.append(values.get(register, ("before", id(register))))
        if instruction.name == "bne":
            condition.append(tuple(operands))
            continue
        base = instruction.uses[0] if instruction.uses else ZERO
        place = base.area or "slots", operands[0] if operands else None, str(instruction.immediate)
        if instruction.name == "fsd":
            memory[place] = operands[1:]
            continue
        result: object = (instruction.name, *operands, str(instruction.immediate), *condition)
        if instruction.name == "fld":
            result = memory.get(place, ("memory", place))
        for register in instruction.defs:
            if register in STREAMS:
                streams.setdefault(register.fixed, []).append(result)
            else:
                values[register] = (result, values.get(register)) if condition else result
    return values, memory, {key: tuple(found) for key, found in streams.items()}  # type: ignore[return-value]


def rare(x: Register, y: Register, f: Register, g: Register, h: Register, number: int) -> list[CodeLine]:
    """Code that hardly ever runs, with a branch inside: longer than other code that moves as a whole."""
    own, table, behind = Register("f"), Register("x", area=CONSTANTS), RareLabel(f".R{number}")
    return [
        CodeLine("bne", (), (x, y), behind),
        CodeLine("fld", (own,), (table,), 8),
        *(CodeLine("fmul.d", (Register("f"),), (g, h)) for _ in range(14)),
        CodeLine("bne", (), (y, x), f".I{number}"),
        CodeLine("fadd.d", (own,), (own, h)),
        CodeLine("label", immediate=f".I{number}"),
        CodeLine("fmv.d", (f,), (own,)),
        CodeLine("label", immediate=behind),
    ]


def random_code(seed: int) -> list[CodeLine]:
    """Chains of instructions that share some registers, memory and streams; branches over one or two."""
    random = Random(seed)
    floats = [Register("f") for _ in range(10)]
    integers = [Register("x") for _ in range(5)]
    code = [CodeLine("csrsi", immediate=1)]
    for number in range(60):
        f, g, h = (random.choice(floats) for _ in range(3))
        x, y = (random.choice(integers) for _ in range(2))
        pointer, label = random.choice((A, B)), f".L{number}"
        slot, offset = FrameOffset(SLOT, 8 * random.randrange(2)), 8 * random.randrange(4)
        branch = [CodeLine("bne", (), (x, y), label), CodeLine("fmv.d", (f,), (g,))]
        choices = [
            [CodeLine("fmadd.d", (f,), (g, h, f))],
            [CodeLine("fadd.d", (f,), (random.choice(STREAMS[:2]), g))],
            [CodeLine("fmv.d", (STREAMS[2],), (f,))],
            [CodeLine("fld", (f,), (pointer,), offset)],
            [CodeLine("fsd", (), (pointer, f), offset)],
            [CodeLine("fsd", (), (SP, f), slot)],
            [CodeLine("fld", (f,), (SP,), slot)],
            [CodeLine("feq.d", (x,), (f, g))],
            [CodeLine("addi", (pointer if random.random() < 0.2 else x,), (pointer,), 8)],
            [*branch, CodeLine("label", immediate=label)],
            rare(x, y, f, g, h, number),
        ]
        code += random.choice(choices)
    code.append(CodeLine("csrci", immediate=1))
    return [*code, *(CodeLine("fsd", (), (A, f), 64 + 8 * k) for k, f in enumerate(floats))]


@pytest.mark.parametrize("seed", range(60))
def test_any_order_gives_the_same(seed: int) -> None:
    code = random_code(seed)
    schedule = Schedule(code, TIMING)
    assert execute(schedule.code) == execute(code)
    assert sorted(map(id, schedule.code)) == sorted(map(id, code))
    while schedule.give_way([code[1].defs[0] if code[1].defs else A]):
        assert execute(schedule.code) == execute(code)
    assert schedule.code == code


def chains(count: int) -> list[CodeLine]:
    """Chains of sums, one after the other in the text."""
    code: list[CodeLine] = []
    for k in range(count):
        value, other = Register("f"), Register("f")
        code.append(CodeLine("fld", (value,), (A,), 8 * k))
        code += [CodeLine("fadd.d", (value,), (value, other)) for _ in range(6)]
        code.append(CodeLine("fsd", (), (B, value), 8 * k))
    return code


def names(code: Sequence[CodeLine]) -> list[str]:
    return [i.name for i in code]


def test_chains_fill_the_latency_of_each_other() -> None:
    found = names(Schedule(chains(4), TIMING).code)
    assert found[:4] == ["fld"] * 4
    assert found[4:28] == ["fadd.d"] * 24
    assert found[28:] == ["fsd"] * 4


def test_one_chain_stays() -> None:
    code = chains(1)
    assert Schedule(code, TIMING).code == code


def test_no_more_chains_than_registers() -> None:
    """Forty values are under way at no time."""
    code = chains(40)
    live = most = 0
    for instruction in Schedule(code, TIMING).code:
        live += (instruction.name == "fld") - (instruction.name == "fsd")
        most = max(most, live)
    assert 4 <= most < 32


def test_what_stands_between_blocks_stays() -> None:
    """A barrier parts what is before it from what is behind it."""
    code = chains(2)
    for name in ("fence", "csrci", "frep.end"):
        parted = [*code[:8], CodeLine(name), *code[8:]]
        if name == "frep.end":
            parted.insert(0, CodeLine("frep.o", (), (Register("x"),), 8))
        assert Schedule(parted, TIMING).code == parted


def test_stores_that_may_meet_stay_in_order() -> None:
    """A pointer of which nothing is known, and one that went on."""
    values = [Register("f") for _ in range(3)]
    for base, other, free in ((A, B, True), (A, ANYWHERE, False), (A, A, False)):
        code = [
            CodeLine("fadd.d", (values[0],), (values[1], values[2])),
            CodeLine("fsd", (), (base, values[0]), 0),
        ]
        code.append(CodeLine("fld", (values[1],), (other,), 4))
        code += [CodeLine("fmul.d", (values[1],), (values[1], values[1])) for _ in range(3)]
        code = [CodeLine("label", immediate=".L"), *code, CodeLine("bne", (), (A, ZERO), ".L")]
        order = names(Schedule(code, TIMING).code)
        assert (order.index("fld") < order.index("fsd")) is free


def test_wrong_orders_are_noticed() -> None:
    code = chains(2)
    with pytest.raises(AssertionError, match="do not find their operands"):
        check_values(code, [code[1], code[0], *code[2:]])
    streams = [CodeLine("fmv.d", (STREAMS[2],), (Register("f"),)) for _ in range(2)]
    with pytest.raises(AssertionError, match="do not find their operands"):
        check_values(streams, streams[::-1])


@pytest.mark.parametrize(
    ("name", "defs", "cycles"),
    [
        ("fadd.d", "f", TIMING.fma),
        ("vfmac.s", "f", TIMING.fma),
        ("fmax.s", "f", TIMING.simple),
        ("vfsgnjn.s", "f", TIMING.simple),
        ("fcvt.d.s", "f", TIMING.conversion),
        ("vfcpka.s.s", "f", TIMING.conversion),
        ("fdiv.d", "f", TIMING.divided("d")),
        ("fsqrt.s", "f", TIMING.divided("s")),
        ("vfdiv.s", "f", TIMING.divided("s")),
        ("fld", "f", TIMING.float_load),
        ("feq.s", "x", 4),
        ("feq.d", "x", 4),
        ("flt.d", "x", 4),
        ("fcvt.w.d.rtz", "x", 5),
        ("fcvt.w.s.rtz", "x", 5),
        ("fmv.x.w", "x", 4),
    ],
)
def test_latencies(name: str, defs: str, cycles: int) -> None:
    """Those of the simulator, where another instruction of the unit, or of the core, uses the result."""
    uses = (A,) if name == "fld" else (Register("f"),)
    assert latency(CodeLine(name, (Register("f" if defs == "f" else "x"),), uses), TIMING) == cycles


def test_code_that_hardly_ever_runs_moves_as_a_whole() -> None:
    """Chains before and behind it are interleaved; without its label's kind it would part them."""
    x, y, result = Register("x"), Register("x"), Register("f")
    skipped = rare(x, y, result, Register("f"), Register("f"), 0)
    plain = [
        CodeLine(i.name, i.defs, i.uses, str(i.immediate) if i.name in ("bne", "label") else i.immediate)
        for i in skipped
    ]
    first, second = chains(2)[:8], chains(2)[8:]
    for inside, moves in ((skipped, True), (plain, False)):
        code = [*first, *inside, *second]
        found = Schedule(code, TIMING).code
        assert execute(found) == execute(code)
        place = found.index(inside[0])
        assert found[place : place + len(inside)] == inside
        assert (found != code) is moves


def test_divisions_wait_for_the_divider() -> None:
    """Sums fill the cycles in which the divider is busy, and divisions are as early as possible."""
    operands, quotients = [Register("f") for _ in range(4)], [Register("f") for _ in range(4)]
    sums = [Register("f") for _ in range(4)]
    code = [CodeLine("fadd.d", (s,), (s, operands[0])) for _ in range(14) for s in sums]
    code += [CodeLine("fdiv.d", (q,), (operands[0], o)) for q, o in zip(quotients, operands, strict=True)]
    code = [CodeLine("label", immediate=".L"), *code, CodeLine("bne", (), (A, ZERO), ".L")]
    found = names(Schedule(code, TIMING).code)
    places = [k for k, name in enumerate(found) if name == "fdiv.d"]
    assert places[1] < 4
    assert places[3] < 50
