"""`pdojo.torch.compile`: compiled before the first call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch

from pdojo.torch.backend import backend
from pdojo.torch.options import Options
from pdojo.torch.skipping import warn_of_skipped_functions

_F = TypeVar("_F", bound=Callable[..., Any])


def compile(module_or_function: _F, example_inputs: Sequence[Any], **options: Any) -> _F:
    """`torch.compile(module_or_function, backend="pdojo", options=options)`, with the kernels made now.

    It is called once with the example inputs, in which effects of a call, such as new running averages of a module in
    training, take place. The options are those of `pdojo.torch.options.Options` (docs/torch.md).

    Raises UsageError for an unknown option or a wrong value, and whatever the module raises.

    >>> import torch
    >>> from pdojo.torch import compile
    >>> double = compile(lambda x: x + x, [torch.ones(3)], tune="none")
    >>> double(torch.ones(3))
    tensor([2., 2., 2.])
    """
    Options.of(options)
    warn_of_skipped_functions(backend)
    if isinstance(example_inputs, torch.Tensor):
        example_inputs = (example_inputs,)
    compiled: Any = torch.compile(module_or_function, backend="pdojo", options=options)
    with torch.random.fork_rng(devices=[]):
        compiled(*example_inputs)
    return compiled
