"""Files of weights of `text-small`: safetensors with a stamp that says what they fit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from pdojo.errors import UsageError
from pdojo.files import read_bytes, replace_file
from pdojo.search.perfllm.storing import LARGEST, dump, load, stamp_of
from pdojo.search.perfllm.text.model import Shape, TextModel
from pdojo.search.perfllm.text.tokens import vocabulary_digest

VERSION = "1"
"""Version of tokens, network and file: files of other versions are not read."""
KIND = "pdojo text-small"
COMMAND = "pdojo-train text FILE.safetensors"
"""The command that makes such a file."""


def stamp(shape: Shape, facts: Mapping[str, Any]) -> dict[str, str]:
    """The texts in front of the weights; `facts` say how they were trained."""
    return {
        "kind": KIND,
        "version": VERSION,
        "vocabulary": vocabulary_digest(),
        "shape": json.dumps(asdict(shape)),
        "trained": json.dumps(facts),
    }


def save_model(path: Path, model: TextModel, facts: Mapping[str, Any]) -> None:
    """Write the weights in one step. Raises UsageError if that is impossible."""
    try:
        replace_file(path, dump(model.parts.state_dict(), stamp(model.shape, facts)))
    except OSError as error:
        raise UsageError(f"cannot write '{path}': {error.strerror}") from None


def load_model(path: Path) -> tuple[TextModel, str]:
    """The model of a file, and a hash of its weights. Raises UsageError for what is no such file of this version."""
    try:
        data = read_bytes(path, LARGEST)
    except OSError as error:
        raise UsageError(f"cannot read the weights '{path}': {error.strerror}; make them with {COMMAND}") from None
    try:
        found = stamp_of(data)
    except UsageError:
        raise UsageError(f"'{path}' has no weights of text-small, or is damaged; make it with {COMMAND}") from None
    check_stamp(found, path)
    try:
        shape = Shape(**json.loads(found["shape"]))
        weights = load(data, TextModel.schema(shape))
    except (UsageError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise UsageError(f"the weights '{path}' are damaged; make them again with {COMMAND} ({error})") from None
    model = TextModel(shape)
    model.parts.load_state_dict(weights)
    return model, _digest(model, found)


def _digest(model: TextModel, found: Mapping[str, str]) -> str:
    """A hash of all that vectors depend on. Equal weights may be in files of different bytes."""
    digest = sha256(f"{found['version']} {found['vocabulary']} {found['shape']}".encode())
    for name, weights in sorted(model.parts.state_dict().items()):
        digest.update(name.encode())
        digest.update(weights.numpy().tobytes())
    return digest.hexdigest()[:16]


def check_stamp(found: Mapping[str, str], path: Path) -> None:
    """Raise UsageError if the stamp is of another kind or version."""
    if found.get("kind") != KIND:
        raise UsageError(f"'{path}' has no weights of text-small; make them with {COMMAND}")
    if found.get("version") != VERSION or found.get("vocabulary") != vocabulary_digest():
        raise UsageError(
            f"the weights '{path}' are of another version of text-small or of the notation; make them with {COMMAND}"
        )
