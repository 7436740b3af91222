"""The work of `pdojo-opt`: reads, transforms and prints a program."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import replace
from io import StringIO
from typing import TYPE_CHECKING, Any, cast

from pdojo_tools.command import message
from pdojo_tools.inputs import read_input
from pdojo_tools.outputs import shows_colours, write_output
from pdojo_tools.passes import parse_passes
from pdojo_tools.steps import CommandStep, suggestion
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import PassPipeline
from xdsl.universe import XDSL_UNIVERSE
from xdsl.utils.arg_spec import ArgSpec, parse_spec
from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException

from pdojo.dialect.alignment import ALIGNMENT
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.ops import KernelOp
from pdojo.errors import ConversionError, InvalidKernel, LoweringError, NotationError, PdojoError, UsageError
from pdojo.frontends.text import Chunk, SourceModule, TextContext, parse, raised_by_xdsl, split, universe

if TYPE_CHECKING:
    from pdojo.dialect.machines.machine import Machine
    from pdojo.transforms.game import Game
    from pdojo.transforms.trace import Trace

_PREFIX = "pdojo-"
"""Prefix of pdojo's targets; a name without it is short for that target, also if xDSL has one of this name."""


class OptSession:
    """A run of the tool with the notation, moves in the command line, and one message per mistake."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.available_passes = dict(universe().all_passes)
        self.available_targets = dict(universe().all_targets)
        self.ctx = TextContext(allow_unregistered=args.allow_unregistered_dialect)
        self.target = self._target(args.target)
        self.machine = _machine(args)
        self._check_steps()

    def _check_steps(self) -> None:
        """Check the steps as far as possible without a program."""
        steps: list[CommandStep] = getattr(self.args, "steps", None) or []
        self.steps: list[tuple[CommandStep, PassPipeline | None]] = [
            (step, parse_passes(self.available_passes, step.value) if step.option == "passes" else None)
            for step in steps
        ]
        self.traces = _traces(step.value for step in steps if step.option == "apply_trace")
        if self._is_binary and (self.args.split_input_file or self.args.print_after_each_move):
            raise UsageError(f"target '{self.target.name}' writes one binary file, so the input must be one program")

    def run(self) -> None:
        """Process the input; nothing is written before all of it succeeded, except with --verify-diagnostics."""
        chunk = read_input(self.args.program)
        if self._is_binary:
            write_output(self._binary(chunk), self.args.output)
            return
        chunks = list(split(chunk)) if self.args.split_input_file else [chunk]
        separator = "# -----\n" if self.target.name == "notation" else "// -----\n"
        write_output(separator.join(self._run_chunk(chunk) for chunk in chunks), self.args.output)

    @property
    def _is_binary(self) -> bool:
        return self.target.name == "pdojo-obj"

    def _binary(self, chunk: Chunk) -> str | bytes:
        """One program as bytes, or the text of lists or explanations."""
        output = StringIO()
        module = self._transformed(chunk, output)
        if module is None:
            return output.getvalue()
        return cast(Any, self.available_targets[self.target.name])().from_spec(self.target).emit_bytes(self.ctx, module)

    def _run_chunk(self, chunk: Chunk) -> str:
        try:
            return self._process(chunk)
        except PdojoError as error:
            parsing = isinstance(error, NotationError)
            if self.args.parsing_diagnostics if parsing else self.args.verify_diagnostics:
                return f"{message(error)}\n"
            raise
        except DiagnosticException as error:
            if self.args.verify_diagnostics:
                return f"error: {error}\n"
            raise

    def _process(self, chunk: Chunk) -> str:
        output = StringIO()
        module = self._transformed(chunk, output)
        if module is not None:
            output.write(self.output_resulting_program(module))
        return output.getvalue()

    def _transformed(self, chunk: Chunk, output: StringIO) -> ModuleOp | None:
        """The program after all steps; None if lists or explanations were requested, which go to `output`."""
        implicit = not self.args.no_implicit_module
        program = parse(chunk, self.ctx, self.args.frontend, implicit_module=implicit)
        if not self.args.disable_verify:
            program.verify()
        self._declare(program)
        before = program.module.clone() if self.args.verify else None
        games: dict[str, Game] = {}
        if self._needs_game:
            games = self._play(program, output)
        else:
            for step, pipeline in self.steps:
                self._apply_passes(program, step, pipeline)
        if before is not None:
            from pdojo_tools.verification import verify_meaning

            verify_meaning(before, program.module, games, chunk)
        return None if self.args.list_moves or self.args.explain else program.module

    def _declare(self, program: SourceModule) -> None:
        """Set the alignment: the command line's, else the kernel's, else the trace's."""
        kernels = [op for op in program.module.walk() if isinstance(op, KernelOp)]
        for kernel in kernels:
            name = kernel.sym_name.data
            traces = (trace for trace in self.traces.values() if len(kernels) == 1 or trace.kernel == name)
            recorded = next((trace.alignments for trace in traces if trace.alignments), ())
            if self.args.align is not None:
                alignments = (self.args.align,)
            elif kernel.arg_alignments is None:
                alignments = recorded or (ALIGNMENT,) * program.chunk.is_library
            else:
                continue
            if alignments:
                kernel.properties.update(with_alignment(kernel, *alignments).properties)

    @property
    def _needs_game(self) -> bool:
        moves = any(step.option != "passes" for step, _ in self.steps)
        return moves or self.args.list_moves or bool(self.args.explain) or self.machine is not None

    def _play(self, program: SourceModule, output: StringIO) -> dict[str, Game]:
        """Apply steps that include moves; returns the games without passes in between, by kernel."""
        from pdojo_tools.moves import MoveSession, list_moves

        from pdojo.transforms.move import parse_moves

        def show(title: str) -> None:
            if self.args.print_after_each_move:
                comment = "#" if self.target.name == "notation" else "//"
                output.write(f"{comment} after {title}\n{self.output_resulting_program(program.module)}")

        session = MoveSession(
            program.module,
            self.machine,
            self.args.kernel,
            show,
            traces=self.traces,
            skip_illegal=self.args.skip_illegal,
        )
        for step, pipeline in self.steps:
            if pipeline is not None:
                self._apply_passes(program, step, pipeline)
                session.restart()
            else:
                session.take(step)
        if self.args.list_moves:
            refused, family, at = self.args.refused, self.args.family, self.args.at
            output.write(list_moves(session.game, refused=refused, as_json=self.args.json, family=family, at=at))
        if self.args.explain:
            from pdojo_tools.explaining import explain_moves

            moves = [move for text in self.args.explain for move in parse_moves(text)]
            output.write(explain_moves(session.game, moves, as_json=self.args.json))
        only_moves = self.args.verify and not any(pipeline is not None for _, pipeline in self.steps)
        return session.games if only_moves and self.steps else {}

    def _apply_passes(self, program: SourceModule, step: CommandStep, pipeline: PassPipeline | None) -> None:
        assert pipeline is not None
        module = program.module
        for one in pipeline.passes:
            try:
                one.apply(self.ctx, module)
                if not self.args.disable_verify:
                    module.verify()
            except ConversionError as error:
                raise program.located(error) from None
            except PdojoError:
                raise
            except DiagnosticException as error:
                raise InvalidKernel(f"pass '{one.name}': {error}") from error
            except Exception as error:
                if not raised_by_xdsl(error):
                    raise
                raise InvalidKernel(f"pass '{one.name}' of xDSL fails on this program: {_in_short(error)}") from error

    def output_resulting_program(self, prog: ModuleOp) -> str:
        """The program in the target's form."""
        output = StringIO()
        name = self.target.name
        target = cast(Any, self.available_targets[name])().from_spec(self.target)
        if self.target.name == "mlir":
            options = {
                "print_generic_format": self.args.print_op_generic or target.print_generic_format,
                "print_properties_as_attributes": self.args.print_no_properties,
                "print_debuginfo": self.args.print_debuginfo,
                "syntax_highlight": self.args.syntax_highlight and shows_colours(self.args.output),
            }
            target = replace(target, **options)
        if name in XDSL_UNIVERSE.all_targets and name != "mlir" and _has_kernels(prog):
            raise LoweringError(f"target '{name}' knows no pdojo.kernel; lower it first: -p convert-pdojo-to-loops")
        try:
            target.emit(self.ctx, prog, output)
        except Exception as error:
            if not raised_by_xdsl(error):
                raise
            raise LoweringError(f"target '{name}' of xDSL cannot print this program: {_in_short(error)}") from error
        text = output.getvalue()
        # xDSL's MLIR target ends with an empty line.
        return f"{text.rstrip()}\n" if self.target.name == "mlir" else text

    def _target(self, text: str) -> ArgSpec:
        try:
            spec = parse_spec(text)
        except ArgSpecParseError:
            raise UsageError(f"-t {text}: write a target's name, or name{{parameter=value}}") from None
        parameters: dict[str, tuple[bool, ...]] = {}
        name = spec.name
        if name == "generic":
            name, parameters = "mlir", {"print_generic_format": (True,)}
        elif _PREFIX + name in self.available_targets:
            name = _PREFIX + name
        if name not in self.available_targets:
            short = [each.removeprefix(_PREFIX) for each in self.available_targets if each.startswith(_PREFIX)]
            known = [*self.available_targets, "generic", *short]
            raise UsageError(f"unknown target '{spec.name}'{suggestion(spec.name, known)}")
        spec = ArgSpec(name, {**parameters, **spec.parameters})
        try:
            cast(Any, self.available_targets[name])().from_spec(spec)
        except ValueError as error:
            raise UsageError(f"target '{spec.name}': {error}") from None
        return spec


def _machine(args: argparse.Namespace) -> Machine | None:
    """The machine of `--machine`."""
    if args.machine is None:
        return None
    from pdojo_tools.machines import named_machine

    return named_machine(args.machine, trust=args.trust_machine)


def _traces(paths: Iterable[str]) -> dict[str, Trace]:
    """The traces of `--apply-trace`, keyed by path."""
    given = list(paths)
    if not given:
        return {}
    from pdojo.transforms.trace import Trace

    return {path: Trace.load(path) for path in given}


def _has_kernels(program: ModuleOp) -> bool:
    return any(isinstance(op, KernelOp) for op in program.walk())


def _in_short(error: Exception) -> str:
    """The first line of an error of xDSL; the rest is the whole program."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
