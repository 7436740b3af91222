"""`pdojo-opt`: read a program, apply passes and moves in the order of the command line, print it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pdojo_tools.command import Arguments, add_align, add_json, add_machine, tool
from pdojo_tools.phases import loading
from pdojo_tools.steps import AppendStep

from pdojo.dialect.alignment import ALIGNMENT
from pdojo.errors import UsageError

TARGETS = "mlir, generic, notation, dot, llvm, asm, obj, c, c-header, cuda, hip, fibers, snitch-asm"
"""Targets for people; the tool also knows xDSL's and other packages' targets."""
EXAMPLES = (
    ("pdojo-opt softmax:64x512 -t notation", "print a kernel of the library"),
    ("pdojo-opt softmax:64x512 --list-moves --family join_scopes", "list the legal moves, here those of one family"),
    ("pdojo-opt softmax:64x512 --explain reuse_dims@e:0", "say why a move is legal or refused"),
    ("pdojo-opt softmax:64x512 --apply join_scopes@m:0,parallelize@m:0 -t c", "make two moves and print C"),
    ("pdojo-opt kernel.mlir -p convert-linalg-to-pdojo,canonicalize", "run passes, xDSL's too"),
    ("pdojo-opt kernel.pdojo --apply-trace tuned.trace --verify -t asm", "replay a trace, check it, print assembly"),
)


def parser() -> Arguments:
    """The command line."""
    made = Arguments(prog="pdojo-opt", description=__doc__, examples=EXAMPLES)
    made.add_common("-v")
    _add_program(made)
    _add_steps(made)
    _add_answers(made)
    return made


@tool
def main(args: Sequence[str] | None) -> None:
    """Run the tool. A user's mistake is one message on standard error, a bug a traceback."""
    given = parser().parse_args(args)
    for option in ("refused", "family", "at"):
        if getattr(given, option) and not given.list_moves:
            raise UsageError(f"--{option} belongs to --list-moves; give both")
    if given.json and [given.list_machines, given.list_moves, bool(given.explain)].count(True) != 1:
        raise UsageError("--json prints one answer: add one of --list-moves, --explain and --list-machines")
    if given.list_machines:
        from pdojo_tools.machine import print_machines

        print_machines(given.output, as_json=given.json)
        return
    with loading():
        from pdojo_tools.optimizing import OptSession

    OptSession(given).run()


def _add_program(parser: Arguments) -> None:
    add = parser.add_argument
    text = "a file, - for standard input (default), or a library kernel: softmax:64x512"
    add("program", metavar="KERNEL", nargs="?", help=text)
    add(
        "-f",
        "--frontend",
        "--input-format",
        choices=("mlir", "notation"),
        help="form of the input; by default recognised by its content",
    )
    add("-t", "--target", default="mlir", help=f"form of the output: {TARGETS}; mlir by default")
    add("-o", "--output", "--output-file", metavar="FILE", help="write into a file, - for standard output (default)")
    add("--split-input-file", action="store_true", help="process the parts between lines `// -----` one by one")
    add("--allow-unregistered-dialect", action="store_true", help="accept operations of dialects that are not known")
    add("--no-implicit-module", action="store_true", help="the input must be a module, not its operations alone")
    add("--disable-verify", action="store_true", help="do not verify the program, after reading it and after passes")
    add("--verify-diagnostics", action="store_true", help="print the error of a wrong program as output, and succeed")
    add("--parsing-diagnostics", action="store_true", help="print the error of reading as output, and succeed")
    add("--print-op-generic", action="store_true", help="print operations of MLIR in the generic form")
    add("--print-no-properties", action="store_true", help="print properties as attributes, for older readers of MLIR")
    add("--print-debuginfo", action="store_true", help="print the locations of operations of MLIR")
    add("--syntax-highlight", action="store_true", help="print MLIR in colours, on a terminal and without NO_COLOR")


def _add_steps(parser: Arguments) -> None:
    add = parser.add_argument
    add("-p", "--passes", action=AppendStep, help="passes, separated by commas; may be repeated")
    add("--apply", action=AppendStep, metavar="MOVES", help="moves, separated by commas; may be repeated")
    add("--apply-trace", action=AppendStep, metavar="FILE", help="apply the moves of a trace; may be repeated")
    add("--undo", action=AppendStep, metavar="N", help="take back move N, from 0 (-1: the last), keep the others")
    add("--skip-illegal", action="store_true", help="with --apply-trace: report and skip moves that do not apply")
    add("--kernel", metavar="NAME", help="which kernel moves are for, where the input has several")
    add_machine(parser, "optimise for")
    add_align(parser, f"the kernel's, else the trace's; {ALIGNMENT} for the library")
    add("--print-after-each-move", action="store_true", help="print the program after every move")
    add("--verify", action="store_true", help="check the meaning after all steps, and code for GPUs, by execution")


def _add_answers(parser: Arguments) -> None:
    add = parser.add_argument
    add("--list-machines", action="store_true", help="print the known machine descriptions instead of a program")
    add("--list-moves", action="store_true", help="print the legal moves instead of the program")
    add("--refused", action="store_true", help="with --list-moves: the refused candidates, with reasons")
    add("--family", metavar="NAME", default="", help="with --list-moves: only the moves of this name")
    add("--at", metavar="LOCATION", default="", help="with --list-moves: only the moves at this location")
    add("--explain", action="append", metavar="MOVE", help="say why a move is legal here or not; may be repeated")
    add_json(parser, "the list of moves or machines, or the explanations,")


if __name__ == "__main__":
    sys.exit(main())
