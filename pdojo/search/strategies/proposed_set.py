"""Programs that a search has proposed or evaluated, so that strategies propose new ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pdojo.search.contract.node import Node, Proposal


class ProposedSet:
    """The fingerprints of evaluated and of proposed programs."""

    def __init__(self, root: Node) -> None:
        self._evaluated = {root.fingerprint}
        self._asked: set[str] = set()
        self.latest = root.number
        """Number of the latest evaluation."""

    @property
    def asked(self) -> int:
        """Number of new programs that were proposed and not told yet."""
        return len(self._asked)

    def told(self, node: Node) -> None:
        """Mark a program as evaluated."""
        self._asked.discard(node.fingerprint)
        self._evaluated.add(node.fingerprint)
        self.latest = max(self.latest, node.number)

    def restore(self, nodes: Iterable[Node]) -> None:
        """Mark programs as evaluated, after `start`."""
        for node in nodes:
            self._evaluated.add(node.fingerprint)
            self.latest = max(self.latest, node.number)

    def forget(self, proposal: Proposal) -> None:
        """Withdraw a proposal."""
        self._asked.discard(proposal.game.fingerprint)

    def __contains__(self, proposal: Proposal) -> bool:
        fingerprint = proposal.game.fingerprint
        return fingerprint in self._evaluated or fingerprint in self._asked

    def fresh(self, draw: Callable[[], Proposal | None], tries: int) -> Proposal | None:
        """The first new proposal of `tries` draws.

        If none is new, a known program is proposed, as it may lead on; None while other proposals are not told yet.
        """
        known: Proposal | None = None
        for _ in range(tries):
            proposal = draw()
            if proposal is None:
                continue
            if proposal not in self:
                self._asked.add(proposal.game.fingerprint)
                return proposal
            known = proposal
        return None if self._asked else known
