"""Tuning by kinds of machine."""

from pdojo.search.targets.target import EvaluatorKind, ExpertPass, OpenPass, Target, target_of

__all__ = ["EvaluatorKind", "ExpertPass", "OpenPass", "Target", "target_of"]
