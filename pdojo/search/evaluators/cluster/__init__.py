"""Costs from many machines: the runtime evaluator in actors of a Ray cluster. See docs/cluster.md.

Only `connection` imports Ray, and only when it connects.
"""

from pdojo.search.evaluators.cluster.connection import Connection
from pdojo.search.evaluators.cluster.evaluator import OnCluster
from pdojo.search.evaluators.cluster.pool import Cluster

__all__ = ["Cluster", "Connection", "OnCluster"]
