"""PyTorch: `torch.compile(model, backend="pdojo")`.

>>> import torch
>>> from pdojo.torch import explain
>>> explain(lambda x: torch.relu(x + 1), torch.ones(4, 8), options={"tune": "none"})
<Explanation of 1 graph: 1 kernel, 0 PyTorch calls, 0 graph breaks>
"""

from importlib.util import find_spec

from pdojo.errors import UsageError

if find_spec("torch") is None:
    raise UsageError("pdojo.torch needs PyTorch: pip install 'pdojo[torch]'")

from pdojo.torch.checking import WrongKernel
from pdojo.torch.compiling import compile
from pdojo.torch.explaining import Explanation, explain
from pdojo.torch.fallbacks import FallbackWarning
from pdojo.torch.statics import LateChangeWarning

__all__ = ["Explanation", "FallbackWarning", "LateChangeWarning", "WrongKernel", "compile", "explain"]
