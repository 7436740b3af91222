"""The paper's encoder: a transformer of the package `transformers` reads the program's text (paper 3.1)."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy

from pdojo.errors import UsageError
from pdojo.files import cache_folder
from pdojo.search.environment.offers import Offer
from pdojo.search.perfllm.learner import Vector, import_torch

BATCH = 32
"""Programs that the model reads at once."""
MOST_TOKENS = 2048
"""Tokens of a program that are read, where the model's own limit is not lower; the others are cut off."""


class TransformerEncoder:
    """The mean of the last hidden states of a model, over the tokens of a program.

    `model` is a folder, or a name that `transformers` finds. Raises UsageError if packages or the model are missing.
    The model runs in bfloat16, on the GPU if PyTorch has one, and vectors are kept on disk (`Kept`).
    """

    def __init__(self, model: str, cache: Path | None = None) -> None:
        if not model:
            raise UsageError("name the model: --encoder hf:FOLDER, or hf:NAME of a model that is here already")
        self._torch = torch = import_torch()
        try:
            from transformers import AutoModel, AutoTokenizer
        except ImportError:
            raise UsageError("the encoder 'hf' needs transformers: pip install 'pdojo[learn]'") from None
        try:
            self._tokenizer = AutoTokenizer.from_pretrained(model)
            self._model = AutoModel.from_pretrained(model, dtype=torch.bfloat16)
        except (OSError, ValueError) as error:
            reason = str(error).strip().splitlines()[0]
            raise UsageError(f"cannot load the model '{model}': {reason}; give the folder of a model") from None
        if self._tokenizer.pad_token is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token
        if self._tokenizer.pad_token is None:
            raise UsageError(f"the tokenizer of '{model}' has neither a padding nor an end token")
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        # Encoders and decoders alike are used for their hidden states only.
        self._model.to(self._device).eval()
        limit = min(MOST_TOKENS, self._tokenizer.model_max_length)
        positions: Any = getattr(self._model.config, "max_position_embeddings", None)
        self._limit = min(limit, positions) if positions else limit
        self.name = f"hf {_identity(self._model, self._limit)}"
        self._kept = Kept(self.name, cache)

    def encode(self, programs: Sequence[Offer]) -> list[Vector]:
        """Pooled hidden states, in batches of texts of similar length."""
        texts = [one.text for one in programs]
        known = self._kept.of(texts)
        missing = sorted({text for text in texts if text not in known}, key=lambda text: (len(text), text))
        for start in range(0, len(missing), BATCH):
            part = missing[start : start + BATCH]
            found = dict(zip(part, self._read(part), strict=True))
            self._kept.add(found)
            known |= found
        return [known[text] for text in texts]

    def _read(self, texts: Sequence[str]) -> list[Vector]:
        torch = self._torch
        tokens = self._tokenizer(
            list(texts), return_tensors="pt", padding=True, truncation=True, max_length=self._limit
        ).to(self._device)
        with torch.inference_mode():
            hidden = self._model(**tokens).last_hidden_state.float()
            mask = tokens["attention_mask"].unsqueeze(-1).float()
            pooled = (hidden * mask).sum(1) / mask.sum(1)
        return list(pooled.cpu().numpy().astype(numpy.float32))


@lru_cache(maxsize=1)
def transformer_encoder(model: str) -> TransformerEncoder:
    """The encoder of a model, which is loaded once."""
    return TransformerEncoder(model)


class Kept:
    """Vectors on disk, by encoder and text: `embeddings.sqlite` in pdojo's cache, or in `folder`.

    Several processes may use it at once.
    """

    def __init__(self, encoder: str, folder: Path | None = None) -> None:
        self._encoder = encoder
        place = cache_folder("perfllm") if folder is None else folder
        place.mkdir(parents=True, exist_ok=True)
        self._file = place / "embeddings.sqlite"
        with self._opened() as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL)")

    @contextmanager
    def _opened(self) -> Generator[sqlite3.Connection]:
        """The file during one transaction."""
        with closing(sqlite3.connect(self._file, timeout=60)) as connection:
            connection.execute("PRAGMA synchronous = NORMAL")
            with connection:
                yield connection

    def of(self, texts: Sequence[str]) -> dict[str, Vector]:
        """The vectors that are there."""
        found: dict[str, Vector] = {}
        with self._opened() as connection:
            for text in dict.fromkeys(texts):
                row = connection.execute("SELECT vector FROM vectors WHERE key = ?", (self._key(text),)).fetchone()
                if row is not None:
                    found[text] = numpy.frombuffer(row[0], dtype=numpy.float32)
        return found

    def add(self, vectors: dict[str, Vector]) -> None:
        """Keep vectors."""
        rows = [(self._key(text), vector.tobytes()) for text, vector in vectors.items()]
        with self._opened() as connection:
            connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)

    def _key(self, text: str) -> bytes:
        return sha256(f"{self._encoder}\n{text}".encode()).digest()


def _identity(model: Any, limit: int) -> str:
    """A hash of the weights and of the longest text: a folder's name says nothing about what is in it."""
    digest = sha256(str(limit).encode())
    for name, weights in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(weights.float().cpu().numpy().tobytes())
    return digest.hexdigest()[:16]
