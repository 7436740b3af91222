"""Looking for garbage less often than Python does, in processes that are ours."""

from __future__ import annotations

import gc

OBJECTS = 100_000
"""New objects after which the youngest are looked through."""


def collect_rarely() -> None:
    """Collect after `OBJECTS` new objects; for command-line tools and worker processes, not for libraries.

    Programs are trees whose parts know what they are part of, so that only the collector frees them. Looking after
    every 700 new objects, as Python does, takes up to a fifth of the time of proposing and lowering. What is not freed
    yet takes some tens of megabytes, and in a long search, whose programs are old, up to some two gigabytes: freeing
    these takes half a minute, and looking for them more often takes longer in all.
    """
    gc.set_threshold(OBJECTS, 20, 20)


def collect_now() -> None:
    """Free the programs of a search that is over, up to gigabytes, which `collect_rarely` leaves lying about."""
    gc.collect()
