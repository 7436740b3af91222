"""Random programs of views, changes in place and arithmetic, compiled and checked: PyTorch's results and aliases."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")


@pytest.fixture(autouse=True)
def _no_caches() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


VIEWS: tuple[Callable[[Any], Any], ...] = (
    lambda x: x.t() if x.dim() == 2 else x,
    lambda x: x.unsqueeze(0),
    lambda x: x[0] if x.dim() > 1 else x,
    lambda x: x[..., 1:] if x.dim() and x.shape[-1] > 2 else x,
    lambda x: x[..., ::2] if x.dim() else x,
    lambda x: x.reshape(-1),
    lambda x: x.permute(*reversed(range(x.dim()))),
    lambda x: x.expand(2, *x.shape) if x.dim() < 3 else x,
    lambda x: x.chunk(2, -1)[-1] if x.dim() and x.shape[-1] > 1 else x,
    lambda x: x.detach(),
    lambda x: x.transpose(0, -1) if x.dim() else x,
    lambda x: x.diagonal() if x.dim() == 2 else x,
)
POINTWISE: tuple[Callable[[Any, Any], Any], ...] = (
    lambda x, y: x + y,
    lambda x, y: x * 2 - y.sum(),
    lambda x, _: torch.relu(x),
    lambda x, _: torch.tanh(x),
    lambda x, y: torch.where(x > 0, x, y.sum()),
    lambda x, _: x.clone(),
    lambda x, _: x.contiguous(),
    lambda x, _: torch.softmax(x, -1) if x.dim() else x + 1,
    lambda x, _: x.sum(-1, keepdim=True) if x.dim() else x + 2,
    lambda x, _: torch.sinc(x),
    lambda x, y: torch.cat([x.reshape(-1), y.reshape(-1)]),
)
CHANGES: tuple[Callable[[Any, Any], Any], ...] = (
    lambda x, _: x.add_(1),
    lambda x, _: x.mul_(0.5),
    lambda x, y: x.copy_(y.sum()),
    lambda x, _: x.relu_(),
    lambda x, _: x.zero_(),
    lambda x, _: x[..., :1].add_(3) if x.dim() else x.add_(3),
)


def program(seed: int) -> Callable[..., tuple[Any, ...]]:
    """A function of two tensors that returns several, the same in every call."""

    def run(*inputs: Any) -> tuple[Any, ...]:
        draw = random.Random(seed)
        known = [*inputs]
        for _ in range(draw.randint(3, 8)):
            number, other = draw.randrange(len(known)), draw.randrange(len(known))
            x, y = known[number], known[other]
            match draw.choice("vvppc"):
                case "v":
                    known.append(draw.choice(VIEWS)(x))
                case "p" if x.shape == y.shape:
                    known.append(draw.choice(POINTWISE)(x, y))
                case "p":
                    known.append(draw.choice(POINTWISE[1:])(x, y))
                case _:
                    if not any(s == 0 and e > 1 for s, e in zip(x.stride(), x.shape, strict=True)):
                        draw.choice(CHANGES)(x, y)
        return tuple(known[k] for k in sorted(draw.sample(range(len(known)), k=min(4, len(known)))))

    return run


def layouts(draw: random.Random) -> list[Any]:
    made = (
        lambda: torch.randn(3, 4),
        lambda: torch.randn(4, 3).t(),
        lambda: torch.randn(3, 8)[:, ::2],
        lambda: torch.randn(13)[1:].view(3, 4),
        lambda: torch.randn(4),
    )
    return [draw.choice(made)() for _ in range(2)]


def seeds(metafunc: Any) -> range:
    return range(200) if metafunc.config.getoption("--slow") else range(6)


def pytest_generate_tests(metafunc: Any) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", seeds(metafunc))


@pytest.mark.filterwarnings("error::pdojo.torch.FallbackWarning")
def test_random_programs(seed: int) -> None:
    torch.manual_seed(seed)
    function = program(seed)
    left = layouts(random.Random(seed))
    right = copy.deepcopy(left)
    compiled = torch.compile(function, backend="pdojo", options={"tune": "none", "check": True})
    for _ in range(2):
        found, wanted = (*compiled(*left), *left), (*function(*right), *right)
        for ours, theirs in zip(found, wanted, strict=True):
            torch.testing.assert_close(ours, theirs)
            assert (ours.stride(), ours.storage_offset()) == (theirs.stride(), theirs.storage_offset())
        for first, second in combinations(range(len(found)), 2):
            assert _shared(found[first], found[second]) == _shared(wanted[first], wanted[second])


def _shared(a: Any, b: Any) -> bool:
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
