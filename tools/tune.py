"""`pdojo-tune`: tune kernels by an expert pass and by search, verify them, and measure the speed-up."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pdojo_tools.command import tool
from pdojo_tools.phases import loading
from pdojo_tools.tuning.arguments import parse
from pdojo_tools.tuning.arguments import parser as parser


@tool
def main(args: Sequence[str] | None) -> None:
    """Run the tool."""
    command = list(sys.argv[1:] if args is None else args)
    given = parse(command)
    if given.list_kernels:
        from pdojo_tools.kernels import print_kernels

        print_kernels(as_json=given.json)
        return
    with loading():
        from pdojo_tools.tuning.begin import begin

    begin(given, command)


if __name__ == "__main__":
    sys.exit(main())
