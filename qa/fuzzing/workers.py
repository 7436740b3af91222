"""The processes of a fuzz run, as seen by their parent."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import cast

from qa.fuzzing.jobs import Announced, Begun, Failing, Found, FuzzPlan, Message, Report, work


@dataclass
class Worker:
    """A process, its connection, and its current walk or trace."""

    plan: FuzzPlan
    process: BaseProcess
    connection: Connection
    number: int
    begun: Begun | None = None
    moves: list[str] = field(default_factory=list[str])
    """The moves of the walk; the last one may still be unjudged."""
    failing: Report | None = None
    """The broken promise that the process is shrinking."""

    @staticmethod
    def start(plan: FuzzPlan, number: int, step: int) -> Worker:
        """Start a process for the walks or traces `number`, `number + step` ..."""
        spawning = get_context("spawn")
        mine, its = spawning.Pipe(duplex=False)
        process = spawning.Process(target=work, args=(plan, number, step, its), daemon=True)
        with _deaf_children():
            process.start()
        its.close()
        return Worker(plan, process, cast("Connection", mine), number)

    def hear(self) -> Found | None:
        """Receive a message: the findings of a walk or trace, or None for other messages. Raises EOFError if the
        process died.
        """
        try:
            message: Message = self.connection.recv()
        except OSError as error:
            raise EOFError from error
        match message:
            case Begun():
                self.number, self.begun, self.moves, self.failing = message.number, message, [], None
            case Announced():
                self.moves.append(message.move)
            case Failing():
                self.failing = message.report
            case Found():
                self.begun, self.moves, self.failing = None, [], None
                return message
        return None

    def end(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.process.join()
        self.connection.close()

    def crash(self) -> Report:
        """The report on a dead process: the failure that it was shrinking, or the trace up to its last move."""
        self.process.join()
        self.connection.close()
        if self.failing is not None:
            return self.failing
        detail = f"the process ended with code {self.process.exitcode}; see number {self.number} of this seed"
        machine = self.plan.machines[self.number % len(self.plan.machines)]
        if self.begun is None:
            text = f"# {detail}\n"
        else:
            moves = "".join(f" --apply='{move}'" for move in self.moves)
            run = f"# RUN: pdojo-opt %s --machine {machine}{moves} --verify -t notation"
            text = f"{run}\n# no crash: {detail}\n{self.begun.kernel}"
        last = self.moves[-1] if self.moves else "an unknown move"
        return Report(self.plan.seed, self.number, machine, "no crash", last, detail, text)


@contextmanager
def _deaf_children() -> Generator[None]:
    """A context in which child processes start that ignore Ctrl-C, which a terminal sends to all processes.

    A signal during the start is delivered afterwards, even if another thread receives it.
    """
    # The first process needs the resource tracker, whose start would otherwise unblock the signal.
    resource_tracker.ensure_running()
    heard: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if heard:
        signal.raise_signal(signal.SIGINT)
