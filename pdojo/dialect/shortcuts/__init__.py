"""Faster ways to answers that `pdojo.dialect.flow` and `pdojo.dialect.rules` give exactly."""

from pdojo.dialect.flow.shortcut import Shortcut

SHORTCUTS = (
    Shortcut("digits", "collision", "pdojo.dialect.shortcuts.digits:apart"),
    Shortcut("guesses", "collision", "pdojo.dialect.shortcuts.digits:guessed"),
    Shortcut("guards", "collision", "pdojo.dialect.shortcuts.digits:excluded"),
    Shortcut("one iteration", "storage at first sight", "pdojo.dialect.shortcuts.iterations:kept"),
    Shortcut("first iterations", "storage", "pdojo.dialect.shortcuts.clobber:overwritten"),
    Shortcut("several writes", "storage", "pdojo.dialect.shortcuts.iterations:kept_together"),
    Shortcut("rings", "storage", "pdojo.dialect.shortcuts.rings:kept"),
    Shortcut("instances", "storage", "pdojo.dialect.shortcuts.instances:compared"),
    Shortcut("representatives", "storage", "pdojo.dialect.shortcuts.instances:compared_few"),
    Shortcut("single reads", "storage", "pdojo.dialect.shortcuts.single_reads:refuted"),
    Shortcut("obvious values", "value at first sight", "pdojo.dialect.shortcuts.values:obvious"),
    Shortcut("values of instances", "value", "pdojo.dialect.shortcuts.values:enumerated"),
    Shortcut("covered reads", "initialised", "pdojo.dialect.shortcuts.values:initialised"),
    Shortcut("whole writes"),
    Shortcut("exact copies"),
    Shortcut("memo"),
    Shortcut("excerpts"),
    Shortcut("layout"),
    Shortcut("promises"),
    Shortcut("same nodes"),
    Shortcut("deferred conditions"),
)
"""All shortcuts; those for one kind of question are asked in this order."""
