"""The paper's encoder: a transformer of the package `transformers` reads the program's text (paper 3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy

from pdojo.errors import UsageError
from pdojo.files import exists
from pdojo.perfllm.kept import Kept
from pdojo.perfllm.learner import Vector, import_torch
from pdojo.search.environment.actions import Action

BATCH = 32
"""Number of programs in a batch of the model."""
MOST_TOKENS = 2048
"""Greatest number of tokens of a program, unless the model's own limit is lower; further tokens are cut off."""


class TransformerEncoder:
    """The mean of the last hidden states of a model, over the tokens of a program.

    `model` is a folder, or the name of a model in the cache of `transformers`: nothing is downloaded, and no code of a
    model runs. Raises UsageError if packages or the model are missing, or the model cannot read programs. It runs in
    bfloat16, on the GPU if PyTorch has one, and vectors are kept on disk (`Kept`).
    """

    def __init__(self, model: str, cache: Path | None = None) -> None:
        if not model:
            raise UsageError("name the model: --encoder hf:FOLDER, or hf:NAME of a model that is here already")
        self._torch = torch = import_torch()
        try:
            from transformers import AutoModel, AutoTokenizer
        except ImportError:
            raise UsageError("the encoder 'hf' needs transformers: pip install 'pdojo[learn]'") from None
        # Loading a folder's code would need consent, and is refused; weights are not unpickled.
        safe = {"trust_remote_code": False, "local_files_only": True}
        try:
            self._tokenizer = AutoTokenizer.from_pretrained(model, **safe)
            self._model = AutoModel.from_pretrained(model, dtype=torch.bfloat16, weights_only=True, **safe)
            self._prepare()
        except Exception as error:  # noqa: BLE001  # transformers and each model have errors of their own
            raise UsageError(_reason(model, error)) from None
        self._kept = Kept(self.name, self.size, cache)

    def _prepare(self) -> None:
        """Load tokenizer and model, and encode a text to learn the vectors' length. Raises the model's errors."""
        torch = self._torch
        if self._tokenizer.pad_token is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token
        if self._tokenizer.pad_token is None:
            raise UsageError("its tokenizer has neither a padding nor an end token")
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        # Only the hidden states are used, of encoders and decoders alike.
        self._model.to(self._device).eval()
        limit = min(MOST_TOKENS, self._tokenizer.model_max_length)
        positions: Any = getattr(self._model.config, "max_position_embeddings", None)
        self._limit = min(limit, positions) if positions else limit
        self.name = f"hf {_identity(self._model, self._limit)}"
        self.size = len(self._read(["kernel"])[0])

    def encode(self, programs: Sequence[Action]) -> list[Vector]:
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


def _reason(model: str, error: Exception) -> str:
    if not exists(model):
        return f"cannot load the model '{model}': nothing has that name here; give the folder of a model"
    first = next(iter(str(error).strip().splitlines()), type(error).__name__)
    return f"cannot load the model '{model}': {first}; give the folder of a model (its own code is never run)"


@lru_cache(maxsize=1)
def transformer_encoder(model: str) -> TransformerEncoder:
    """The encoder of a model, which is loaded once."""
    return TransformerEncoder(model)


def _identity(model: Any, limit: int) -> str:
    """A hash of the weights and of the token limit, since a folder's name does not identify its contents."""
    digest = sha256(str(limit).encode())
    for name, weights in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(weights.float().cpu().numpy().tobytes())
    return digest.hexdigest()[:16]
