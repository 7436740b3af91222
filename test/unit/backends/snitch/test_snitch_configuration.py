"""The simulator's configuration for a machine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pdojo.backends.snitch.configuration import configuration_of
from pdojo.dialect.machines.registry import machine
from pdojo.errors import UsageError
from pdojo.snitch_sim.simulator import Configuration
from snitch_programs import OLD


def test_configurations_follow_machine_descriptions() -> None:
    assert configuration_of(machine("snitch")) == Configuration(division=False)
    assert configuration_of(machine("snitch-2024")) == replace(OLD, division=False)
    divides = replace(machine("snitch"), features=("d", "xdiv_sqrt"))
    assert configuration_of(divides) == Configuration()
    with pytest.raises(UsageError, match="has no streams"):
        configuration_of(machine("x86-64-avx2"))
