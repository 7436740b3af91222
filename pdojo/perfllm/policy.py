"""Policies: the networks of a trained agent in a file, as a start for other kernels."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any

from pdojo.errors import UsageError
from pdojo.perfllm.learner import Learner, policy_schema
from pdojo.perfllm.settings import Settings
from pdojo.perfllm.storing import dump, load_stamped, read_file, read_stamped

_KIND = "pdojo policy 1"


def policy_of(learner: Learner, encoder: str, facts: Mapping[str, str]) -> bytes:
    """The networks and the scale of their inputs as bytes. `encoder` is the name of the encoder (`Encoder.name`).

    `facts` are texts for people about the training.
    """
    return dump(learner.policy(), {**facts, "kind": _KIND, "shape": _shape(learner.settings), "encoder": encoder})


def load_policy(path: str, settings: Settings, encoder: str, size: int) -> dict[str, Any]:
    """The networks of a policy file, for `Learner.adopt`; `size` is the length of the encoder's vectors.

    Raises UsageError if the file is no policy, or if its networks or its encoder differ.
    """
    data, stamp = read_stamped(path, "policy", _KIND)
    for what, wanted in (("shape", _shape(settings)), ("encoder", encoder)):
        if stamp.get(what) != wanted:
            raise UsageError(f"'{path}' has the {what} '{stamp.get(what)}', and this agent '{wanted}'")
    remedy = "train it again with pdojo-train agent"
    return load_stamped(data, policy_schema(settings, size), path, remedy)


@lru_cache(maxsize=4)
def identity_of(path: str) -> str:
    """A hash of a file's contents, since its name does not identify them."""
    return sha256(read_file(path, "file")).hexdigest()[:16]


def _shape(settings: Settings) -> str:
    heads = "dueling" if settings.dueling else "one head"
    return f"{settings.width} wide, {heads}, target {settings.target}"
