"""Background jobs of one kind, one after the other, in their own thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class BackgroundWorker:
    """A thread that runs jobs in the order of their submission."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def run(self, job: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of a job, or its exception."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: job(*args, **kwargs))

    def close(self) -> None:
        """Cancel the jobs that have not begun."""
        self._thread.shutdown(wait=False, cancel_futures=True)
