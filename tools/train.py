"""`pdojo-train`: train agents of PerfLLM and proposals over many kernels, and cost models over the database."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pdojo_tools.command import Arguments, add_json, add_machine, positive, random_seed, tool
from pdojo_tools.phases import loading

from pdojo.errors import UsageError
from pdojo.names import EVALUATORS
from pdojo.perfllm.settings import Settings

DESCRIPTION = """Train what searches learn from: agents of PerfLLM, proposals of edits, and cost models.

docs/perfllm.md and docs/proposals.md say more."""
EXAMPLES = (
    ("pdojo-train agent softmax:16x16 matmul:16x16x16 -o agent --machine snitch", "one policy for two kernels"),
    ("pdojo-tune softmax:32x32 --machine snitch --search perfllm --agent policy=agent/policy", "search with it"),
    ("pdojo-train proposals dot:1x128 relu:8x16 -o lessons --machine snitch", "proposals from searches of two kernels"),
    ("pdojo-train costs -o costs --machine host --evaluator runtime", "a cost model over the database"),
)


@tool
def main(args: Sequence[str] | None) -> None:
    """Run the tool."""
    given = parser().parse_args(args)
    given.train(given)


def _agent(given: argparse.Namespace) -> None:
    with loading():
        from pdojo_tools.training.session import train_agent

    train_agent(given)


def _proposals(given: argparse.Namespace) -> None:
    with loading():
        from pdojo_tools.training.proposals import train_proposals

    train_proposals(given)


def _costs(given: argparse.Namespace) -> None:
    with loading():
        from pdojo_tools.training.costs import train_costs

    train_costs(given)


def parser() -> Arguments:
    """The command line."""
    made = Arguments(prog="pdojo-train", description=DESCRIPTION, examples=EXAMPLES)
    made.add_common()
    commands = made.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Arguments)
    agent = commands.add_parser("agent", help="one policy over many kernels, for --agent policy=FOLDER/policy")
    _add_agent(agent)
    agent.set_defaults(train=_agent)
    proposals = commands.add_parser(
        "proposals", help="what edits are drawn from, for --proposals learned:FOLDER/proposals"
    )
    _add_proposals(proposals)
    proposals.set_defaults(train=_proposals)
    costs = commands.add_parser("costs", help="a cost model over the database, for --agent screen=FILE")
    _add_costs(costs)
    costs.set_defaults(train=_costs)
    return made


def _add_programs(parser: Arguments, written: str) -> None:
    """Options of a training on kernels; `written` is what it writes to its folder."""
    parser.add_argument(
        "programs", metavar="KERNEL", nargs="+", help="library kernels at sizes (softmax:16x16), or files"
    )
    parser.add_argument(
        "-o", "--output", metavar="FOLDER", required=True, help=f"{written}; an interrupted training goes on"
    )


def _add_agent(parser: Arguments) -> None:
    add = parser.add_argument
    _add_programs(parser, "the policy, the log, the report")
    add("--episodes", type=positive, default=1000, metavar="N", help="episodes of all kernels together (1000)")
    add("--dtype", metavar="TYPE", help="element type of library kernels")
    add_machine(parser, "train for")
    add("--evaluator", choices=EVALUATORS, help="what costs are; by default simulated cycles for Snitch, else times")
    add(
        "--agent",
        type=_settings,
        metavar="NAME=VALUE,...",
        default=Settings(),
        help="hyper-parameters, as in pdojo-tune",
    )
    add("--seed", type=random_seed, default=0, metavar="N", help="seed of everything (0)")
    add(
        "--parallel",
        type=positive,
        default=1,
        metavar="N",
        help="episodes that are played with one policy, in as many processes (1)",
    )
    add("--ray", metavar="ADDRESS", help="play on a Ray cluster: local, auto, HOST:PORT, ray://HOST:PORT")
    add("--database", metavar="FILE", help="where costs are kept; by default FOLDER/costs.sqlite")
    add(
        "--demonstrations",
        type=_sources,
        metavar="A,B",
        default=(),
        help="first show what is known: pass (the expert pass), database (its best)",
    )
    add("--tensorboard", action="store_true", help="also write FOLDER/tensorboard")
    add_json(parser)


def _add_proposals(parser: Arguments) -> None:
    add = parser.add_argument
    _add_programs(parser, "the proposals, the lessons, the costs")
    add("--rounds", type=positive, default=2, metavar="N", help="searches of all kernels, then a training (2)")
    add("--searches", type=positive, default=2, metavar="N", help="searches of each kernel in a round (2)")
    add("--evaluations", type=positive, default=300, metavar="N", help="evaluations of each search (300)")
    add("--random", type=_count, default=0, metavar="N", help="also this many random kernels (0)")
    add("--design", choices=("best", "network", "trees"), default="best", help="the better on held-out kernels (best)")
    add("--dtype", metavar="TYPE", help="element type of library kernels")
    add_machine(parser, "train for")
    add("--evaluator", choices=EVALUATORS, help="what costs are; by default simulated cycles for Snitch, else times")
    add("--seed", type=random_seed, default=0, metavar="N", help="seed of everything (0)")
    add("--database", metavar="FILE", help="where costs are kept; by default FOLDER/costs.sqlite")
    add_json(parser)


def _count(text: str) -> int:
    if not text.isdecimal() or len(text) > 6:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of kernels")
    return int(text)


def _add_costs(parser: Arguments) -> None:
    add = parser.add_argument
    add("-o", "--output", metavar="FILE", required=True, help="the cost model")
    add("--database", metavar="FILE", help="the measurements; the usual database by default")
    add("--machine", metavar="MACHINE", required=True, help="the machine of the measurements")
    add("--evaluator", choices=EVALUATORS, required=True, help="the evaluator of the measurements")
    add("--updates", type=positive, default=5000, metavar="N", help="most updates of the network (5000)")
    add("--seed", type=random_seed, default=0, metavar="N", help="seed of the network (0)")
    add_json(parser)


def _settings(text: str) -> Settings:
    try:
        return Settings.parse(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _sources(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in names:
        if name not in ("pass", "database"):
            raise argparse.ArgumentTypeError(f"unknown source '{name}'; known are pass, database")
    return names


if __name__ == "__main__":
    sys.exit(main())
