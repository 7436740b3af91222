"""`pdojo-lib`: libraries of tuned kernels for C, C++ and Python."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pdojo_tools.command import Arguments, positive, tool, usual_database
from pdojo_tools.phases import loading

EXAMPLES = (
    ("pdojo-lib build examples/library/spec.toml -o dist", "build a library for C, C++ and Python"),
    ("pdojo-lib build -o dist --from model.onnx", "build the kernels of a model"),
    ("pdojo-lib verify dist", "replay all moves, make the same bytes again, run every entry"),
    ("pdojo-lib bench dist", "time every entry beside other libraries, in a checkout"),
)


def main(args: Sequence[str] | None = None) -> int:
    """Run the tool; returns the exit code."""
    arguments = list(sys.argv[1:] if args is None else args)
    if arguments[:1] == ["bench"]:
        from pdojo_tools.library.comparing import bench

        return bench(arguments[1:])
    return _run(arguments)


@tool
def _run(args: Sequence[str] | None) -> None:
    given = parser().parse_args(args)
    if given.command == "verify":
        with loading():
            from pdojo_tools.library.proving import prove

        prove(given)
        return
    with loading():
        from pdojo_tools.library.building import build

    build(given)


def parser() -> Arguments:
    """The command line."""
    made = Arguments(prog="pdojo-lib", description=__doc__, examples=EXAMPLES)
    made.add_common()
    commands = made.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Arguments)
    text = "build a library; the same command goes on with a build that was interrupted"
    add = commands.add_parser("build", help=text, description=f"{text}. docs/library.md describes specifications.")
    text = "kernels, models, sizes, types, machines, effort; or an ONNX model, of which one function is made"
    add.add_argument("spec", metavar="SPEC.toml|MODEL.onnx", nargs="?", help=text)
    add.add_argument("-o", "--output", metavar="FOLDER", type=Path, required=True, help="the folder of the library")
    add.add_argument("--force", action="store_true", help="replace a library that is in the folder")
    text = "leave out entries that have no program, or a wrong one, instead of refusing the library"
    add.add_argument("--keep-going", action="store_true", help=text)
    text = "the name is MODULE:FUNCTION, which returns a PyTorch module and a list of inputs; its code is run"
    add.add_argument("--torch", action="store_true", help=text)
    text = "where the weights of the model are: inside the library, or a file beside it, which is mapped"
    add.add_argument("--weights", choices=("inside", "beside"), default="inside", help=text)
    add.add_argument("--from", dest="onnx", metavar="MODEL.onnx", help="the kernels of an ONNX model, as operators")
    add.add_argument(
        "--shape",
        metavar="AxBxC",
        help="unknown extents of the ONNX model by name, shapes of its inputs: N=4,x=1x3x48x192; 1 by default; "
        "ranges for sizes that calls give: N=1..8",
    )
    add.add_argument(
        "--from-torch",
        metavar="MODULE:FUNCTION",
        help="the kernels of a PyTorch model; the function returns a module and a list of inputs; its code is run",
    )
    text = f"where measured choices are kept; by default {usual_database()}"
    add.add_argument("--database", metavar="FILE", help=text)
    add.add_argument("--ray", metavar="ADDRESS", help="search on a Ray cluster first: local, auto, HOST:PORT")
    add.add_argument("--workers", type=positive, metavar="N", help="workers of the cluster")
    text = "prove a library: replay its moves, make its bytes again, run every entry"
    add = commands.add_parser("verify", help=text, description=f"{text}. docs/library.md describes the steps.")
    add.add_argument("library", metavar="FOLDER", type=Path, help="the folder of the library")
    text = "time a library beside others (in a checkout); see bench --help"
    add = commands.add_parser("bench", help=text, add_help=False)
    add.add_argument("arguments", metavar="FOLDER", nargs=argparse.REMAINDER, help="the folder, and options")
    return made


if __name__ == "__main__":
    sys.exit(main())
