"""The network of `text-small`: a transformer reads each line once, another one the lines of a program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pdojo.errors import UsageError
from pdojo.search.perfllm.learner import import_torch
from pdojo.search.perfllm.schema import Schema, check
from pdojo.search.perfllm.text.tokens import Line, vocabulary

BATCH_TOKENS = 1 << 13
"""Most tokens, with padding, that are read at once."""


@dataclass(frozen=True)
class Shape:
    """The size of the network. Raises UsageError if it is impossible."""

    width: int = 96
    """Numbers of a line's vector, and of a program's."""
    heads: int = 4
    line_layers: int = 2
    program_layers: int = 2

    def __post_init__(self) -> None:
        check(asdict(self), _SIZES)
        if self.width % 2 or self.width % self.heads:
            raise UsageError(f"a width of {self.width} is odd, or no multiple of {self.heads} heads")


_SIZES = {"width": range(2, 4097), "heads": range(1, 257), "line_layers": range(1, 65), "program_layers": range(1, 65)}


class TextModel:
    """Vectors of lines, and of programs from those of their lines. Weights are random until they are loaded.

    The mean and the maximum over the tokens make a line's vector, those over the lines a program's.
    """

    def __init__(self, shape: Shape, seed: int = 0) -> None:
        self.shape = shape
        self._torch = torch = import_torch()
        nn, width = torch.nn, shape.width
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.parts = nn.ModuleDict(
                {
                    "tokens": nn.Embedding(len(vocabulary()), width, padding_idx=0),
                    "line": self._transformer(shape.line_layers),
                    "line_out": nn.Linear(2 * width, width),
                    "program": self._transformer(shape.program_layers),
                    "program_out": nn.Linear(2 * width, width),
                }
            )

    def _transformer(self, layers: int) -> Any:
        nn, width = self._torch.nn, self.shape.width
        layer = nn.TransformerEncoderLayer(
            width, self.shape.heads, 2 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        return nn.TransformerEncoder(layer, layers, nn.LayerNorm(width), enable_nested_tensor=False)

    @staticmethod
    def schema(shape: Shape) -> Schema:
        """The schema of the weights. A network of that shape is not made."""
        with import_torch().device("meta"):
            return TextModel(shape).parts.state_dict()

    def of_lines(self, lines: Sequence[Line]) -> Any:
        """Vectors [lines, width]."""
        torch = self._torch
        order = sorted(range(len(lines)), key=lambda k: len(lines[k]))
        found = [self._of_some([lines[k] for k in part]) for part in _parts(order, [len(line) for line in lines])]
        back = torch.empty(len(order), dtype=torch.long)
        back[torch.tensor(order)] = torch.arange(len(order))
        return torch.cat(found)[back]

    def _of_some(self, lines: Sequence[Line]) -> Any:
        longest = max(map(len, lines))
        tokens = self._torch.tensor([[*line, *(0,) * (longest - len(line))] for line in lines])
        return self._pooled("line", self.parts["tokens"](tokens), tokens == 0)

    def of_programs(self, lines: Any, programs: Sequence[Sequence[int]]) -> Any:
        """Vectors [programs, width] of programs, each given by its lines' numbers in `lines` [lines, width]."""
        longest = max(map(len, programs))
        index = self._torch.tensor([[*program, *(-1,) * (longest - len(program))] for program in programs])
        return self._pooled("program", lines[index.clamp(min=0)], index < 0)

    def _pooled(self, part: str, inputs: Any, absent: Any) -> Any:
        """Vectors [n, width] of sequences `inputs` [n, length, width], of which some places are `absent`."""
        torch = self._torch
        hidden = self.parts[part](inputs + self._positions(inputs.shape[1]), src_key_padding_mask=absent)
        mask = absent[:, :, None]
        mean = hidden.masked_fill(mask, 0.0).sum(1) / (~mask).sum(1)
        most = hidden.masked_fill(mask, -torch.inf).amax(1)
        return self.parts[f"{part}_out"](torch.cat([mean, most], dim=1))

    def _positions(self, length: int) -> Any:
        """Sines and cosines [length, width] (Vaswani et al., 2017, section 3.5), for sequences of any length."""
        torch, width = self._torch, self.shape.width
        rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
        angles = torch.arange(length)[:, None] * rates
        return torch.cat([angles.sin(), angles.cos()], dim=1)


def _parts(order: Sequence[int], lengths: Sequence[int]) -> list[list[int]]:
    """The order, cut so that no part has more than `BATCH_TOKENS` when padded; a sequence is in one part."""
    parts: list[list[int]] = []
    for k in order:
        if not parts or (len(parts[-1]) + 1) * lengths[k] > BATCH_TOKENS:
            parts.append([])
        parts[-1].append(k)
    return parts
