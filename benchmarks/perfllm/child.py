"""The process of a cell: one job as a line of standard input, progress and the result as lines of standard output.

It ends when the parent closes the pipe, also if the parent is killed.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from threading import Thread
from time import monotonic

from benchmarks.origin import JSON
from benchmarks.perfllm.cell import reference, searched
from benchmarks.perfllm.grid import Cell, Task
from pdojo.backends.common.gc_pause import collect_rarely
from pdojo.errors import PdojoError
from pdojo.search.contract.progress import Progress

EVERY = 1.0
"""Seconds between two lines of progress."""


def main() -> None:
    """Run the job that standard input names."""
    collect_rarely()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    job: JSON = json.loads(sys.stdin.readline())
    Thread(target=_end_with_parent, daemon=True).start()
    if job["processor"] is not None:
        # Child processes inherit this CPU affinity.
        os.sched_setaffinity(0, {job["processor"]})
    told = 0.0

    def tell(message: JSON) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    def listen(progress: Progress) -> None:
        nonlocal told
        if monotonic() - told >= EVERY:
            told = monotonic()
            tell({"evaluations": progress.evaluations, "factor": progress.root / progress.best})

    try:
        cell = Cell.from_json(job["cell"]) if "cell" in job else None
        found = reference(Task(**job["reference"])) if cell is None else searched(cell, listen)
    except PdojoError as error:
        tell({"error": str(error)})
    except Exception:  # noqa: BLE001  # a cell's failure must not end the experiment
        tell({"error": traceback.format_exc(limit=-6)})
    else:
        tell({"result": found})


def _end_with_parent() -> None:
    # Not `sys.stdin`, whose lock would be held when the process ends.
    while os.read(0, 1 << 12):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
