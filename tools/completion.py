"""Completion of command lines in shells: scripts that shtab makes from the tools' parsers."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import distribution
from typing import Any, cast

import shtab
from pdojo_tools.parsing import Arguments


def tool_parsers() -> dict[str, Arguments]:
    """The parsers of all tools that are installed, by the tool's name."""
    tools = distribution("pdojo").entry_points.select(group="console_scripts")
    return {tool.name: import_module(f"pdojo_tools.{tool.attr}").parser() for tool in tools}


def completion(shell: str) -> str:
    """A script for a shell, `bash`, `zsh` or `tcsh`, that completes options, commands, files, kernels and machines."""
    from pdojo.dialect.machines.descriptions import descriptions
    from pdojo.kernels import PRESETS, kernel_names

    words = {"kernel": sorted({*kernel_names(), *PRESETS}), "machine": sorted(descriptions())}
    kinds: dict[str, Any] = {
        "FILE": shtab.FILE,
        "FOLDER": shtab.DIRECTORY,
        **{kind.upper(): _complete_words(kind) for kind in words},
    }
    preamble = {
        "bash": "\n".join(_bash(kind, known) for kind, known in words.items()),
        "zsh": "\n".join(_zsh(kind, known) for kind, known in words.items()),
    }
    scripts: list[str] = []
    for name, parser in tool_parsers().items():
        _mark(parser, kinds)
        scripts.append(
            shtab.complete(parser, shell, root_prefix=name.replace("-", "_"), preamble=preamble.get(shell, ""))
        )
    return "\n".join(scripts) + "\n"


def _mark(parser: Arguments, kinds: dict[str, Any]) -> None:
    """Tell shtab which arguments are files, kernels or machines: their placeholders in the help say so."""
    for action in parser.actions():
        placeholder = str(action.metavar or action.dest).partition(".")[0]
        if action.choices is None and placeholder in kinds:
            cast(Any, action).complete = kinds[placeholder]
    for command in parser.commands().values():
        _mark(command, kinds)


def _complete_words(kind: str) -> dict[str, str]:
    return {"bash": f"_pdojo_{kind}", "zsh": f"_pdojo_{kind}", "tcsh": "f"}


def _bash(kind: str, words: list[str]) -> str:
    return f'_pdojo_{kind}() {{ compgen -f -- "$1"; compgen -W "{" ".join(words)}" -- "$1"; }}'


def _zsh(kind: str, words: list[str]) -> str:
    return f"_pdojo_{kind}() {{ _alternative '{kind}s:{kind}:({' '.join(words)})' 'files:file:_files' }}"
