"""The worker's side of a simulation: lower, run, compare with the interpreter."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from functools import lru_cache

from pdojo.backends.calling.arrays import Parameter, parameters_of
from pdojo.backends.measure.arrays import random_inputs
from pdojo.backends.measure.check import Rounding, compare_all, same_bits
from pdojo.backends.measure.outcome import (
    Check,
    CompileError,
    Crash,
    Deadlock,
    Outcome,
    OutOfMemory,
    SimulatedOnSnitch,
    Timeout,
    Trap,
    WrongResult,
)
from pdojo.backends.measure.request import Simulation
from pdojo.backends.snitch.executable import Arrays, SimulatedKernel, SimulatedRun, load
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.functions import byte_width, is_float
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.semantics.interpreter import interpret, interpret_stepwise
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Leaf, Nest
from pdojo.errors import CycleLimit, LoweringError, MeasurementError, MemoryDamage, PdojoError, SimulationError
from pdojo.errors import Deadlock as DeadlockError
from pdojo.math.functions import FUNCTIONS
from pdojo.snitch_sim.simulator import Result

Listener = Callable[[str], None]
"""A function called with each phase (`pdojo.backends.measure.worker.PhaseEvent`) before it begins."""

_KEPT = 4
"""Number of references in the cache; a search uses the same one again and again."""


def simulate(wanted: Simulation, tell: Listener) -> Outcome:
    """The outcome of a simulation. Raises MeasurementError if the reference cannot be computed."""
    tell("compile")
    try:
        nest = _nest(wanted.program.text)
        kernel = load(nest.kernel, wanted.program.machine)
    except PdojoError as error:
        return CompileError(str(error))
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  # a bug that a candidate shows is data here; the traceback is kept
        return CompileError(f"{type(error).__name__}: {error}", traceback.format_exc())
    return judged(kernel, nest, wanted, tell)


def judged(kernel: SimulatedKernel, nest: Nest, wanted: Simulation, tell: Listener) -> Outcome:
    """The outcome of the given code for a program. Raises the errors of `simulate`."""
    reference = None
    if wanted.reference is not None:
        tell("reference")
        reference = _reference(wanted.reference.text, wanted.seed)
        if [(p.name, p.dtype, p.shape) for p in kernel.parameters] != reference.interface:
            raise MeasurementError(f"the reference '{nest.name}' and the program have different interface arrays")
    inputs = random_inputs(kernel.parameters, wanted.seed) if reference is None else reference.inputs
    tell("simulate")
    run = _run(kernel, inputs, wanted.limit)
    if isinstance(run, Outcome):
        return run
    checked = None if reference is None else _compared(wanted, nest, kernel, reference, run)
    same = _same_bits(nest, kernel, inputs, run) if wanted.exact else None
    if isinstance(checked, WrongResult):
        return checked
    if same is False:
        return WrongResult("its bits differ from the interpreter's on this program")
    return _simulated(kernel, run.result, checked, same)


class _Reference:
    """Inputs, and the reference kernel's outputs for them."""

    def __init__(self, text: str, seed: int) -> None:
        nest = _nest(text)
        parameters = parameters_of(nest)
        self.interface = [(p.name, p.dtype, p.shape) for p in parameters]
        self.inputs = random_inputs(parameters, seed)
        self.outputs = interpret(nest, self.inputs)
        self.rounding = Rounding.of(nest)


_reference = lru_cache(maxsize=_KEPT)(_Reference)


def _run(kernel: SimulatedKernel, inputs: Arrays, limit: int) -> SimulatedRun | Outcome:
    try:
        return kernel.run(inputs, limit=limit)
    except CycleLimit:
        return Timeout("simulate", cycles=limit)
    except DeadlockError as error:
        return Deadlock(str(error))
    except MemoryDamage as error:
        return WrongResult(str(error))
    except SimulationError as error:
        return Trap(str(error))
    except LoweringError as error:
        return CompileError(str(error))
    except MemoryError as error:
        return OutOfMemory("simulate", None, str(error))
    except Exception as error:  # noqa: BLE001  # as above
        return Crash("simulate", f"{type(error).__name__}: {error}", traceback.format_exc())


def _compared(
    wanted: Simulation, nest: Nest, kernel: SimulatedKernel, reference: _Reference, run: SimulatedRun
) -> Check | WrongResult:
    """Compare a run's outputs with the reference."""
    rounding = reference.rounding | Rounding.of(nest)
    error, wrong = compare_all(kernel.parameters, run.outputs, reference.outputs, rounding, wanted.largest_error)
    if wrong is not None:
        return WrongResult(wrong)
    return Check("interpreter", error.fraction, error.absolute, error.relative)


def _simulated(kernel: SimulatedKernel, result: Result, check: Check | None, same: bool | None) -> SimulatedOnSnitch:
    return SimulatedOnSnitch(
        cycles=result.cycles,
        core_cycles=result.core_cycles,
        instructions=result.instructions,
        fpu_operations=result.fpu_operations,
        flops=result.flops,
        width=_width(kernel.parameters),
        stalls=dict(result.fp_stalls),
        check=check,
        same_bits=same,
    )


def _same_bits(nest: Nest, kernel: SimulatedKernel, inputs: Arrays, run: SimulatedRun) -> bool | None:
    """Whether the interpreter gives the same bits; None if the program does not determine bits or is too large."""
    if not has_own_bits(nest):
        return None
    try:
        own = interpret_stepwise(nest, inputs)
    except PdojoError:
        return None
    written = [p for p in kernel.parameters if p.written]
    return all(same_bits(run.outputs[p.name], own[p.name], p.dtype) for p in written)


def has_own_bits(nest: Nest) -> bool:
    """Whether a program determines the bits of its results: no approximate functions, no reductions over lanes."""
    return not any(_approximates(leaf) or _folds_lanes(leaf) for leaf in nest.leaves)


def _approximates(leaf: Leaf) -> bool:
    return leaf.function is not None and not FUNCTIONS[leaf.function].is_exact


def _folds_lanes(leaf: Leaf) -> bool:
    lanes = [s for s in leaf.chain if s.mapping is Mapping.VECTOR]
    return leaf.accumulate is not None and any(not any(e.uses(s.depth) for e in leaf.output.index) for s in lanes)


def _width(parameters: tuple[Parameter, ...]) -> int:
    """Bytes of the widest float type in the interface; 8 without floats."""
    return max((byte_width(p.dtype) for p in parameters if is_float(p.dtype)), default=8)


def _nest(text: str) -> Nest:
    kernels = parse_notation(text, "<program>")
    if len(kernels) != 1:
        raise MeasurementError(f"a program is one kernel, not {len(kernels)}")
    return nest_of(kernels[0])
