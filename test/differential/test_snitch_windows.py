"""Windows over packed f32: words of a copy that begins one element later, made by the core beside the other steps."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from differential.compiled import kernel, random_inputs
from differential.library import close
from differential.snitch import SNITCH, run_snitch
from differential.test_snitch import agree, inputs_for
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.snitch.targets import snitch_source
from pdojo.dialect.assumptions import with_alignment, with_permission
from pdojo.dialect.attributes import Mapping, Numerics
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.semantics.interpreter import interpret_stepwise
from pdojo.dialect.view.build import nest_of
from pdojo.kernels import workload
from pdojo.passes.scheduled_kernel import ScheduledKernel, make_moves
from pdojo.passes.verification.verify import verify_moves
from pdojo.snitch_sim.simulator import Result


def tuned(name: str, dtype: str, machine: Machine = SNITCH) -> ScheduledKernel:
    """A library kernel by the heuristic pass; its maxima may lose NaN."""
    plain = with_permission(with_alignment(workload(name, dtype).instantiate(), 64), Numerics.NUMBERS)
    return make_moves(plain, machine, "heuristic")


def ran(tuning: ScheduledKernel, seed: int = 0) -> Result:
    """What the simulator says, after the results were compared with the interpreter's on both programs."""
    inputs = inputs_for(tuning.before, seed)
    found, result = run_snitch(tuning.after, inputs, SNITCH)
    agree(tuning.after, found, interpret_stepwise(tuning.after, inputs))
    close(found, interpret_stepwise(tuning.before, inputs), tuning.before)
    return result


def copies(tuning: ScheduledKernel) -> list[str]:
    """The temporaries that the core copies words to."""
    leaves = nest_of(tuning.after).leaves
    own = [leaf for leaf in leaves if leaf.output.array.buffer.op is not None and leaf.function is None]
    plain = [leaf for leaf in own if leaf.accumulate is None and leaf.reads and leaf.chain[-1].mapping is not VECTOR]
    return [leaf.output.array.name for leaf in plain if leaf.output.array.buffer.memory.value == "heap"]


VECTOR = Mapping.VECTOR
WINDOWS = {
    "maxpool:1x1x10x10x3,S=1,P=0": 0.65,
    "sumpool:1x1x10x10x3,S=1,P=0": 0.65,
    "sumpool:1x2x7x10x3,S=1,P=0": None,
    "maxpool:1x2x12x12x5,S=1,P=0": None,
    "conv:1x1x1x10x10x3": 0.85,
    "conv:1x2x2x6x6x3": None,
}
"""The greatest part of the cycles of f64."""


@pytest.mark.parametrize("name", WINDOWS)
def test_pairs_at_odd_places_are_words_of_a_copy(name: str) -> None:
    tuning = tuned(name, "f32")
    result = ran(tuning)
    assert verify_moves(tuning).fault is None
    assert len(copies(tuning)) == 1
    part = WINDOWS[name]
    if part is not None:
        assert result.cycles <= part * ran(tuned(name, "f64")).cycles


@pytest.mark.parametrize("name", ["sumpool:1x1x8x8x2,S=2,P=0", "sumpool:1x1x9x9x3,S=1,P=0"])
def test_windows_that_need_no_copy_have_none(name: str) -> None:
    """Steps of two elements begin at even places; rows of an odd number of elements have no words."""
    tuning = tuned(name, "f32")
    ran(tuning)
    assert copies(tuning) == []


def test_copies_need_room() -> None:
    """If memory suffices for the arrays only, pairs are loaded one by one."""
    tuning = tuned("maxpool:1x1x10x10x3,S=1,P=0", "f32", replace(SNITCH, cache_bytes=(4 * (100 + 64),)))
    assert copies(tuning) == []


def test_the_core_copies_words() -> None:
    """In integer registers, with all bits of NaN, after stores of the floating-point unit to the same words."""
    text = """\
kernel k(x) -> (y, z)
x f32 [12] heap align 8
y f32 [8] heap align 8
z f32 [8] heap align 8
t f32 [12] heap

3 4:u t[{0}*4+{1}] = x[{0}*4+{1}]
2 4:u y[{0}*4+{1}] = t[{0}*4+{1}+1]
2
| 4:u t[{0}*4+{1}] = x[{0}*4+{1}] + 1
| 4:u z[{0}*4+{1}] = t[{0}*4+{1}]
"""
    program = kernel(text)
    inputs = {"x": np.random.default_rng(0).integers(0, 1 << 32, 12, np.uint32).view(np.float32)}
    inputs["x"][3] = np.array([0x7F812345], np.uint32).view(np.float32)[0]
    found, _ = run_snitch(program, inputs, SNITCH)
    assert found["y"].tobytes() == inputs["x"][1:9].tobytes()
    with np.errstate(invalid="ignore"):
        agree(program, found, {"y": inputs["x"][1:9], "z": inputs["x"][:8] + np.float32(1)})
    assembly = snitch_source(program, SNITCH).text
    assert len(re.findall(r"\blw\b", assembly)) == len(re.findall(r"\bsw\b", assembly)) == 12
    assert assembly.count("flw") == 4


OVERWRITTEN = """\
kernel k(x, a) -> (x, y)
x f32 [64] heap align 8
a f32 [64] heap align 8
y f32 [2] heap align 8
s f32 [2] register

2:v s[{0}] = 0
1:s 32:f 2:v s[{2}] += x[{1}*2+{2}]
8 8:u x[{0}*8+{1}] = a[{0}*8+{1}]
2:v y[{0}] = s[{0}]
"""


def test_the_core_does_not_overwrite_numbers_that_streams_still_read() -> None:
    """It would be faster than the additions, which wait for each other."""
    program = kernel(OVERWRITTEN)
    inputs = random_inputs(parameters_of(nest_of(program)), 0)
    found, _ = run_snitch(program, inputs, SNITCH)
    agree(program, found, interpret_stepwise(program, inputs))
    assert " lw " not in snitch_source(program, SNITCH).text


WAITING = """\
kernel k(x) -> (y, z)
x f64 [64] heap
y f64 [64] heap
z f64 [64] heap
t f64 [64] heap

1:s 64:f y[{{1}}] = x[{{1}}] + 1
64 t[{{0}}] = x[{{0}}]
1:s 64:f z[{{1}}]!lane({lane}) = {source}[{{1}}]!lane(1) + 1
"""


@pytest.mark.parametrize(("lane", "source", "waits"), [(2, "t", 1), (0, "t", 2), (2, "y", 2)])
def test_waits_are_before_the_next_use(lane: int, source: str, waits: int) -> None:
    """The code waits for a stream's writes before other nodes that access the memory, or that use the stream."""
    program = kernel(WAITING.format(lane=lane, source=source))
    inputs = random_inputs(parameters_of(nest_of(program)), 0)
    found, _ = run_snitch(program, inputs, SNITCH)
    agree(program, found, interpret_stepwise(program, inputs))
    before = snitch_source(program, SNITCH).text.rpartition("csrrsi")[0]
    until_copied, _, behind = before.rpartition("fsd")
    assert "scfgr " not in until_copied
    assert behind.count("scfgr ") == waits - 1
