"""`pdojo-machine`: the machines that pdojo knows, and what this processor reaches."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pdojo_tools.command import Arguments, add_json, positive, tool
from pdojo_tools.phases import loading

if TYPE_CHECKING:
    from pdojo.dialect.machines.machine import Machine

EXAMPLES = (
    ("pdojo-machine list", "print the known machines"),
    ("pdojo-machine show nvidia-sm90 > mine.toml", "begin a machine file of your own"),
    ("pdojo-machine calibrate", "measure this processor for the expert pass"),
    ("pdojo-machine list --json", "print names and descriptions for a program"),
)


def parser() -> Arguments:
    """The command line."""
    made = Arguments(prog="pdojo-machine", description=__doc__, examples=EXAMPLES)
    made.add_common()
    commands = made.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Arguments)
    names = commands.add_parser("list", help="print the names of all machines")
    add_json(names, "names and descriptions")
    show = commands.add_parser("show", help="print a machine as a file")
    text = "a name or a TOML file; by default host"
    show.add_argument("machine", metavar="MACHINE", nargs="?", default="host", help=text)
    add_json(show, "the machine")
    calibrate = commands.add_parser(
        "calibrate", help="measure bandwidths and rates of this processor, in some 20 seconds, for the pass to use"
    )
    calibrate.add_argument(
        "-o", "--output", metavar="FILE", help="write a machine file, - for standard output; host does not use it"
    )
    calibrate.add_argument("--name", default="calibrated", help="the machine's name in that file (calibrated)")
    calibrate.add_argument("--threads", type=positive, metavar="N", help="threads; by default all processors")
    return made


@tool
def main(args: Sequence[str] | None) -> None:
    """Run the tool."""
    given = parser().parse_args(args)
    match given.command:
        case "list":
            print_machines(None, as_json=given.json)
        case "show":
            _show(given.machine, as_json=given.json)
        case _:
            _calibrate(given.output, given.name, given.threads)


def print_machines(path: str | None, *, as_json: bool) -> None:
    """Write the known machines with their descriptions, one per line or as JSON."""
    from pdojo_tools.outputs import write_json, write_output

    from pdojo.dialect.machines.descriptions import descriptions

    found = descriptions()
    if as_json:
        write_json([{"name": name, "description": description} for name, description in found.items()], path)
        return
    width = max(map(len, found))
    lines = (f"{name:{width}}  {description}".rstrip() for name, description in found.items())
    write_output("".join(f"{line}\n" for line in lines), path)


def _show(name: str, *, as_json: bool) -> None:
    with loading():
        from pdojo.dialect.machines.machine_file import machine_to_json
        from pdojo.dialect.machines.registry import machine
        from pdojo.dialect.machines.writing import machine_text

    described = machine(name)
    if as_json:
        from pdojo_tools.outputs import write_json

        write_json(machine_to_json(described))
        return
    sys.stdout.write(machine_text(described))
    sys.stdout.writelines(f"# {line}\n" for line in conclusions(described))


def conclusions(described: Machine) -> list[str]:
    """Conclusions from a machine's measurements for programs on all its threads, a sentence each."""
    measured, threads = described.measured, described.threads
    source = "measured" if measured else "a guess: nothing was measured (pdojo-machine calibrate)"
    found = [f"usable cache: {_bytes(described.usable_cache)}, {source}"]
    if measured:
        past = measured.nontemporal_from(threads)
        found.append(f"stores past the caches pay {'nowhere' if past is None else f'from {_bytes(past)} on'}")
        distance = measured.prefetch_distance(threads)
        found.append(f"prefetching pays {f'{distance} bytes ahead' if distance else 'nothing'} for reads from memory")
        found.append(f"starting {threads} threads takes {measured.thread_start * 1e6:.1f} us")
    return found


def _bytes(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def _calibrate(output: str | None, name: str, threads: int | None) -> None:
    from dataclasses import replace

    from pdojo_tools.calibrating import COMMAND, keep, measured, place
    from pdojo_tools.outputs import check_writable, write_output

    from pdojo.dialect.machines.host import parent_of_host, uncalibrated
    from pdojo.dialect.machines.writing import machine_text
    from pdojo.dialect.names import is_machine_name
    from pdojo.errors import UsageError

    if not is_machine_name(name):
        raise UsageError(f"'{name}' is no name of a machine: letters, digits, '_', '-' and '.'")
    if output is None and threads is not None:
        raise UsageError("--threads needs -o: host is measured with all of its processors")
    if output is None:
        place()
    elif output != "-":
        check_writable(output)
    here, command = uncalibrated(), COMMAND
    if threads is not None:
        here, command = replace(here, threads=threads), f"{COMMAND} --threads {threads}"
    described = measured(here, command, name)
    if output is None:
        output = str(keep(described))
    else:
        write_output(machine_text(described, parent_of_host()), output)
    if output != "-":
        sys.stdout.writelines(f"{line}\n" for line in conclusions(described))
        sys.stdout.write(f"wrote {output}\n")


if __name__ == "__main__":
    sys.exit(main())
