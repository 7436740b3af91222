"""`pdojo-run`: run a kernel on random inputs, check the result, time it; for Snitch cores on the simulator."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pdojo_tools.command import Arguments, add_align, add_json, add_machine, positive, random_seed, tool
from pdojo_tools.phases import loading

from pdojo.errors import UsageError

EXAMPLES = (
    ("pdojo-run softmax:64x512", "check and time a kernel of the library"),
    ("pdojo-run kernel.pdojo --trace tuned.trace --threads 2", "make the moves of a trace first"),
    ("pdojo-run softmax:64x512 --no-time --json", "only check, and print the result for a program"),
    ("pdojo-run model.onnx --shape batch=4", "check and time an ONNX model, beside ONNX Runtime"),
    ("pdojo-run axpy:1x32 --dtype f64 --machine snitch", "simulate a Snitch core"),
)


def parser() -> Arguments:
    """The command line."""
    made = Arguments(prog="pdojo-run", description=__doc__, examples=EXAMPLES)
    made.add_common()
    add = made.add_argument
    what = "a .pdojo or MLIR file, - for standard input, a library kernel's name, or an .onnx model"
    add("program", metavar="KERNEL", help=what)
    add("--kernel", metavar="NAME", help="which kernel, where the file has several")
    sizes = "sizes of a library kernel in its file's order, others by name: 8x64x56,S=2; of a model: N=4,x=1x3x48x192"
    add("--shape", metavar="AxBxC", help=sizes)
    add("--dtype", metavar="TYPE", help="element type of a library kernel: f32, f64, bf16, f16")
    add("--trace", metavar="FILE", help="make the moves of a trace first")
    add(
        "--check",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="compare with the interpreter; a large --trace with the plain kernel",
    )
    add("--time", action=argparse.BooleanOptionalAction, default=True, help="time it")
    add("--cold", action="store_true", help="time it with arrays that are in no cache")
    add("--threads", type=positive, metavar="N", help="threads for parallel scopes; by default the machine's")
    add_align(made)
    add("--seed", type=random_seed, default=0, metavar="N", help="seed of the random inputs")
    add_machine(made, "compile for")
    add("-o", "--output", metavar="FILE.npz", help="store inputs and outputs")
    add_json(made)
    return made


@tool
def main(args: Sequence[str] | None) -> None:
    """Run the tool."""
    given = parser().parse_args(args)
    if not (given.check or given.time or given.output):
        raise UsageError("nothing is left to do with --no-check --no-time; see pdojo-run --help")
    if given.program.endswith(".onnx"):
        with loading():
            from pdojo_tools.onnx_models import run_model

        run_model(given)
        return
    with loading():
        from pdojo_tools.running import run

    run(given)


if __name__ == "__main__":
    sys.exit(main())
