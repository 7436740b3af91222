"""The worker process: reads requests from standard input, answers on its original standard output.

`pdojo.backends.measure.worker` starts it. Requests are pickled objects, answers JSON objects, one per line. The output
of candidates goes to standard error.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import sys
import threading
import traceback
from dataclasses import dataclass
from importlib import import_module
from queue import SimpleQueue
from typing import Any, BinaryIO

from pdojo.backends.common.gc_pause import collect_rarely
from pdojo.backends.measure.load import processors
from pdojo.backends.measure.process import kill_family
from pdojo.backends.measure.request import Assembly, Comparison, Simulation
from pdojo.backends.measure.session import Cache, Fatal, WorkerSession, assemble
from pdojo.backends.measure.tools import Tools, required
from pdojo.errors import MeasurementError, PdojoError


def main(settings: dict[str, Any]) -> None:
    """Answer requests until the parent closes the pipe."""
    collect_rarely()
    answers = SealedOutput(os.fdopen(os.dup(1), "wb"), settings["seal"].encode())
    os.dup2(2, 1)
    _limit_memory(settings["memory_limit"])
    if settings["processors"] is not None:
        os.sched_setaffinity(0, settings["processors"])
    processors()
    requests: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin.buffer, requests, settings["seal"]), daemon=True).start()
    compiler, peers, references, simulator, session = (
        _load(settings[key]) for key in ("compiler", "peers", "references", "simulator", "session")
    )
    tools, cache = Tools(compiler, peers, references, settings["memory_limit"], simulator), Cache()
    answers.send({"event": "ready"})
    while True:
        answers.send(_serve(pickle.loads(base64.b64decode(requests.get())), session, tools, cache, answers))


@dataclass(frozen=True)
class SealedOutput:
    """Writer to the original standard output. The parent accepts only lines that begin with the seal."""

    stream: BinaryIO
    seal: bytes

    def send(self, message: dict[str, Any]) -> None:
        """Write a message as one line."""
        self.stream.write(self.seal + b" " + json.dumps(message).encode() + b"\n")
        self.stream.flush()


def _serve(
    request: Simulation | Assembly | Comparison,
    session: type[WorkerSession] | None,
    tools: Tools,
    cache: Cache,
    answers: SealedOutput,
) -> dict[str, Any]:
    def report(index: int, phase: str) -> None:
        answers.send({"event": "phase", "index": index, "phase": phase})

    try:
        if isinstance(request, Simulation):
            simulate = required(tools.simulator, "a simulator")
            outcome = simulate(request, lambda phase: report(0, phase))
            return {"event": "done", "outcomes": [outcome.to_json()]}
        session = required(session, "a session (Worker(session=...))")
        if isinstance(request, Assembly):
            report(0, "compile")
            return {"event": "assembled", **assemble(request, session, tools)}
        outcomes = session(request, tools, cache, report).run()
    except Fatal as error:
        return {"event": "fatal", "index": error.index, "outcome": error.outcome.to_json()}
    except PdojoError as error:
        return {"event": "error", "message": str(error)}
    except MemoryError as error:
        return {"event": "memory", "message": str(error)}
    except Exception:  # noqa: BLE001  # a bug: the parent raises the traceback
        return {"event": "bug", "message": traceback.format_exc()}
    return {"event": "done", "outcomes": [outcome.to_json() for outcome in outcomes]}


def _read(stream: BinaryIO, requests: SimpleQueue[bytes], seal: str) -> None:
    """Put requests into a queue; end the process when the parent has ended, even while a candidate hangs."""
    for line in stream:
        requests.put(line)
    kill_family(seal)
    os._exit(0)


def _load(path: str | None) -> Any:
    """Import the object at `module:name`; the path comes from the program that started the worker."""
    if path is None:
        return None
    module, _, name = path.partition(":")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise MeasurementError(f"the worker cannot load '{path}': {error}") from error


def _limit_memory(limit: int | None) -> None:
    if limit is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
