"""Connections to a Ray cluster. Ray is an optional dependency, imported when a connection is made."""

from __future__ import annotations

import logging
import os
import socket
import warnings
from importlib import import_module
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Self

from pdojo.backends.common.cores import core_count
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.machine_file import machine_from_json
from pdojo.errors import MeasurementError, PdojoError, UsageError
from pdojo.search.evaluators.cluster import worker

REACH = 10.0
"""Seconds within which the head of a cluster must accept a connection."""
START = 120.0
"""Seconds within which a worker must start once there is room for it."""
_STORE = 128 << 20
"""Bytes of a private cluster's object store; messages are small."""


class Connection:
    """The connection of this process to a cluster; a process has one at a time.

    The address is `local` (a private cluster on this machine, which ends with the connection), `auto` (the cluster that
    runs on this machine), `host:port` (a cluster that this machine belongs to) or `ray://host:port` (from outside).
    Raises UsageError if Ray is not installed, or the cluster does not answer.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.is_private = address == "local"
        self.ray = _ray()
        self._is_ours = not self.ray.is_initialized()
        if self._is_ours:
            self._connect()

    def _connect(self) -> None:
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if self.is_private:
            count = core_count(os.sched_getaffinity(0))
            options |= {
                "num_cpus": count,
                "num_gpus": 0,
                "include_dashboard": False,
                "object_store_memory": _STORE,
            }
        else:
            _reach(self.address)
        # A private cluster listens to this machine only: anyone who reaches a cluster can run programs on it.
        constants: Any = import_module("ray._private.ray_constants")
        constants.ENABLE_RAY_CLUSTER = not self.is_private
        # pdojo reports deaths of workers itself.
        process: Any = import_module("ray._private.worker")
        process._worker_logs_enabled = False
        group = os.getpgrp()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.ray.init(address=self.address, **options)
        except (OSError, ValueError, RuntimeError, ImportError, self.ray.exceptions.RayError) as error:
            hint = "" if self.is_private else "; is it of the same Ray and Python, and has this process its token?"
            raise UsageError(f"no Ray cluster at '{self.address}': {_first_line(error)}{hint}") from None
        if os.getpgrp() != group:
            # Ray moved this process out of its group, to end its children as a group; there Ctrl-C would not reach it.
            os.setpgid(0, group)

    def processors(self) -> list[int]:
        """Number of processors of each machine of the cluster."""
        nodes: list[dict[str, Any]] = self.ray.nodes()
        return [int(node["Resources"].get("CPU", 0)) for node in nodes if node["Alive"]]

    def host(self) -> Machine:
        """The machine description of one machine of the cluster. Raises UsageError if its pdojo differs."""
        answer = self.ray.remote(num_cpus=1, max_retries=0)(worker.host_of).remote(worker.release())
        try:
            return machine_from_json(self.ray.get(answer, timeout=START))
        except self.ray.exceptions.GetTimeoutError:
            self.ray.cancel(answer, force=True)
            raise UsageError(f"no processor of the cluster at '{self.address}' was free within {START:g} s") from None
        except self.ray.exceptions.RayError as error:
            raise self.translated(error) from None

    def translated(self, error: Exception) -> Exception:
        """The exception to raise for a Ray error: the worker's own error, or a bug with its traceback."""
        cause = getattr(error, "cause", None)
        if isinstance(cause, PdojoError):
            return type(cause)(str(cause))
        text = str(error).strip()
        if "No module named 'pdojo" in text or "No module named 'xdsl" in text:
            return UsageError(
                f"the cluster at '{self.address}' has a machine without this pdojo: install the same on all machines"
            )
        if isinstance(error, self.ray.exceptions.RayTaskError):
            return RuntimeError(f"a worker of the cluster failed:\n{text}")
        return MeasurementError(f"the cluster at '{self.address}' failed: {_first_line(error)}")

    def close(self) -> None:
        """Leave the cluster; a private one ends. Closing twice is fine."""
        if self._is_ours and self.ray.is_initialized():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.ray.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _ray() -> Any:
    if find_spec("ray") is None:
        raise UsageError("searching on a cluster needs Ray: pip install 'pdojo[ray]'")
    # Ray sends no usage reports, and its warnings for its own developers are silenced.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return import_module("ray")


def _reach(address: str) -> None:
    """Check that the address accepts connections. Ray itself would wait for a minute and then end the process.

    Raises UsageError.
    """
    if address == "auto":
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(f"'{address}' is no address of a Ray cluster: local, auto, HOST:PORT or ray://HOST:PORT")
    try:
        socket.create_connection((host.strip("[]"), int(port)), REACH).close()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"no Ray cluster at '{address}': {reason}") from None


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
