"""Tuning by kinds of machine."""

from pdojo.search.targets.target import EvaluatorKind, ExpertPass, Target, target_of

__all__ = ["EvaluatorKind", "ExpertPass", "Target", "target_of"]
