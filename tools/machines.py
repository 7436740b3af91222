"""The machine that a command line names: `--machine` and `--trust-machine`."""

from __future__ import annotations

import argparse

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import introduce, machine


def add_machine(parser: argparse.ArgumentParser, purpose: str) -> None:
    """Add the two options; `purpose` completes their help."""
    parser.add_argument(
        "--machine",
        metavar="MACHINE",
        help=f"a name or a TOML file: the machine to {purpose}; by default the kernel's, or host",
    )
    parser.add_argument(
        "--trust-machine",
        action="store_true",
        help="compile and run the code of instructions that the machine file describes; read it first",
    )


def named_machine(name: str, *, trust: bool) -> Machine:
    """The machine of a name or file; kernels may name it afterwards."""
    described = machine(name, trust=trust)
    introduce(described)
    return described
