"""All measured programs of a machine, for models over many kernels."""

from __future__ import annotations

from dataclasses import dataclass

from pdojo.search.database.database import Database


@dataclass(frozen=True)
class MeasuredCost:
    """A program with its cost."""

    problem: str
    """The hash of the plain kernel and the machine. Only costs of one problem are comparable."""
    label: str
    """The kernel's name for people."""
    text: str
    """The program in the notation."""
    cost: float


def measured_programs(database: Database, machine: str, evaluator: str) -> list[MeasuredCost]:
    """The programs with a cost by an evaluator, for machines of a name, in a fixed order.

    For a program measured under several settings of the evaluator, for example by another version, the latest counts.
    """
    rows = database.connection.rows(
        "SELECT DISTINCT q.hash AS problem, q.label, q.kernel, p.text, p.hash, m.cost, m.id FROM measurements m"
        " JOIN settings s ON s.id = m.settings JOIN machines d ON d.id = s.machine"
        " JOIN programs p ON p.id = m.program JOIN traces t ON t.program = p.id"
        " JOIN problems q ON q.id = t.problem AND q.machine = d.id"
        " WHERE d.name = ? AND s.evaluator = ? AND m.failure = '' AND m.cost > 0 ORDER BY m.id",
        machine,
        evaluator,
    )
    found = {
        (row["problem"], row["hash"]): MeasuredCost(
            row["problem"], row["label"] or row["kernel"], row["text"], row["cost"]
        )
        for row in rows
    }
    return list(found.values())
