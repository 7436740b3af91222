"""Values that are made once for each key."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import RLock
from typing import Generic, TypeVar

_T = TypeVar("_T")


class Kept(Generic[_T]):
    """The values of up to `most` keys, those that were used last; several threads may ask at once."""

    def __init__(self, most: int = 32) -> None:
        self._most = most
        self._known: OrderedDict[object, _T] = OrderedDict()
        self._lock = RLock()

    def get(self, key: object, make: Callable[[], _T]) -> _T:
        """The value of a key, made if there is none."""
        with self._lock:
            if key not in self._known:
                self._known[key] = make()
                while len(self._known) > self._most:
                    self._known.popitem(last=False)
            self._known.move_to_end(key)
            return self._known[key]

    @property
    def values(self) -> list[_T]:
        """The values that are kept."""
        with self._lock:
            return list(self._known.values())
