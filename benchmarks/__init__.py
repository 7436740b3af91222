"""Comparisons with other libraries, and the demo. Run from a checkout; not installed."""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

if find_spec("pdojo_tools") is None:
    # In a checkout that is not installed, the package is the folder `tools`.
    _folder = Path(__file__).parents[1] / "tools"
    _spec = spec_from_file_location("pdojo_tools", _folder / "__init__.py", submodule_search_locations=[str(_folder)])
    assert _spec is not None
    assert _spec.loader is not None
    sys.modules["pdojo_tools"] = module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules["pdojo_tools"])
