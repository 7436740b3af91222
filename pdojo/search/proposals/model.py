"""A proposal model: p(family | program), p(place, parameters | family, program), p(position | trace), and its file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from pdojo.dialect.flow.program import Program
from pdojo.errors import UsageError
from pdojo.files import read_bytes
from pdojo.search.contract.candidates import MoveCandidate
from pdojo.search.proposals.places import History, Row
from pdojo.search.proposals.questions import (
    FAMILY,
    PARTS,
    PLACE,
    POSITION,
    VERSION,
    Vocabulary,
    family_question,
    place_question,
    position_question,
)
from pdojo.search.proposals.scorers import DESIGNS, Scorer
from pdojo.transforms.move import Move

KIND = "pdojo proposals"
"""The stamp of a file with a proposal model."""
LARGEST = 1 << 26
"""Greatest size of a file in bytes."""


@dataclass(frozen=True, eq=False)
class ProposalModel:
    """Scores of moves, places and positions, in logarithms up to a constant."""

    known: Vocabulary
    parts: Mapping[str, Scorer]
    """The scorer of each question."""
    identity: str
    """A hash of everything that draws depend on."""

    def families(self, program: Program, history: History, names: Sequence[str]) -> Row:
        """The scores of families as the next move."""
        return self.parts[FAMILY].scores(family_question(program, history, names, self.known))

    def places(self, program: Program, history: History, name: str, some: Sequence[MoveCandidate]) -> Row:
        """The scores of candidates of one family."""
        return self.parts[PLACE].scores(place_question(program, history, name, some, self.known))

    def positions(self, moves: Sequence[Move]) -> Row:
        """The scores of the positions of an insertion: before each move, and at the end."""
        return self.parts[POSITION].scores(position_question(moves, self.known))

    @staticmethod
    def load(path: str) -> ProposalModel:
        """The model of a file. Raises UsageError if it cannot be read, is no model, or is of another version."""
        try:
            data = read_bytes(Path(path), LARGEST)
        except OSError as error:
            raise UsageError(f"cannot read the proposals '{path}': {error.strerror}") from None
        try:
            return model_of(data)
        except UsageError as error:
            raise UsageError(f"'{path}' has no proposals that can be used: {error}") from None


def model_of(data: bytes) -> ProposalModel:
    """The model of a file's bytes. Raises UsageError."""
    tensors = _safetensors()
    try:
        arrays: dict[str, Any] = tensors.numpy.load(data)
        stamp: dict[str, Any] = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
    except (tensors.SafetensorError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(f"it is no file of pdojo-train proposals ({type(error).__name__})") from None
    if stamp.get("kind") != KIND:
        raise UsageError("it is no file of pdojo-train proposals")
    if stamp.get("features") != VERSION:
        raise UsageError(
            f"its features have version {stamp.get('features')}, and here they have {VERSION}; train again"
        )
    families, designs = str(stamp.get("families", "")).split(), str(stamp.get("designs", "")).split()
    if len(designs) != len(PARTS) or not set(designs) <= set(DESIGNS):
        raise UsageError("its design is unknown")
    known = Vocabulary(families)
    parts: dict[str, Scorer] = {}
    for part, design in zip(PARTS, designs, strict=True):
        own = {name.partition(".")[2]: each for name, each in arrays.items() if name.startswith(f"{part}.")}
        parts[part] = DESIGNS[design](own, known.sizes(part))
    return ProposalModel(known, parts, _identity(stamp, arrays))


def _identity(stamp: Mapping[str, Any], arrays: Mapping[str, Any]) -> str:
    # The order in which safetensors writes the stamp differs from process to process.
    known = sha256("\n".join(str(stamp[name]) for name in ("features", "families", "designs")).encode())
    for name, each in sorted(arrays.items(), key=lambda item: item[0]):
        known.update(f"{name} {each.dtype} {each.shape}".encode())
        known.update(each.tobytes())
    return known.hexdigest()[:16]


def bytes_of(known: Vocabulary, parts: Mapping[str, Scorer], facts: Mapping[str, str]) -> bytes:
    """A model as a file's bytes; `facts` are texts for people, such as machine and kernels."""
    arrays = {f"{part}.{name}": each for part in PARTS for name, each in parts[part].arrays().items()}
    designs = " ".join(parts[part].design for part in PARTS)
    stamp = {**facts, "kind": KIND, "features": VERSION, "families": " ".join(known.names), "designs": designs}
    return bytes(_safetensors().numpy.save(arrays, stamp))


def _safetensors() -> Any:
    """The package safetensors. Raises UsageError if it is not installed."""
    try:
        import_module("safetensors.numpy")
        return import_module("safetensors")
    except ImportError:
        raise UsageError("learned proposals need safetensors: pip install safetensors") from None
