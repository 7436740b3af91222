"""Models with random weights, from configurations of `transformers` and from plain modules of PyTorch.

`python -m benchmarks.programs models` measures them beside PyTorch (eager) and `torch.compile`, with and without
freezing of weights. Nothing is downloaded. Sizes are such that two cores run a model in 10 to 300 ms.
"""

# PyTorch need not be installed, and its functions take anything.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.torch_cases import EAGER, FREEZING, INDUCTOR, ROUNDS, Case, chosen
from benchmarks.torch_cases import measure as measure_case


def _seeded(make: Callable[[], Case]) -> Case:
    """A case whose weights and arguments are always the same."""
    torch.manual_seed(0)
    case = make()
    if isinstance(case.function, nn.Module):
        case.function.eval()
        _give_statistics(case.function)
    return case


def _give_statistics(module: nn.Module) -> None:
    """Random running statistics, which new modules do not have."""
    for each in module.modules():
        if isinstance(each, nn.BatchNorm2d) and each.running_mean is not None and each.running_var is not None:
            each.running_mean.normal_(0, 0.1)
            each.running_var.uniform_(0.5, 1.5)


def _tokens(vocabulary: int, *shape: int) -> Tensor:
    return torch.randint(0, vocabulary, shape)


def _bert(batch: int = 1, length: int = 128) -> Case:
    from transformers import BertConfig, BertModel

    config = BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=6, intermediate_size=1536)
    mask = torch.ones(batch, length, dtype=torch.int64)
    mask[:, -length // 8 :] = 0
    return Case(_Outputs(BertModel(config)), (_tokens(config.vocab_size, batch, length), mask))


def _gpt2(length: int = 128) -> Case:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_embd=384, n_layer=6, n_head=6, vocab_size=5000)
    return Case(_Outputs(GPT2LMHeadModel(config), use_cache=False), (_tokens(config.vocab_size, 1, length),))


def _gpt2_with_cache(past: int = 255) -> Case:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_embd=768, n_layer=8, n_head=12, vocab_size=5000)
    shape = (1, config.n_head, past, config.n_embd // config.n_head)
    cache = [(torch.randn(shape), torch.randn(shape)) for _ in range(config.n_layer)]
    return Case(_WithCache(GPT2LMHeadModel(config)), (_tokens(config.vocab_size, 1, 1), cache))


def _llama(length: int = 128) -> Case:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=512,
        intermediate_size=1408,
        num_hidden_layers=4,
        num_attention_heads=8,
        num_key_value_heads=2,
        vocab_size=4000,
        max_position_embeddings=1024,
    )
    return Case(_Outputs(LlamaForCausalLM(config), use_cache=False), (_tokens(config.vocab_size, 1, length),))


def _vit() -> Case:
    from transformers import ViTConfig, ViTModel

    config = ViTConfig(hidden_size=192, num_hidden_layers=6, num_attention_heads=3, intermediate_size=768)
    return Case(_Outputs(ViTModel(config)), (torch.randn(1, 3, 224, 224),))


def _convnext() -> Case:
    from transformers import ConvNextConfig, ConvNextModel

    config = ConvNextConfig(hidden_sizes=[48, 96, 192, 384], depths=[2, 2, 4, 2])
    return Case(_Outputs(ConvNextModel(config)), (torch.randn(1, 3, 160, 160),))


def _resnet() -> Case:
    from transformers import ResNetConfig, ResNetModel

    config = ResNetConfig(embedding_size=64, hidden_sizes=[64, 128, 256, 512], depths=[2, 2, 2, 2], layer_type="basic")
    return Case(_Outputs(ResNetModel(config)), (torch.randn(1, 3, 160, 160),))


def _mobilenet() -> Case:
    from transformers import MobileNetV2Config, MobileNetV2Model

    return Case(_Outputs(MobileNetV2Model(MobileNetV2Config())), (torch.randn(1, 3, 192, 192),))


def _swin() -> Case:
    from transformers import SwinConfig, SwinModel

    config = SwinConfig(image_size=160, window_size=5, embed_dim=48, depths=[2, 2, 2], num_heads=[3, 6, 12])
    return Case(_Outputs(SwinModel(config)), (torch.randn(1, 3, 160, 160),))


def _whisper() -> Case:
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = WhisperConfig(
        d_model=256, encoder_layers=4, encoder_attention_heads=4, encoder_ffn_dim=1024, max_source_positions=300
    )
    return Case(_Outputs(WhisperEncoder(config)), (torch.randn(1, config.num_mel_bins, 600),))


class _Outputs(nn.Module):
    """A model of `transformers`, with a tuple as its result."""

    def __init__(self, model: nn.Module, **keywords: Any) -> None:
        super().__init__()
        self.model = model
        self.keywords = keywords

    def forward(self, *arguments: Tensor) -> tuple[Any, ...]:
        return self.model(*arguments, return_dict=False, **self.keywords)


class _WithCache(nn.Module):
    """A model that continues a text of which it has the keys and the values."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor, cache: list[tuple[Tensor, Tensor]]) -> list[Tensor]:
        from transformers import DynamicCache

        known: Any = DynamicCache(cache)
        logits: Tensor = self.model(tokens, past_key_values=known, use_cache=True).logits
        return [logits, *(each for layer in known.layers for each in (layer.keys, layer.values))]


def _mlp(width: int = 1024) -> Case:
    layers: list[nn.Module] = []
    for _ in range(4):
        layers += [nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width)]
    return Case(nn.Sequential(*layers, nn.Linear(width, 100)), (torch.randn(256, width),))


class _Recurrent(nn.Module):
    """Steps of an LSTM cell."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(width, width)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden = cell = torch.zeros(x.shape[1], x.shape[2], dtype=x.dtype)
        for each in x:
            hidden, cell = self.cell(each, (hidden, cell))
        return hidden, cell


class _UNet(nn.Module):
    """One level of a U-Net: down, a bottleneck, up again, with a connection around it."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.before = self._block(channels, channels)
        self.down = nn.Conv2d(channels, 2 * channels, 3, 2, 1)
        self.middle = self._block(2 * channels, 2 * channels)
        self.up = nn.ConvTranspose2d(2 * channels, channels, 2, 2)
        self.after = self._block(2 * channels, channels)

    @staticmethod
    def _block(channels: int, results: int) -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(channels, results, 3, padding=1),
            nn.GroupNorm(8, results),
            nn.SiLU(),
            nn.Conv2d(results, results, 3, padding=1),
            nn.BatchNorm2d(results),
            nn.ReLU(),
        )

    def forward(self, x: Tensor) -> Tensor:
        whole = self.before(x)
        half = self.middle(self.down(whole))
        wide = nn.functional.interpolate(half, scale_factor=2.0, mode="nearest")[:, ::2] + self.up(half)
        return self.after(torch.cat((whole, wide), 1))


class _Mixture(nn.Module):
    """A mixture of experts: every expert gets all tokens, weighted by a softmax of which two are kept."""

    def __init__(self, width: int, experts: int) -> None:
        super().__init__()
        self.route = nn.Linear(width, experts)
        self.first = nn.Parameter(torch.randn(experts, width, 2 * width) / width**0.5)
        self.second = nn.Parameter(torch.randn(experts, 2 * width, width) / width**0.5)

    def forward(self, x: Tensor) -> Tensor:
        scores = torch.softmax(self.route(x), -1)
        second = scores.masked_fill(scores == scores.amax(-1, keepdim=True), 0).amax(-1, keepdim=True)
        weights = torch.where(scores >= second, scores, 0)
        hidden = nn.functional.silu(torch.einsum("td,edh->eth", x, self.first))
        return x + torch.einsum("eth,ehd,te->td", hidden, self.second, weights / weights.sum(-1, keepdim=True))


MAKERS: dict[str, Callable[[], Case]] = {
    "bert": _bert,
    "bert, batch 4": partial(_bert, 4, 64),
    "gpt2": _gpt2,
    "gpt2, cache": _gpt2_with_cache,
    "llama": _llama,
    "vit": _vit,
    "convnext": _convnext,
    "resnet": _resnet,
    "mobilenet": _mobilenet,
    "swin": _swin,
    "whisper encoder": _whisper,
    "mlp": _mlp,
    "lstm cell": lambda: Case(_Recurrent(384), (torch.randn(24, 16, 384),)),
    "unet": lambda: Case(_UNet(32), (torch.randn(1, 32, 64, 64),)),
    "mixture": lambda: Case(_Mixture(256, 8), (torch.randn(128, 256),)),
}
CASES = {name: partial(_seeded, make) for name, make in MAKERS.items()}
names = partial(chosen, CASES)


def measure(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Rows and notes of a model."""
    torch.set_num_threads(asked["threads"])
    return measure_case(CASES[asked["case"]](), (EAGER, INDUCTOR, FREEZING), asked.get("rounds", ROUNDS))
