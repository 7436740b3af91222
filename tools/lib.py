"""`pdojo-lib`: libraries of tuned kernels for C, C++ and Python."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from pdojo_tools.command import Arguments, positive, run_tool

from pdojo.files import default_database


def main(args: Sequence[str] | None = None) -> int:
    """Run the tool; returns the exit code."""
    return run_tool(_run, args)


def _run(args: Sequence[str] | None) -> None:
    parser = _arguments()
    given, rest = parser.parse_known_args(args)
    if given.command == "bench":
        from pdojo_tools.library.comparing import bench

        bench(rest)
        return
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if given.command == "verify":
        from pdojo_tools.library.proving import prove

        prove(given)
        return
    from pdojo_tools.library.building import build

    build(given)


def _arguments() -> Arguments:
    parser = Arguments(prog="pdojo-lib", description=__doc__)
    parser.add_version()
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    text = "build a library; the same command goes on with a build that was interrupted"
    add = commands.add_parser("build", help=text, description=f"{text}. docs/library.md describes specifications.")
    add.add_argument("spec", metavar="SPEC.toml", nargs="?", type=Path, help="kernels, sizes, types, machines, effort")
    add.add_argument("-o", "--output", metavar="FOLDER", type=Path, required=True, help="the folder of the library")
    add.add_argument("--force", action="store_true", help="replace a library that is in the folder")
    add.add_argument("--from", dest="onnx", metavar="MODEL.onnx", help="the kernels of an ONNX model, as operators")
    add.add_argument("--shape", metavar="NAME=N,...", help="unknown extents of the ONNX model, 1 by default")
    add.add_argument(
        "--from-torch",
        metavar="MODULE:FUNCTION",
        help="the kernels of a PyTorch model; the function returns a module and a list of inputs; its code is run",
    )
    shown = str(default_database()).replace("%", "%%")
    add.add_argument("--database", metavar="FILE", help=f"where measured choices are kept; by default {shown}")
    add.add_argument("--ray", metavar="ADDRESS", help="search on a Ray cluster first: local, auto, HOST:PORT")
    add.add_argument("--workers", type=positive, metavar="N", help="workers of the cluster")
    text = "prove a library: replay its moves, make its bytes again, run every entry"
    add = commands.add_parser("verify", help=text, description=f"{text}. docs/library.md describes the steps.")
    add.add_argument("library", metavar="FOLDER", type=Path, help="the folder of the library")
    commands.add_parser("bench", help="time a library beside others (in a checkout); see bench --help", add_help=False)
    return parser


if __name__ == "__main__":
    sys.exit(main())
