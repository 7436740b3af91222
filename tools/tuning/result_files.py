"""Files of results: one for a single kernel, folders for several; checked before hours of work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pdojo_tools.outputs import check_folder, check_writable, write_output

from pdojo.dialect.notation import print_notation, print_versions
from pdojo.dialect.ops import KernelOp, VersionsOp
from pdojo.errors import PdojoError, UsageError
from pdojo.files import exists
from pdojo.passes.task import TuningTask
from pdojo.transforms.trace import Trace


@dataclass(frozen=True)
class Targets:
    """Files of the command line; None for results that are not stored."""

    trace: str | None
    program: str | None
    report: str | None
    names: tuple[str, ...]
    """Names of the files in folders, one for each kernel, without suffix; empty for one kernel."""
    family: str = ""
    """The kernel of which all are versions, whose programs are one file; '' if there is none."""
    programs: dict[int, KernelOp] = field(default_factory=dict[int, KernelOp])
    """The programs of versions so far."""

    @staticmethod
    def of(trace: str | None, program: str | None, report: str | None, tasks: Sequence[TuningTask]) -> Targets:
        """Check that all files can be written. Raises UsageError."""
        several = len(tasks) > 1
        families = {task.family for task in tasks}
        family = families.pop() if len(families) == 1 else ""
        for option, path in (("-o", trace), ("--emit", program)):
            if path is not None and several and not (family and option == "--emit"):
                _make_folder(option, path)
            elif path is not None and path != "-":
                check_writable(path)
        if report is not None:
            if not report.endswith((".html", ".htm")):
                raise UsageError(
                    f"a report is HTML; name the file '{Path(report).with_suffix('.html')}', not '{report}'"
                )
            check_writable(report)
        return Targets(trace, program, report, _distinct([task.slug for task in tasks]) if several else (), family)

    def write_trace(self, number: int, text: str) -> None:
        """Store the trace of a kernel, if requested."""
        self._write(self.trace, number, ".trace", text)

    def read_trace(self, number: int) -> Trace | None:
        """The existing trace; None if there is no file, or if it is no trace."""
        path = self._path(self.trace, number, ".trace")
        if path is None or not exists(path):
            return None
        try:
            return Trace.load(path)
        except PdojoError:
            return None

    def write_program(self, number: int, kernel: KernelOp) -> None:
        """Store the program of a kernel, if requested; those of versions when all are there."""
        if not self.family:
            self._write(self.program, number, ".pdojo", print_notation(kernel))
            return
        self.programs[number] = kernel
        if self.program is not None and len(self.programs) == len(self.names):
            kernels = [self.programs[each] for each in sorted(self.programs)]
            versions = VersionsOp(self.family, [each.sym_name.data for each in kernels])
            write_output("\n".join([*map(print_notation, kernels), print_versions(versions)]), self.program)

    def _write(self, target: str | None, number: int, suffix: str, text: str) -> None:
        path = self._path(target, number, suffix)
        if path is not None:
            write_output(text, path)

    def _path(self, target: str | None, number: int, suffix: str) -> str | None:
        if target is None or not self.names:
            return target
        return str(Path(target) / f"{self.names[number]}{suffix}")


def _make_folder(option: str, path: str) -> None:
    folder = Path(path)
    if path == "-":
        raise UsageError(f"{option} -: the results of several kernels need a folder")
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"'{path}' is a file; the results of several kernels need a folder ({option} FOLDER)")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        check_folder(folder)
    except OSError as error:
        raise UsageError(f"cannot write to the folder '{path}': {error.strerror}") from None


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """The names, with numbers appended to repeated ones."""
    found: list[str] = []
    for name in names:
        wanted, number = name, 2
        while wanted in found:
            wanted, number = f"{name}-{number}", number + 1
        found.append(wanted)
    return tuple(found)
