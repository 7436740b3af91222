"""Templates of a machine's instructions: code of a backend, which runs only if the description is trusted."""

from __future__ import annotations

from collections.abc import Mapping

from pdojo.errors import LoweringError


def template_of(templates: Mapping[str, str], language: str, *, trusted: bool) -> str:
    """The code for a language. Raises LoweringError (its text follows the name) if it is missing or not trusted."""
    if language not in templates:
        raise LoweringError(f"whose description has no template for {language}; unmap the scope")
    if not trusted:
        raise LoweringError(
            "whose template is code of a machine file, which pdojo compiles only where you trust the file; "
            "read it, and give --trust-machine (in Python: machine(path, trust=True))"
        )
    return templates[language]
