"""The argument parser of every tool: suggestions for mistakes, examples in the help, common options."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, cast

from pdojo_tools.steps import suggestion

from pdojo.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

Examples: TypeAlias = Sequence[tuple[str, str]]
"""Command lines with their effects."""
EXIT_CODES = {
    0: "done",
    1: "wrong input, a refused move, or a failure",
    2: "wrong command line, or a file that cannot be used",
    130: "interrupted (Ctrl-C)",
}
"""The exit codes of all tools."""
SHELLS = ("bash", "zsh", "tcsh")
"""Shells whose completion the tools print."""
_OPTION = re.compile(r"(--[^\s=]+)(=.*)?", re.DOTALL)


class HelpText(argparse.HelpFormatter):
    """Wraps the paragraphs of a description, and leaves a paragraph with indented lines as it is."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        fill = super()._fill_text
        blocks = (block if "\n " in block else fill(block, width, indent) for block in text.split("\n\n"))
        return "\n\n".join(blocks)


class ShowText(argparse.Action):
    """Prints the text that `const` makes, and exits; other arguments may be missing."""

    def __init__(
        self, option_strings: Sequence[str], dest: str, const: Callable[[], str], help: str | None = None
    ) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, const=const, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        """Print the text."""
        _print(self.const(), parser)


class ShowCompletion(argparse.Action):
    """Prints the completion of all tools for a shell, and exits."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> NoReturn:
        """Print the script. Raises UsageError if shtab is not installed."""
        from pdojo_tools.completion import completion

        _print(completion(str(values)), parser)


def _print(text: str, parser: argparse.ArgumentParser) -> NoReturn:
    sys.stdout.write(text)
    sys.stdout.flush()
    parser.exit()


def versions() -> str:
    """The versions of pdojo and of everything its results depend on, pdojo's first."""
    import platform
    from importlib.metadata import version  # imports the standard library's mail parser

    others = ", ".join(f"{name} {version(package)}" for name, package in (("xDSL", "xdsl"), ("llvmlite", "llvmlite")))
    return f"pdojo {version('pdojo')} ({others}, Python {platform.python_version()})\n"


class Arguments(argparse.ArgumentParser):
    """An argument parser that raises UsageError for mistakes, with suggestions, and takes no abbreviated options.

    The help ends with the examples and the exit codes.
    """

    def __init__(self, *, examples: Examples = (), **options: Any) -> None:
        defaults: dict[str, Any] = {"formatter_class": HelpText, "allow_abbrev": False, "epilog": _epilog(examples)}
        super().__init__(**{**defaults, **options})
        self.examples = tuple(examples)

    def add_common(self, *version: str) -> None:
        """Add the options of every tool: `--version`, with other names of it, and `--completion`."""
        text = "print the versions of pdojo and of its packages"
        self.add_argument(*version, "--version", action=ShowText, const=versions, help=text)
        shells = ", ".join(SHELLS)
        line = f'eval "$({self.prog} --completion bash)"'
        text = f"print the completion of all tools for a shell ({shells}), for example: {line}"
        self.add_argument("--completion", action=ShowCompletion, choices=SHELLS, metavar="SHELL", help=text)

    def actions(self) -> list[argparse.Action]:
        """The declared arguments."""
        return self._actions

    def commands(self) -> dict[str, Arguments]:
        """The parsers of the tool's commands, keyed by name."""
        choices: list[object] = [action.choices for action in self._actions]
        tables = [cast("Mapping[str, Arguments]", table) for table in choices if isinstance(table, Mapping)]
        return {name: each for table in tables for name, each in table.items()}

    def options(self) -> set[str]:
        """The options of the tool and of its commands."""
        return set(self._option_string_actions).union(*(each.options() for each in self.commands().values()))

    def parse_args(  # pyright: ignore[reportIncompatibleMethodOverride]  # its base has overloads for namespaces
        self, args: Iterable[str] | None = None, namespace: Any = None
    ) -> Any:
        """The parsed command line. Raises UsageError; a misspelled option comes before missing arguments."""
        words = list(sys.argv[1:] if args is None else args)
        named = next((word for word in words if "\0" in word), None)
        if named is not None:
            self.error(f"argument '{named}' has a zero byte")
        known = self.options()
        for word in words[: words.index("--")] if "--" in words else words:
            option = _OPTION.fullmatch(word)
            if option is not None and option[1] not in known:
                self.error(f"there is no option '{option[1]}'{suggestion(option[1], sorted(known))}")
        return super().parse_args(words, namespace)

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Print the help, by default to standard output. Raises OSError if a file takes no data, unlike its base."""
        (file or sys.stdout).write(self.format_help())
        sys.stdout.flush()

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        raise UsageError(f"{message}; see {self.prog} --help")

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        # The arguments of a command are left to its parser.
        if "" in (arg_strings[:1] if action.nargs == argparse.PARSER else arg_strings):
            raise argparse.ArgumentError(action, "it is empty")
        return super()._get_values(action, arg_strings)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            hint = suggestion(str(value), [str(each) for each in action.choices])
            raise argparse.ArgumentError(action, f"invalid choice: '{value}'{hint}")


def add_json(parser: argparse.ArgumentParser, what: str = "the result") -> None:
    """Add the option `--json`."""
    text = f"print {what} as JSON; all other output goes to standard error"
    parser.add_argument("--json", action="store_true", help=text)


def _epilog(examples: Examples) -> str | None:
    if not examples:
        return None
    shown = "\n".join(f"  {command}\n      {effect}" for command, effect in examples)
    codes = "\n".join(f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES.items())
    return f"examples:\n{shown}\n\nexit codes:\n{codes}"
