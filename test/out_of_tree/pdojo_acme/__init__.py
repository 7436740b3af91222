"""Acme's additions to pdojo."""

from pathlib import Path

ACME_1 = Path(__file__).parent / "acme-1.toml"
"""The description of Acme's processor."""
ACME_2 = Path(__file__).parent / "acme-2.toml"
"""The description of Acme's accumulator machine."""
