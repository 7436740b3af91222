"""Origin of results: the processor, and the version and commit of pdojo."""

from __future__ import annotations

import re
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeAlias

JSON: TypeAlias = dict[str, Any]

_NOISE = re.compile(r"\((R|TM|tm)\)|@.*|\b(CPU|Processor|AMD|Intel|\d+-Core)\b")
"""Parts of processors' names that do not distinguish them."""


def commit() -> JSON | None:
    """The checked-out commit, and whether files differ from it; None outside of a git repository."""
    folder = Path(__file__).parents[1]
    try:
        found = _git(folder, "rev-parse", "HEAD")
        changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return None
    return {"commit": found, "is_changed": bool(changes)}


def installed(package: str) -> str | None:
    """The version of a package; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git(folder: Path, *args: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *args], check=True, capture_output=True, text=True).stdout.strip()


def origin(settings: JSON) -> str:
    """Version, commit and date of a run, as far as its settings have them."""
    made = settings.get("commit")
    parts = [f"version {settings.get('environment', {}).get('pdojo') or 'unknown'}"]
    if made is None:
        parts.append("commit unknown")
    else:
        parts.append(f"commit {made['commit'][:12]}{' with changes' if made['is_changed'] else ''}")
    return ", ".join([*parts, str(settings.get("started", "date unknown"))[:10]])


def processor_of(settings: JSON) -> str | None:
    """The processor's name by the system; None if the settings have none."""
    return settings.get("environment", {}).get("processor")


def kind_of(processor: str) -> str:
    """The processor in file names: `AMD EPYC 9554 64-Core Processor` is `epyc-9554`."""
    words = re.findall(r"[a-z0-9.]+", _NOISE.sub(" ", processor).lower())
    return "-".join(words) or "unknown"
