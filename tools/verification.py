"""`--verify`: checks by execution that the steps of the command line preserve the meaning of every kernel."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from xdsl.dialects.builtin import ModuleOp

from pdojo.backends.backend import Emulates
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.measure.arrays import random_inputs
from pdojo.backends.measure.check import Rounding, compare, compare_all
from pdojo.backends.registry import backend_of
from pdojo.dialect.attributes import Intent
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation.bound import bound
from pdojo.dialect.ops import KernelOp, VersionsOp
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.semantics.oracle import check_valid, equivalent
from pdojo.dialect.semantics.oracle.instances import INSTANCE_LIMIT, count_instances
from pdojo.dialect.sizes import probes, spelled
from pdojo.dialect.versions import version_of
from pdojo.dialect.view.build import nest_of, nest_on
from pdojo.dialect.view.nest import Nest
from pdojo.errors import InvalidKernel, LoweringError, SimulationError, UsageError
from pdojo.frontends.text import Chunk
from pdojo.kernels import Workload, library_workload
from pdojo.passes.scheduled_kernel import ScheduledKernel
from pdojo.passes.verification.shrink import QUICK, family_of, shrunk
from pdojo.passes.verification.verify import verify_moves
from pdojo.transforms.game import Game

INTERPRETED = 20_000_000
"""Greatest number of statement instances interpreted in addition to an exact comparison: some seconds."""

MOST_INSTANCES = 1 << 33
"""Greatest number of statement instances for the interpreter, which runs some ten million per second."""

OUTSIDE = "which has no NaN, infinity, signed zero, rounding or wrap-around"
"""The limits of an exact comparison."""


def verify_meaning(before: ModuleOp, after: ModuleOp, games: Mapping[str, Game], chunk: Chunk) -> None:
    """Compare every kernel of `before` with its counterpart in `after`, and report on standard error.

    The comparison is exact, under adversarial schedules, at the kernel's own sizes or, if only moves of one of the
    `games` were made, at smaller sizes; the interpreter also runs random inputs. Raises InvalidKernel with the first
    element that differs, or if a kernel is invalid before the steps; UsageError if a kernel is gone.
    """
    kernels = {op.sym_name.data: op for op in after.walk() if isinstance(op, KernelOp)}
    versions = {op.sym_name.data: op.names for op in after.walk() if isinstance(op, VersionsOp)}
    for kernel in before.walk():
        if not isinstance(kernel, KernelOp):
            continue
        name = kernel.sym_name.data
        if name not in kernels and name not in versions:
            raise UsageError(f"--verify compares kernels, and the passes left no pdojo.kernel '{name}'; lower it later")
        for each in (name,) if name in kernels else versions[name]:
            plain = kernel if each == name else version_of(kernel, kernels[each])
            game = games.get(each)
            machine = _machine(game, kernels[each])
            if plain.known_sizes():
                for values, first, second in _at_values(plain, kernels[each]):
                    nests = _nest(first, machine), _nest(second, machine)
                    said = _Verification(first, *nests, machine).run(None, None)
                    sys.stderr.write(f"{said} at {values}\n")
                continue
            tuned = _nest(kernels[each], None if game is None else game.machine)
            said = _Verification(plain, nest_of(plain), tuned, machine).run(game, _source(chunk))
            sys.stderr.write(f"{said}\n")


def _nest(kernel: KernelOp, machine: Machine | None) -> Nest:
    return nest_of(kernel) if machine is None else nest_on(kernel, machine)


def _at_values(*kernels: KernelOp) -> Iterator[tuple[str, KernelOp, KernelOp]]:
    """Two kernels with sizes for some values: the ends of the ranges, and one between; small ones only, if there are.

    The first element is a text that names the values.
    """
    found: dict[str, list[KernelOp]] = {}
    for values in probes([*kernels[0].known_sizes().values()]):
        at = spelled(values)
        pair = [bound(kernel, values) for kernel in kernels]
        if not found or max(count_instances(nest_of(one)) for one in pair) <= INTERPRETED:
            found[at] = pair
    for at, (first, second) in found.items():
        yield at, first, second


def _machine(game: Game | None, kernel: KernelOp) -> Machine | None:
    """The kernel's machine; None if neither the game nor the kernel names one."""
    if game is not None:
        return game.machine
    return None if kernel.machine is None else machine(kernel.machine.data)


def _source(chunk: Chunk) -> Workload | str | None:
    """The workload or text that gives the kernel at other sizes; None if there is neither."""
    if chunk.is_library:
        return library_workload(chunk.name)
    return chunk.text if chunk.format(None) == "notation" else None


def _reduced(game: Game, source: Workload | str | None) -> tuple[Nest, Nest] | None:
    """The programs before and after the moves at reduced sizes; None if no sizes fit."""
    family = family_of(game.initial.kernel, source)
    small = None if family is None else shrunk(game, family)
    return None if small is None else (nest_on(small.before, game.machine), nest_on(small.after, game.machine))


def _tell(name: str) -> None:
    sys.stderr.write(f"compiling the code of kernel '{name}' for this computer, to judge it\n")
    sys.stderr.flush()


class _Verification:
    """The verification of one kernel."""

    def __init__(self, kernel: KernelOp, before: Nest, after: Nest, machine: Machine | None) -> None:
        self.kernel = kernel
        self.before = before
        self.after = after
        self.machine = machine
        self.compared: tuple[Nest, Nest] | None = None
        """The programs at reduced sizes; None if the oracle compared them at the kernel's own sizes."""
        self.instances = max(count_instances(nest) for nest in (before, after))

    def run(self, game: Game | None, source: Workload | str | None) -> str:
        """The report. Raises InvalidKernel if the programs differ."""
        done: list[str] = []
        left_out: list[str] = []
        where = ""
        if self.instances <= INSTANCE_LIMIT:
            difference = equivalent(self.before, self.after)
            if difference is not None:
                self._fail(str(difference), valid=check_valid(self.before) is None)
            done.append("exact oracle under adversarial schedules")
        elif game is not None:
            decision = verify_moves(ScheduledKernel(game), source)
            if decision.fault is not None:
                self._fail(decision.fault, valid=True)
            (done if decision.is_exact else left_out).append(decision.said)
            if decision.is_reduced:
                where, self.compared = " at reduced sizes", decision.compared
        else:
            most = f"at most {INSTANCE_LIMIT} statement instances, not {self.instances}"
            left_out.append(f"exact arithmetic takes {most}, and only moves can be made at smaller sizes too")
        is_exact = bool(done)
        if not is_exact and self.instances > MOST_INSTANCES:
            raise UsageError(
                f"--verify runs kernel '{self.before.name}', and its {self.instances:,} statement instances would take "
                f"hours; verify the moves at smaller sizes"
            )
        if not is_exact or self.instances <= INTERPRETED:
            self._interpret()
            done.append("random inputs at its own sizes" if where else "random inputs")
        left_out += self._judge_code(game, source)
        name, listed = self.before.name, "; ".join([", and ".join(done), *left_out])
        if is_exact:
            return f"verified{where}: kernel '{name}' keeps its meaning in exact arithmetic, {OUTSIDE} ({listed})"
        return f"not verified exactly: kernel '{name}' gives the same results ({listed})"

    def _judge_code(self, game: Game | None, source: Workload | str | None) -> list[str]:
        """The verdict of an emulator of the machine that runs the code on random inputs, if the backend has one.

        The sizes are the oracle's reduced ones except for small programs. Raises InvalidKernel if the code is wrong.
        """
        backend = None if self.machine is None else backend_of(self.machine)
        if self.machine is None or not isinstance(backend, Emulates):
            return []
        name = self.before.name
        if self.compared is None and game is not None and self.instances > QUICK:
            self.compared = _reduced(game, source)
        before, after = self.compared or (self.before, self.after)
        if not self.compared and self.instances > INTERPRETED:
            return [f"its code was not judged: {self.instances:,} statement instances are too many"]
        parameters = parameters_of(before)
        inputs = random_inputs(parameters, seed=0)
        expected = interpret(before, inputs)
        ways: list[str] = []
        try:
            for way, results in backend.emulate(after.kernel, self.machine, inputs, lambda: _tell(name)):
                _, wrong = compare_all(parameters, results, expected, Rounding.of(before))
                if wrong is not None:
                    raise InvalidKernel(f"--verify: the code of kernel '{name}' is wrong ({way}): {wrong}")
                ways.append(way)
        except SimulationError as error:
            raise InvalidKernel(f"--verify: the code of kernel '{name}' is wrong: {error}") from None
        except LoweringError as error:
            return [f"its code was not judged: {error}"]
        sizes = "the reduced sizes" if self.compared else "its own sizes"
        return [f"its code, run by fibers at {sizes} in {len(ways)} ways, gives the same results"]

    def _interpret(self) -> None:
        """Compare both programs on the same random inputs."""
        parameters = parameters_of(self.before)
        inputs = random_inputs(parameters, seed=0)
        expected = interpret(self.before, inputs)
        results = interpret(self.after, inputs, seed=0, storage="cells")
        rounding = Rounding.of(self.before)
        for parameter in parameters:
            if parameter.intent is not Intent.IN:
                _, wrong = compare(parameter, results[parameter.name], expected[parameter.name], rounding)
                if wrong is not None:
                    self._fail(wrong, valid=True)

    def _fail(self, what: str, *, valid: bool) -> None:
        """Raise InvalidKernel: the meaning changed, or the kernel was invalid."""
        if not valid:
            validate(Program(self.kernel, machine("host")))
            raise InvalidKernel(f"--verify: the program before all steps is not valid itself: {what}")
        raise InvalidKernel(f"--verify: the meaning changed: {what}")
