"""The command line of `pdojo-tune`, with checks for contradictory options."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from pdojo_tools.command import Arguments, add_align, add_json, add_machine, positive, random_seed

from pdojo.budget import EVALUATIONS, Budget
from pdojo.errors import UsageError, did_you_mean
from pdojo.names import EVALUATORS, EXPERT_PASSES, NEIGHBOURHOODS, UNIFORM, strategy_names

DESCRIPTION = """Tune kernels by an expert pass and by search, verify them, and measure the speed-up.

Kernels are .pdojo or MLIR files, library kernels (`softmax`), and those at sizes (`softmax:24576x512`). docs/tuning.md
says more."""
EXAMPLES = (
    ("pdojo-tune softmax:64x512 -o softmax.trace --emit softmax.pdojo", "tune a kernel, and store moves and program"),
    ("pdojo-tune softmax:64x512 --why", "print the moves of the expert pass with their reasons"),
    ("pdojo-tune softmax:64x512 --search anneal --budget 10m --report softmax.html", "search on, and write a report"),
    ("pdojo-tune model.onnx --shape batch=4", "tune the kernels of an ONNX model"),
    ("pdojo-tune --torch model.py:net", "tune the kernels of a PyTorch model"),
    ("pdojo-tune softmax:64x512 --json > result.json", "print moves, program and times for a program"),
)
COMPARED_BUDGET = 250
"""Default number of evaluations of each search of a comparison."""
SEEDS = 5
NONE = "none"
"""The word for no search."""
_OF_SEARCH = ("neighbourhood", "proposals", "budget", "evaluator", "agent", "start", "proposers", "ray")
"""Options that need a search."""


def parse(args: Sequence[str] | None) -> argparse.Namespace:
    """The arguments, with defaults that depend on other arguments. Raises UsageError."""
    made = parser()
    given = made.parse_args(args)
    if given.list_kernels:
        return given
    if not given.programs:
        made.error("the following arguments are required: KERNEL")
    if given.compare:
        _check_comparison(given)
    else:
        _check_why(given)
        _check_tuning(given)
    _check_all(given)
    evaluations = COMPARED_BUDGET if given.compare else EVALUATIONS
    defaults = {
        "budget": Budget(evaluations),
        "start": "plain" if given.compare else "pass",
        "proposals": UNIFORM,
    }
    for name, value in defaults.items():
        if getattr(given, name) is None:
            setattr(given, name, value)
    return given


def parser() -> Arguments:
    """The command line."""
    made = Arguments(prog="pdojo-tune", description=DESCRIPTION, examples=EXAMPLES)
    made.add_common()
    _add_kernels(made)
    _add_search(made)
    _add_comparison(made)
    _add_cluster(made)
    _add_results(made)
    return made


def _add_kernels(parser: Arguments) -> None:
    add = parser.add_argument
    add("--list-kernels", action="store_true", help="print the library kernels and their sizes, and nothing else")
    add(
        "programs",
        metavar="KERNEL",
        nargs="*",
        help="a file, - for standard input, or a library kernel: softmax:64x512",
    )
    add("--kernel", metavar="NAME", help="which kernel, where the file has several")
    sizes = "sizes of a library kernel in its file's order, others by name: 8x64x56,S=2; of a model: N=4,x=1x3x48x192"
    add("--shape", metavar="AxBxC", help=sizes)
    add("--dtype", metavar="TYPE", help="element type of library kernels: f32, f64, bf16, f16")
    add("--pass", dest="expert", choices=(*EXPERT_PASSES, "none"), default="heuristic", help="the expert pass")
    add("--trace", metavar="FILE", help="make the moves of a trace before the pass")
    add(
        "--torch",
        action="store_true",
        help="each KERNEL is MODULE:FUNCTION or FILE.py:FUNCTION, a function that returns a PyTorch module, or a "
        "function of tensors, and a list of inputs; its code is run",
    )
    add_machine(parser, "tune for")
    add("--threads", type=positive, metavar="N", help="threads for parallel scopes; by default the machine's")
    add_align(parser)


def _add_search(parser: Arguments) -> None:
    add = parser.add_argument_group("search").add_argument
    known = strategy_names()
    add(
        "--search",
        type=_names("strategy", (*known, NONE)),
        metavar="STRATEGY",
        help=f"search by {', '.join(known)}; none: no search, the default except on simulated cores (evolve)",
    )
    add(
        "--neighbourhood",
        type=_names("neighbourhood", NEIGHBOURHOODS),
        metavar="NAME",
        help=f"what is near a trace: {', '.join(NEIGHBOURHOODS)}; heuristic by default, mutate for Snitch",
    )
    add(
        "--proposals",
        metavar="uniform|learned:FILE",
        help="what edits of mutate are drawn from: all moves alike (default), or a model of pdojo-train proposals",
    )
    add(
        "--budget",
        type=_budget,
        metavar="N,TIME",
        help=f"evaluations (1000), a time (90s, 15m, 2h), or both; {EVALUATIONS} evaluations by default, 300 without "
        "--search",
    )
    add(
        "--evaluator",
        choices=EVALUATORS,
        help="what costs are: times on this machine (default), a model's, or simulated cycles (default for Snitch)",
    )
    add(
        "--agent",
        metavar="NAME=VALUE,...",
        help="options of the strategy, as perfllm has them: encoder=hf:FOLDER, granularity=both; see docs/perfllm.md",
    )
    add(
        "--proposers",
        type=positive,
        metavar="N",
        help="processes that make proposals, by default one for each processor; results do not depend on it",
    )
    add("--start", choices=("plain", "pass"), help="search from the plain kernel, or from the pass's result (default)")
    add("--seed", type=random_seed, metavar="N", help="seed of the search and of the random inputs")
    add(
        "--database",
        metavar="FILE",
        help="where measurements and decisions are kept, and runs go on; see docs/database.md",
    )
    add(
        "--fresh",
        action="store_true",
        help="begin a new run instead of going on with the last one; without --search, race and measure again",
    )


def _add_comparison(parser: Arguments) -> None:
    add = parser.add_argument_group("comparison").add_argument
    add(
        "--compare",
        action="store_true",
        help="compare searches; --search and --neighbourhood take lists: sample,anneal",
    )
    add("--seeds", type=positive, metavar="N", help=f"searches of each kind; {SEEDS} by default")


def _add_cluster(parser: Arguments) -> None:
    add = parser.add_argument_group("cluster").add_argument
    add(
        "--ray",
        metavar="ADDRESS",
        help="time programs on a Ray cluster, and search all kernels at once: local, auto, HOST:PORT, ray://HOST:PORT",
    )
    add("--workers", type=positive, metavar="N", help="workers of the cluster; by default as many as it has room for")


def _add_results(parser: Arguments) -> None:
    add = parser.add_argument_group("results").add_argument
    add("--why", action="store_true", help="only print the pass's moves, and why each was made")
    add("--no-measure", action="store_true", help="neither run nor time the programs; a search estimates")
    add("--no-plain", action="store_true", help="leave the plain kernel out of the last measurement")
    add("--no-calibrate", action="store_true", help="do not measure this processor if nobody has yet")
    add(
        "-o",
        "--output",
        metavar="FILE",
        help="store the trace (a folder for several kernels); with --compare the curves",
    )
    add("--emit", metavar="FILE", help="store the tuned program, in the notation (a folder for several kernels)")
    add("--report", metavar="FILE.html", help="write a report of everything, as one file")
    add("--inductor", action="store_true", help="with --torch and --report: time the model beside PyTorch's Inductor")
    add_json(parser)


def _names(kind: str, known: Sequence[str]) -> Callable[[str], list[str]]:
    """A parser of comma-separated names among the known ones."""

    def parse_names(text: str) -> list[str]:
        names = [part.strip() for part in text.split(",")]
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"unknown {kind} '{name}'; {did_you_mean(name, known)}")
        return list(dict.fromkeys(names))

    return parse_names


def _budget(text: str) -> Budget:
    try:
        return Budget.parse(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _check_all(given: argparse.Namespace) -> None:
    if given.json and "-" in (given.output, given.emit):
        raise UsageError("--json and a result named - both go to standard output; name a file")
    if len(given.programs) > 1:
        for name in ("kernel", "shape", "trace"):
            if getattr(given, name) is not None:
                hint = "; write sizes behind each name: softmax:64x512" if name == "shape" else ""
                raise UsageError(f"--{name} is for one kernel, and there are {len(given.programs)}{hint}")
    if given.trace is not None and (given.start == "plain" or (given.compare and given.start is None)):
        hint = "add --start pass" if given.compare and given.start is None else "leave out one of them"
        raise UsageError(f"--start plain would leave out the moves of --trace; {hint}")
    if given.ray is not None:
        _check_cluster(given)
    elif given.workers is not None:
        raise UsageError("--workers belongs to --ray")
    if given.inductor and not (given.torch and given.report):
        raise UsageError("--inductor belongs to --torch and --report")
    twice = next((name for name in given.programs if given.programs.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"kernel '{twice}' is given twice")


def _check_tuning(given: argparse.Namespace) -> None:
    if given.seeds is not None:
        raise UsageError("--seeds belongs to --compare")
    if given.search in (None, [NONE]):
        for name in _OF_SEARCH:
            if getattr(given, name) is not None:
                raise UsageError(f"--{name} belongs to a search; say which one with --search")
        return
    for name in ("search", "neighbourhood"):
        if len(getattr(given, name) or [""]) > 1:
            raise UsageError(f"--{name} takes one name; several are for --compare")
    if given.fresh and given.seed is not None:
        raise UsageError("a run is known by its seed: --fresh takes one that had none, so leave out --seed")


def _check_why(given: argparse.Namespace) -> None:
    for name in ("search", "output", "emit", "report"):
        if given.why and getattr(given, name) not in (None, [NONE]):
            raise UsageError(f"--why only prints the moves of the pass; leave out --{name}")


def _check_cluster(given: argparse.Namespace) -> None:
    if given.evaluator in ("analytical", "cycles"):
        other = "a model" if given.evaluator == "analytical" else "a simulator"
        raise UsageError(f"--ray is for programs that are timed; {other} needs no cluster, so leave out one of them")
    if given.no_measure:
        raise UsageError("--ray and --no-measure do not go together: the workers of a cluster measure")


def _check_comparison(given: argparse.Namespace) -> None:
    for name in ("why", "no_measure", "fresh", "proposers", "emit", "report", "ray"):
        if getattr(given, name):
            raise UsageError(f"--compare and --{name.replace('_', '-')} do not go together")
    if NONE in (given.search or ()):
        raise UsageError("--search none leaves nothing to compare")
    if given.budget is not None and (given.budget.evaluations is None or given.budget.seconds is not None):
        raise UsageError("--compare counts evaluations: --budget 250, without a time")
