"""Moves of the command line: games on the kernels of a module, and lists of moves."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

from pdojo_tools.outputs import json_text
from pdojo_tools.steps import CommandStep, suggestion
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.rewriter import Rewriter

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import introduce, known_machine
from pdojo.dialect.ops import KernelOp, VersionsOp
from pdojo.errors import IllegalMove, LocationError, UsageError
from pdojo.transforms.game import Game, Skipped
from pdojo.transforms.move import Move, parse_moves
from pdojo.transforms.trace import Trace
from pdojo.transforms.versions import PARAMETERS, divide


class MoveSession:
    """The kernels of a module and a game on each that has moves; `show` is called after every move.

    `traces` are the traces of `--apply-trace`, by path.
    """

    def __init__(
        self,
        module: ModuleOp,
        machine: Machine | None,
        kernel_name: str | None,
        show: Callable[[str], None],
        *,
        traces: Mapping[str, Trace],
        skip_illegal: bool,
    ) -> None:
        self.module = module
        self.kernel_name = kernel_name
        self.show = show
        self.traces = traces
        self.skip_illegal = skip_illegal
        self.games: dict[str, Game] = {}
        """The games begun, by kernel."""
        if machine is not None:
            introduce(machine)
            for kernel in self._kernels().values():
                kernel.properties["machine"] = StringAttr(machine.name)

    @property
    def game(self) -> Game:
        """The game on the chosen kernel. Raises UsageError if the choice is not clear."""
        return self._game_on(self._chosen(self.kernel_name))

    def _game_on(self, kernel: KernelOp) -> Game:
        name = kernel.sym_name.data
        if name not in self.games:
            named = kernel.machine
            self.games[name] = Game(kernel, known_machine("host" if named is None else named.data))
        return self.games[name]

    def restart(self) -> None:
        """Begin new games after passes have changed the module."""
        self.games.clear()

    def take(self, step: CommandStep) -> None:
        """Carry out `--apply`, `--apply-trace` or `--undo`."""
        match step.option:
            case "apply":
                for move in parse_moves(step.value):
                    self._make(move, str(move))
            case "apply_trace":
                self._apply_trace(step.value)
            case _:
                self._undo(step.value)

    def _make(self, move: Move, shown: str) -> None:
        """Make a move: on the kernel before a `/` in its location (`f_1/y:0`), by default on the chosen one."""
        name, _, at = move.at.rpartition("/")
        kernel = self._chosen(name or self.kernel_name)
        if move.name in PARAMETERS:
            self.games.pop(kernel.sym_name.data, None)
            divide(self.module, kernel, move.moved_to(at))
        else:
            game = self._game_on(kernel)
            game.apply(move.moved_to(at))
            self._place(game)
        self.show(shown)

    def _apply_trace(self, path: str) -> None:
        trace = self.traces[path]
        if self.kernel_name is None and trace.kernel in self._kernels():
            self.kernel_name = trace.kernel
        made = 0
        for number, step in enumerate(trace.steps):
            try:
                self._make(step.resolved, str(step.move))
                made += 1
            except (IllegalMove, LocationError) as error:
                if not self.skip_illegal:
                    differs = trace.missing(self.game.kernel)
                    raise type(error)(f"{path}: move {number}, {step.move}: {error}{differs}") from None
                _report(Skipped(step.move, str(error)))
        report_trace(path, made, trace, self.game.kernel)

    def _undo(self, text: str) -> None:
        try:
            index = int(text)
        except ValueError:
            raise UsageError(f"--undo {text}: give the number of a move, from 0, or -1 for the last") from None
        undone = self.game.trace.steps[index : index + 1 or None]
        for skipped in self.game.undo(index):
            _report(skipped)
        self._place(self.game)
        self.show(f"undo of {undone[0].move}")

    def _place(self, game: Game) -> None:
        """Replace the game's kernel in the module by its present state."""
        Rewriter.replace_op(self._kernels()[game.trace.kernel], game.kernel.clone())

    def _kernels(self) -> dict[str, KernelOp]:
        return {op.sym_name.data: op for op in self.module.walk() if isinstance(op, KernelOp)}

    def _chosen(self, wanted: str | None) -> KernelOp:
        """The kernel `wanted`; None is the module's only one. Raises UsageError."""
        kernels = self._kernels()
        if wanted is not None:
            if wanted not in kernels:
                raise UsageError(f"there is no kernel '{wanted}'{self._hint(wanted, kernels)}")
            return kernels[wanted]
        if not kernels:
            raise UsageError("the input has no pdojo.kernel to make moves on")
        if len(kernels) > 1:
            example = f"{next(iter(kernels))}/y:0"
            raise UsageError(
                f"the input has the kernels {', '.join(kernels)}; choose one with --kernel, or for one move by its "
                f"location: {example}"
            )
        return next(iter(kernels.values()))

    def _hint(self, wanted: str, kernels: dict[str, KernelOp]) -> str:
        for each in self.module.walk():
            if isinstance(each, VersionsOp) and each.sym_name.data == wanted:
                return f"; it has the versions {', '.join(each.names)}"
        return suggestion(wanted, kernels)


def report_trace(path: str, made: int, trace: Trace, kernel: KernelOp) -> None:
    """Report the number of moves made, and whether the trace is another kernel's."""
    given, name = len(trace.steps), kernel.sym_name.data
    of = "" if made == given else f" of {given}"
    other = (
        f"; it was found for kernel '{trace.kernel}', and this is '{name}'" if trace.kernel not in ("", name) else ""
    )
    sys.stderr.write(f"{path}: made {made}{of} move{'s' * (given != 1)}{other}\n")


def _report(skipped: Skipped) -> None:
    sys.stderr.write(f"warning: {skipped}\n")


def list_moves(game: Game, *, refused: bool, as_json: bool = False, family: str = "", at: str = "") -> str:
    """The legal moves or the refused candidates, one per line or as JSON; of one family or at one location if given."""
    if refused:
        refusals = game.refused(family, at)
        if not as_json:
            return "".join(f"{refusal}\n" for refusal in refusals)
        rows = [{**_row(r.move), "reason": r.reason, "witness": r.witness} for r in refusals]
    else:
        moves = game.moves(family, at)
        if not as_json:
            return "".join(f"{move}\n" for move in moves)
        rows = [_row(move) for move in moves]
    return json_text(rows)


def _row(move: Move) -> dict[str, object]:
    return {"move": str(move), "name": move.name, "at": move.at, "parameters": dict(move.params)}
