"""All readers of users' texts, called in process: each accepts a text or refuses it with one clear error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer
from xdsl.universe import Universe

from pdojo.backends.c.dispatch import dispatch_text
from pdojo.backends.c.spelling import CSpelling
from pdojo.backends.c.targets import c_text
from pdojo.backends.llvm.targets import llvm_text
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_module, parse_notation, print_notation, print_versions
from pdojo.dialect.ops import KernelOp, VersionsOp
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.view.versions import versions_of
from pdojo.errors import LoweringError, NotationError, UsageError
from pdojo.files import decode
from pdojo.frontends.text import Chunk, parse
from pdojo.kernels import workload
from pdojo.snitch_sim.assembler import assemble
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move, parse_moves
from pdojo.transforms.trace import Trace
from qa.input_fuzz.corpus import KERNEL

Reader = Callable[[bytes], None]
"""Reads a text as a tool would. Raises PdojoError if it refuses the text."""


def _text(data: bytes) -> str:
    try:
        text = decode(data)
    except UnicodeDecodeError:
        raise UsageError("not UTF-8") from None
    if "\0" in text:
        raise UsageError("a zero byte")
    return text


def read_notation(data: bytes) -> None:
    """Read a text in the notation; print, parse again and lower its kernels."""
    _use_all(parse_module(_text(data)))


def read_mlir(data: bytes) -> None:
    """Read a text in MLIR; print, parse again and lower its kernels."""
    context = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        context.register_dialect(name, factory)
    program = parse(Chunk(_text(data), "<input>"), context, "mlir")
    program.verify()
    Printer(StringIO()).print_op(program.module)
    _use_all(program.module)


def _use_all(module: ModuleOp) -> None:
    """Use every kernel; print the lists of versions, and the code that chooses among them."""
    operations = list(module.walk())
    for operation in operations:
        if isinstance(operation, KernelOp):
            _use(operation)
        elif isinstance(operation, VersionsOp):
            assert print_versions(operation)
            dispatch_text(versions_of(operation), CSpelling())


def _use(kernel: KernelOp) -> None:
    """Print, parse, validate and lower a kernel. Raises AssertionError if it is parsed as a different kernel."""
    try:
        text = print_notation(kernel)
    except NotationError:
        # Only MLIR can express a hint of the kernel.
        return
    (again,) = parse_notation(text)
    assert print_notation(again) == text, "printed and read again, it is another kernel"
    validate(Program(kernel, machine("toy")))
    for lower in (c_text, llvm_text):
        try:
            lower(kernel)
        except LoweringError:
            continue


def read_trace(data: bytes) -> None:
    """Read a trace and replay it on the kernel."""
    trace = Trace.parse(_text(data))
    _game().fork().replay(trace.steps[:6])


def read_moves(data: bytes) -> None:
    """Read moves and try each on the kernel."""
    for move in parse_moves(_text(data))[:3]:
        _try(move)


def _try(move: Move) -> None:
    game = _game().fork()
    game.apply(move)
    Move.parse(str(move))
    game.undo()


@cache
def _game() -> Game:
    return Game(parse_notation(KERNEL)[0], machine("toy"))


def read_machine_file(data: bytes) -> None:
    """Read a machine description."""
    with TemporaryDirectory(prefix="pdojo-fuzz-") as folder:
        path = Path(folder) / "m.toml"
        path.write_bytes(data)
        machine(str(path))


def read_shape(data: bytes) -> None:
    """Read a library kernel at some sizes."""
    workload(_text(data)).instantiate()


def read_assembly(data: bytes) -> None:
    """Read assembly for Snitch cores."""
    assemble(_text(data), "<input>")


READERS: Mapping[str, Reader] = {
    "notation": read_notation,
    "mlir": read_mlir,
    "trace": read_trace,
    "machine": read_machine_file,
    "moves": read_moves,
    "shape": read_shape,
    "assembly": read_assembly,
}
"""Readers by form of the corpus."""
