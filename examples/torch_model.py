"""A small PyTorch model, compiled by `torch.compile` with pdojo's kernels.

python examples/torch_model.py
"""

from __future__ import annotations

from typing import Any

import torch


def net() -> tuple[Any, list[Any]]:
    """A module for inference, and inputs for it."""
    torch.manual_seed(0)
    layers = torch.nn.Linear(64, 32), torch.nn.GELU(), torch.nn.Linear(32, 10), torch.nn.Softmax(-1)
    return torch.nn.Sequential(*layers).eval(), [torch.randn(4, 64)]


def main() -> None:
    """Compile the model, compare it with PyTorch, and say what became of it."""
    import pdojo

    model, (x,) = net()
    fast = torch.compile(model, backend="pdojo")
    with torch.no_grad():
        error = (fast(x) - model(x)).abs().max().item()
        print(pdojo.torch.explain(model, x, options={"tune": "none"}))
    assert error < 1e-5, error
    print("the largest difference from PyTorch is below 1e-5")


if __name__ == "__main__":
    main()
