"""The encoder `text-small`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy

from pdojo.errors import UsageError
from pdojo.files import changed
from pdojo.search.environment.actions import Action
from pdojo.search.perfllm.kept import Kept
from pdojo.search.perfllm.learner import Vector, import_torch, one_thread
from pdojo.search.perfllm.text.model import TextModel
from pdojo.search.perfllm.text.tokens import Line, lines_of
from pdojo.search.perfllm.text.weights import COMMAND, load_model

BATCH = 64
"""Programs that the model reads at once."""
MOST_LINES = 1 << 16
"""Lines whose vectors are kept in memory."""


class TextEncoder:
    """Vectors of programs by a `TextModel`, which does not learn any more.

    Each line is read once, and vectors of programs are kept on disk (`Kept`). `digest` identifies the weights.
    """

    def __init__(self, model: TextModel, digest: str, cache: Path | None = None) -> None:
        self._torch = import_torch()
        self._model = model
        self._model.parts.eval()
        self.name = f"text-small {digest}"
        self.size = model.shape.width
        self._kept = Kept(self.name, self.size, cache)
        self._numbers: dict[Line, int] = {}
        """Rows of lines in `_lines`."""
        self._lines: Any = self._torch.empty(0, model.shape.width)

    def encode(self, programs: Sequence[Action]) -> list[Vector]:
        """The vector of each program."""
        texts = [one.text for one in programs]
        known = self._kept.of(texts)
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        for start in range(0, len(missing), BATCH):
            part = missing[start : start + BATCH]
            found = dict(zip(part, self.read(part), strict=True))
            self._kept.add(found)
            known |= found
        return [known[text] for text in texts]

    def read(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors of some programs, without those on disk."""
        programs = [lines_of(text) for text in texts]
        with one_thread(), self._torch.inference_mode():
            self._read_lines({line: None for program in programs for line in program})
            rows = [[self._numbers[line] for line in program] for program in programs]
            vectors = self._model.of_programs(self._lines, rows)
        return list(vectors.numpy().astype(numpy.float32))

    def _read_lines(self, lines: dict[Line, None]) -> None:
        if len(self._numbers) + len(lines) > MOST_LINES:
            self._numbers, self._lines = {}, self._lines[:0]
        new = [line for line in lines if line not in self._numbers]
        if new:
            self._lines = self._torch.cat([self._lines, self._model.of_lines(new)])
            self._numbers |= {line: len(self._numbers) + k for k, line in enumerate(new)}


def text_encoder(file: str) -> TextEncoder:
    """The encoder with the weights of a file. Raises UsageError without a file, or for one that does not fit."""
    if not file:
        raise UsageError(f"no weights come with pdojo: make some with {COMMAND}, and take text-small:FILE.safetensors")
    return _encoder(file, changed(Path(file)))


@lru_cache(maxsize=1)
def _encoder(file: str, _changed: int) -> TextEncoder:
    """The encoder of a file, which is loaded once until it changes."""
    return TextEncoder(*load_model(Path(file)))
