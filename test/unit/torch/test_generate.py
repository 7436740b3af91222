"""`generate()` of language models: the tokens of PyTorch, and nothing planned for each length of the cache."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
transformers = pytest.importorskip("transformers", reason="needs transformers")

from pdojo.torch import backend
from pdojo.torch.planning import plan

SIZES = {"vocab_size": 40, "bos_token_id": 0, "eos_token_id": 0}


def gpt2() -> Any:
    config = transformers.GPT2Config(n_layer=2, n_embd=16, n_head=2, n_positions=64, **SIZES)
    return transformers.GPT2LMHeadModel(config)


def llama() -> Any:
    config = transformers.LlamaConfig(
        num_hidden_layers=2, hidden_size=16, num_attention_heads=4, num_key_value_heads=2, intermediate_size=32, **SIZES
    )
    return transformers.LlamaForCausalLM(config)


pytestmark = pytest.mark.usefixtures("no_caches")


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("make", [gpt2, llama])
def test_tokens(make: Any, cache: str, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prefill and decoding are planned while the first tokens are made; further tokens and calls plan nothing."""
    planned: list[int] = []

    def counted(*arguments: Any) -> Any:
        planned.append(length)
        return plan(*arguments)

    monkeypatch.setattr(backend, "plan", counted)
    model = make().eval()
    tokens, length = torch.randint(1, 40, (batch, 7)), 0
    options: dict[str, Any] = {"do_sample": False, "pad_token_id": 0}
    if cache == "static":
        options |= {"cache_implementation": "static", "disable_compile": True}

    def made(new: int) -> Any:
        return model.generate(tokens, max_new_tokens=new, min_new_tokens=new, **options)

    lengths = (4, 9, 9, 3) if cache == "dynamic" else (9, 9)
    with torch.no_grad():
        wanted = [made(length) for length in lengths]
        monkeypatch.setattr(model, "forward", torch.compile(model.forward, backend="pdojo", options={"tune": "none"}))
        for number, (length, right) in enumerate(zip(lengths, wanted, strict=True)):
            before = len(planned)
            assert torch.equal(made(length), right)
            assert number == 0 or len(planned) == before
    assert planned
