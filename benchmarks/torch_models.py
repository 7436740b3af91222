"""Models with random weights, from configurations of `transformers` and from plain modules of PyTorch.

`python -m benchmarks.programs models` measures them beside PyTorch (eager) and `torch.compile`, with and without
freezing of weights. Nothing is downloaded. Sizes are those of the models that people use.
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


def _images(batch: int) -> tuple[Tensor]:
    return (torch.randn(batch, 3, 224, 224),)


def _resnet18(batch: int) -> Case:
    from transformers import ResNetConfig, ResNetModel

    config = ResNetConfig(embedding_size=64, hidden_sizes=[64, 128, 256, 512], depths=[2, 2, 2, 2], layer_type="basic")
    return Case(_Outputs(ResNetModel(config)), _images(batch))


def _resnet50(batch: int) -> Case:
    from transformers import ResNetConfig, ResNetModel

    return Case(_Outputs(ResNetModel(ResNetConfig())), _images(batch))


def _convnext(batch: int) -> Case:
    from transformers import ConvNextConfig, ConvNextModel

    return Case(_Outputs(ConvNextModel(ConvNextConfig())), _images(batch))


def _mobilenet(batch: int) -> Case:
    from transformers import MobileNetV2Config, MobileNetV2Model

    return Case(_Outputs(MobileNetV2Model(MobileNetV2Config())), _images(batch))


def _efficientnet(batch: int) -> Case:
    from transformers import EfficientNetConfig, EfficientNetModel

    config = EfficientNetConfig(image_size=224, width_coefficient=1.0, depth_coefficient=1.0, hidden_dim=1280)
    return Case(_Outputs(EfficientNetModel(config)), _images(batch))


def _swin(batch: int) -> Case:
    from transformers import SwinConfig, SwinModel

    return Case(_Outputs(SwinModel(SwinConfig())), _images(batch))


def _vit(batch: int) -> Case:
    from transformers import ViTConfig, ViTModel

    config = ViTConfig(hidden_size=384, num_hidden_layers=12, num_attention_heads=6, intermediate_size=1536)
    return Case(_Outputs(ViTModel(config)), _images(batch))


def _segformer(batch: int) -> Case:
    from transformers import SegformerConfig, SegformerModel

    return Case(_Outputs(SegformerModel(SegformerConfig())), _images(batch))


def _bert(batch: int, length: int = 128) -> Case:
    from transformers import BertConfig, BertModel

    config = BertConfig()
    mask = torch.ones(batch, length, dtype=torch.int64)
    mask[:, -length // 8 :] = 0
    return Case(_Outputs(BertModel(config)), (_tokens(config.vocab_size, batch, length), mask))


def _t5(batch: int, length: int = 128) -> Case:
    from transformers import T5Config, T5EncoderModel

    config = T5Config()
    return Case(_Outputs(T5EncoderModel(config)), (_tokens(config.vocab_size, batch, length),))


def _gpt2(batch: int, length: int = 128) -> Case:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config()
    return Case(_Outputs(GPT2LMHeadModel(config), use_cache=False), (_tokens(config.vocab_size, batch, length),))


def _gpt2_with_cache(batch: int, past: int = 255) -> Case:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config()
    shape = (batch, config.n_head, past, config.n_embd // config.n_head)
    cache = [(torch.randn(shape), torch.randn(shape)) for _ in range(config.n_layer)]
    return Case(_WithCache(GPT2LMHeadModel(config)), (_tokens(config.vocab_size, batch, 1), cache))


def _llama(batch: int, length: int = 128) -> Case:
    from transformers import LlamaConfig, LlamaForCausalLM

    # The sizes of SmolLM-135M.
    config = LlamaConfig(
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        vocab_size=49152,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
    )
    return Case(_Outputs(LlamaForCausalLM(config), use_cache=False), (_tokens(config.vocab_size, batch, length),))


def _whisper(batch: int) -> Case:
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    # The encoder of whisper-base.
    config = WhisperConfig(d_model=512, encoder_layers=6, encoder_attention_heads=8, encoder_ffn_dim=2048)
    return Case(_Outputs(WhisperEncoder(config)), (torch.randn(batch, config.num_mel_bins, 3000),))


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


def _narrow(make: Callable[[int], Case]) -> Case:
    """A case in bfloat16, with a batch of one."""
    case = make(1)
    assert isinstance(case.function, nn.Module)
    arguments = [each.bfloat16() if each.is_floating_point() else each for each in case.arguments]
    return Case(case.function.bfloat16(), tuple(arguments))


MODELS: dict[str, Callable[[int], Case]] = {
    "resnet18": _resnet18,
    "resnet50": _resnet50,
    "convnext": _convnext,
    "mobilenet": _mobilenet,
    "efficientnet": _efficientnet,
    "swin": _swin,
    "vit": _vit,
    "segformer": _segformer,
    "unet": lambda batch: Case(_UNet(64), (torch.randn(batch, 64, 64, 64),)),
    "bert": _bert,
    "t5 encoder": _t5,
    "gpt2": _gpt2,
    "gpt2, cache": _gpt2_with_cache,
    "llama": _llama,
    "whisper encoder": _whisper,
}
"""Makers of models in the sizes that people use, for a batch."""
NARROW = ("resnet50", "vit", "bert", "gpt2", "llama")
"""Models that are measured in bfloat16, too."""
CASES: dict[str, Callable[[], Case]] = {
    **{name: partial(_seeded, partial(make, 1)) for name, make in MODELS.items()},
    **{f"{name}, batch 8": partial(_seeded, partial(make, 8)) for name, make in MODELS.items()},
    **{f"{name}, bf16": partial(_seeded, partial(_narrow, MODELS[name])) for name in NARROW},
    "mlp": lambda: _seeded(_mlp),
    "lstm cell": lambda: _seeded(lambda: Case(_Recurrent(384), (torch.randn(24, 16, 384),))),
    "mixture": lambda: _seeded(lambda: Case(_Mixture(256, 8), (torch.randn(128, 256),))),
}
names = partial(chosen, CASES)


def measure(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Rows and notes of a model."""
    torch.set_num_threads(asked["threads"])
    return measure_case(CASES[asked["case"]](), (EAGER, INDUCTOR, FREEZING), asked.get("rounds", ROUNDS))
