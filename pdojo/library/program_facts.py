"""Facts of compiled programs that the C of a library has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from pdojo.library.objects import CompiledBinding


@dataclass(frozen=True)
class EntryProgram:
    """The compiled program of an entry for a level and an alignment."""

    symbol: str
    workspace: tuple[int, int]
    is_parallel: bool
    alignments: tuple[int, ...]
    """Bytes to which callers align each array."""
    arguments: tuple[str, ...]
    """The names of the arrays that the function takes."""
    binding: CompiledBinding | None
    """The function that computes constants; None if there are none."""

    @staticmethod
    def of(facts: Mapping[str, Any]) -> EntryProgram:
        """The program with the facts of `pdojo.library.programs.facts_of`."""
        shared, thread = facts["workspace"]
        binding = facts["binding"]
        if binding is not None:
            constants = tuple((name, size) for name, size in binding["constants"])
            binding = CompiledBinding(binding["symbol"], tuple(binding["arguments"]), constants)
        alignments, arguments = tuple(facts["alignments"]), tuple(facts["arguments"])
        return EntryProgram(facts["symbol"], (shared, thread), facts["parallel"], alignments, arguments, binding)


Programs: TypeAlias = Mapping[tuple[str, str, int], EntryProgram]
"""Programs by names of entry and level, and number of the variant: 0 for aligned arrays, 1 for others."""
