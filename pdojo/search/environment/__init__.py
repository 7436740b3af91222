"""The game as an environment for learning agents (paper section 3.1): episodes, offered actions, rewards.

`Episode` is plain Python; `pdojo.env` has the same game for gymnasium.
"""

from pdojo.search.environment.episode import Episode, Price, Transition
from pdojo.search.environment.offers import Offer
from pdojo.search.environment.prices import Prices
from pdojo.search.environment.rules import GRANULARITIES, REWARDS, Rules
from pdojo.search.environment.validation import Validation, validate

__all__ = [
    "GRANULARITIES",
    "REWARDS",
    "Episode",
    "Offer",
    "Price",
    "Prices",
    "Rules",
    "Transition",
    "Validation",
    "validate",
]
