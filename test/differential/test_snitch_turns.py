"""Stream registers that write and then read: the code waits on every way there, and only there.

The simulator stops programs that do not wait, so everything that the library makes is run there.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pdojo_tools.snitch import main

from differential.compiled import kernel
from differential.library import close
from differential.snitch import DIVIDES, run_snitch
from differential.test_snitch import agree, cases, inputs_for, tiny
from pdojo.backends.snitch.executable import SimulatedKernel, load
from pdojo.backends.snitch.targets import snitch_source
from pdojo.dialect.assumptions import with_alignment, with_permission
from pdojo.dialect.attributes import Numerics
from pdojo.dialect.semantics.interpreter import interpret_stepwise
from pdojo.dialect.view.build import nest_of
from pdojo.errors import SimulationError
from pdojo.names import EXPERT_PASSES
from pdojo.passes.scheduled_kernel import make_moves
from pdojo.snitch_sim.assembler import assemble

HEAD = """\
kernel k(x, a) -> (y, z)
x f64 [4, 6] heap
a f64 [4] heap
y f64 [4] heap
z f64 [4, 6] heap
c f64 [1] register
d f64 [1] register

"""
FILL = "| 1:s 6:f z[{0},{2}] = 2\n"
SUM = "| c[0] = 1\n| 1:s 6:f c[0] += x[{0},{2}]\n| y[{0}] = c[0]\n"
"""The first register writes; the first register reads."""
TURNS = {
    "from one region to the next": f"4\n{FILL}{SUM}",
    "from one iteration to the next": f"4\n{SUM}{FILL}",
    "in copies": f"4:u\n{FILL}{SUM}",
    "in loops inside": (
        "4\n| 2 1:s 3:f z[{0},{1}*3+{3}] = 2\n| c[0] = 0\n| 2 1:s 3:f c[0] += x[{0},{1}*3+{3}]\n| y[{0}] = c[0]\n"
    ),
    "behind what may be skipped": (
        "4\n| 1 where ({0} < 2) 1:s 6:f z[{0},{3}] = 2\n| 1 where ({0} >= 2) 1:s 6:f z[{0},{3}] = 4\n" + SUM
    ),
    "with a wait that may be skipped": (
        f"4\n{FILL}| c[0] = 0\n| 1 where ({{0}} < 2) 1:s 6:f c[0] += x[{{0}},{{3}}]\n"
        "| 1:s 6:f c[0] *= x[{0},{2}]\n| y[{0}] = c[0]\n"
    ),
    "a loop that may be skipped": (
        "2\n| 2 where ({0} >= 1) 1:s 6:f z[{0}*2+{1},{3}] = 2\n| 2 where ({0} < 1) 1:s 6:f z[{0}*2+{1},{3}] = 4\n"
        "| 2\n| | c[0] = 0\n| | 1:s 6:f c[0] += x[{0}*2+{1},{3}]\n| | y[{0}*2+{1}] = c[0]\n"
    ),
    "quotients, which take longest": ("4\n| d[0] = a[{0}]\n| 1:s 6:f z[{0},{2}] = 1 / d[0]\n" + SUM),
    "one quotient at a time": "4\n| d[0] = a[{0}]\n| 6 1:s 1:f z[{0},{1}] = 1 / d[0]\n" + SUM,
    "quotients, then what is faster": (
        "4\n| d[0] = a[{0}]\n| 1:s 2:f z[{0},{2}] = 1 / d[0]\n| 1:s 4:f z[{0},{2}+2] = 1\n" + SUM
    ),
}
STRAIGHT = {
    "one writes, none reads": ("4\n| 1:s 6:f z[{0},{2}] = 2\n| y[{0}] = a[{0}]\n", 1),
    "one writes, another reads": ("4\n| 1:s 6:f z[{0},{2}] = x[{0},{2}] * 3\n| y[{0}] = a[{0}]\n", 1),
    "once": (f"1\n{SUM}{FILL}", 1),
    "nests one after the other": ("4 1:s 6:f z[{0},{2}] = 2\n" + "4\n" + SUM, 1),
    "waited for already": (f"4\n{FILL}{SUM}{SUM}", 1),
    "waited for before a loop": ("4\n| 2 1:s 3:f z[{0},{1}*3+{3}] = 2\n| 3 1:s 2:f c[0] += x[{0},{1}*2+{3}]\n", 1),
}
"""Each with how often its code waits."""
WAIT = re.compile(r"^(\.L\w*written\w*):\n(?:    .*\n)*?    bge .*, zero, \1\n", re.MULTILINE)
STORED = Path(__file__).parents[2] / "benchmarks" / "results" / "snitch" / "assembly"


@pytest.mark.parametrize("name", TURNS)
def test_a_stream_that_turns_waits(name: str) -> None:
    program = kernel(HEAD + TURNS[name])
    inputs = inputs_for(program)
    found, _ = run_snitch(program, inputs)
    agree(program, found, interpret_stepwise(program, inputs))


@pytest.mark.parametrize("name", TURNS)
def test_without_the_wait_the_simulator_stops(name: str) -> None:
    """Not with the right answer by luck, and not after it: with the instruction that sets the stream up to read."""
    program = kernel(HEAD + TURNS[name])
    loaded = load(program, DIVIDES)
    assert WAIT.search(loaded.source.text)
    text = WAIT.sub("", loaded.source.text)
    assert "scfgr" not in text
    changed = SimulatedKernel(loaded.source, assemble(text, "k"), loaded.parameters, loaded.configuration)
    with pytest.raises(SimulationError, match=r"SSR0: set up to read before its write stream .*\n  scfgwi"):
        changed.run(inputs_for(program))


@pytest.mark.parametrize("name", STRAIGHT)
def test_what_does_not_turn_does_not_wait(name: str) -> None:
    text, waits = STRAIGHT[name]
    program = kernel(HEAD + text)
    assert len(WAIT.findall(snitch_source(program, DIVIDES).text)) == waits
    inputs = inputs_for(program)
    found, _ = run_snitch(program, inputs)
    wanted = interpret_stepwise(program, inputs)
    for array in {leaf.output.array.name for leaf in nest_of(program).leaves} & found.keys():
        written = ~np.isnan(wanted[array])
        np.testing.assert_array_equal(found[array][written], wanted[array][written])


def test_a_fence_that_may_be_skipped_is_made_again() -> None:
    """What was stored before the nest is read as a stream behind a region that may be skipped."""
    body = "4 x[{0},0] = a[{0}]\n4\n| c[0] = 0\n| 1 where ({0} < 2) 1:s 6:f c[0] += x[{0},{3}]\n"
    body += "| 1:s 6:f c[0] *= x[{0},{2}]\n| y[{0}] = c[0]\n"
    program = kernel(HEAD.replace("(x, a) -> (y, z)", "(a) -> (x, y, z)") + body)
    assert snitch_source(program, DIVIDES).text.count("fence") == 2


@pytest.mark.parametrize("expert", EXPERT_PASSES)
@pytest.mark.parametrize(("name", "dtype"), cases())
def test_library(name: str, dtype: str | None, expert: str) -> None:
    """What the passes make of the library runs on the simulator, which stops what hardware would get wrong."""
    plain = with_permission(with_alignment(tiny(name, dtype), 64), Numerics.NUMBERS)
    inputs = inputs_for(plain, 2)
    loaded = load(make_moves(plain, DIVIDES, expert).after, DIVIDES)
    close(loaded.run(inputs).outputs, interpret_stepwise(plain, inputs), plain)


def test_stored_assembly(capsys: pytest.CaptureFixture[str]) -> None:
    """The benchmark's best programs run, write all that they have to, and take the cycles that stand beside them."""
    facts: dict[str, Any] = json.loads((STORED / "cycles.json").read_text(encoding="utf-8"))
    assert sorted(facts) == sorted(path.name for path in STORED.glob("*.s"))
    for name, fact in facts.items():
        arguments = [word for argument in fact["arguments"] for word in ("--arg", argument)]
        assert main([str(STORED / name), "--machine", "snitch-xdiv", *arguments]) == 0, name
        cycles = re.search(r"^cycles +(\d+)", capsys.readouterr().out, re.MULTILINE)
        assert cycles is not None
        assert int(cycles.group(1)) == fact["cycles_of_pdojo_snitch"], name
