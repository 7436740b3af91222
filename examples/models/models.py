"""Two small models of PyTorch for a C library: digits in images, and text, one letter at a time with a cache.

They are trained when they are made, in seconds; `pdojo-lib build examples/models/spec.toml -o dist` runs this file.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

FONT = (
    "01110 10001 10011 10101 11001 10001 01110",
    "00100 01100 00100 00100 00100 00100 01110",
    "01110 10001 00001 00010 00100 01000 11111",
    "11111 00010 00100 00010 00001 10001 01110",
    "00010 00110 01010 10010 11111 00010 00010",
    "11111 10000 11110 00001 00001 10001 01110",
    "00110 01000 10000 11110 10001 10001 01110",
    "11111 00001 00010 00100 01000 01000 01000",
    "01110 10001 10001 01110 10001 10001 01110",
    "01110 10001 10001 01111 00001 00010 01100",
)
"""The digits, as rows of points."""
TEXT = "the quick brown fox jumps over the lazy dog; "
LETTERS = "".join(sorted(set(TEXT)))
LENGTH, WIDTH, HEADS = 64, 32, 2


def digits() -> tuple[nn.Module, list[Tensor]]:
    """A convolutional network for images [1, 1, 7, 5], with the scores of ten digits as its result."""
    torch.manual_seed(0)
    images = torch.tensor([[[float(p) for p in row] for row in digit.split()] for digit in FONT])[:, None]
    net = nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(16 * 35, 10)),
    )
    optimiser = torch.optim.Adam(net.parameters(), 0.01)
    for _ in range(150):
        optimiser.zero_grad()
        loss = functional.cross_entropy(net(images + 0.3 * torch.randn_like(images)), torch.arange(10))
        loss.backward()
        optimiser.step()
    return net.eval(), [images[:1]]


class Writer(nn.Module):
    """A Transformer of one layer that reads one letter a call; keys and values of earlier ones are in a cache."""

    def __init__(self) -> None:
        super().__init__()
        self.letters, self.places = nn.Embedding(len(LETTERS), WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.qkv, self.joined = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.inner, self.outer = nn.Linear(WIDTH, 64), nn.Linear(64, WIDTH)
        self.scores = nn.Linear(WIDTH, len(LETTERS))

    def forward(self, letter: Tensor, place: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The scores [letters] of the next letter, and the caches [heads, length, width] with the new place.

        `letter` and `place` have one element.
        """
        x = self.letters(letter) + self.places(place)
        q, k, v = (each.reshape(1, HEADS, -1).transpose(0, 1) for each in self.qkv(x).chunk(3, -1))
        keys, values = keys.index_copy(1, place, k), values.index_copy(1, place, v)
        weights = q @ keys.transpose(1, 2) / (WIDTH // HEADS) ** 0.5
        weights = weights.masked_fill(torch.arange(LENGTH) > place, float("-inf")).softmax(-1)
        x = x + self.joined((weights @ values).transpose(0, 1).reshape(1, WIDTH))
        x = x + self.outer(torch.relu(self.inner(x)))
        return self.scores(x)[0], keys, values

    def all(self, letters: Tensor) -> Tensor:
        """The scores [places, letters] after each of the letters, for training."""
        count = len(letters)
        x = self.letters(letters) + self.places(torch.arange(count))
        q, k, v = (each.reshape(count, HEADS, -1).transpose(0, 1) for each in self.qkv(x).chunk(3, -1))
        x = x + self.joined(
            functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(0, 1).reshape(count, WIDTH)
        )
        return self.scores(x + self.outer(torch.relu(self.inner(x))))


def writer() -> tuple[nn.Module, list[Tensor]]:
    """A writer of one sentence."""
    torch.manual_seed(0)
    net, letters = Writer(), torch.tensor([LETTERS.index(letter) for letter in TEXT])
    optimiser = torch.optim.Adam(net.parameters(), 0.01)
    for _ in range(200):
        optimiser.zero_grad()
        functional.cross_entropy(net.all(letters[:-1]), letters[1:]).backward()
        optimiser.step()
    cache = torch.zeros(HEADS, LENGTH, WIDTH // HEADS)
    return net.eval(), [letters[:1], torch.zeros(1, dtype=torch.int64), cache, cache.clone()]
