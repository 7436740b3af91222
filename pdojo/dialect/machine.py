"""Machine descriptions: the hardware facts that moves, expert passes and backends may ask for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pdojo.errors import UsageError

if TYPE_CHECKING:
    from pdojo.dialect.intrinsic import Intrinsic


class _Part:
    """Facts of one kind of machine; false if the machine has nothing of it."""

    def __bool__(self) -> bool:
        return self != type(self)()


@dataclass(frozen=True)
class Cpu(_Part):
    """Pipelines of a core, for models of how long code takes."""

    fma_pipes: int = 1
    """Pipelines of a core that can each start a fused multiply-add of vectors per cycle."""
    load_pipes: int = 1
    """Pipelines of a core that can each start a load or a broadcast load of a vector per cycle."""
    pipe_bytes: int = 0
    """Width of these pipelines; a wider vector takes several passes. 0 if no vector is wider."""
    fma_latency: int = 4
    """Latency of a fused multiply-add, in cycles."""

    def passes(self, size: int) -> int:
        """How often a vector of `size` bytes goes through a pipeline."""
        return -(-size // self.pipe_bytes) if self.pipe_bytes else 1


@dataclass(frozen=True)
class Gpu(_Part):
    """What threads of a graphics processor share."""

    warp_size: int = 0
    """Threads that run in lock step and exchange registers; 0 if there are no warps."""
    block_threads: int = 0
    """Most threads of a block; 0 if there are no blocks."""
    shared_bytes: int = 0
    """Most bytes of shared memory per block; 0 if there is none."""
    multiprocessors: int = 0
    """Processors that run blocks at the same time; 0 if there are no blocks."""
    async_copy_bytes: tuple[int, ...] = ()
    """Sizes of asynchronous copies from global to shared memory, ascending; empty if there are none."""


@dataclass(frozen=True)
class Snitch(_Part):
    """Streams and hardware loops of a Snitch core."""

    stream_registers: int = 0
    """Registers through which memory can be streamed (Snitch SSR); 0 if there are none."""
    stream_dims: int = 0
    """Most nested loops of a stream's address generator."""
    stream_repeats: int = 0
    """Most times that a stream delivers one element before it moves on."""
    frep_instructions: int = 0
    """Most instructions of a hardware loop (Snitch FREP); 0 if there is none."""
    frep_nesting: int = 0
    """Most hardware loops inside each other."""
    frep_trips: int = 0
    """Most iterations of a hardware loop."""


@dataclass(frozen=True)
class Machine:
    """The facts about a processor. Sizes in bytes. The fields are the keys of a machine file (docs/machines.md).

    >>> import pdojo
    >>> pdojo.machine("x86-64-avx2")
    <Machine x86-64-avx2, 2 threads>
    """

    name: str
    vector_bytes: tuple[int, ...]
    """Widths of the vector registers (GPU: of a thread's memory accesses), ascending; empty if there are none."""
    vector_registers: int
    """Number of architectural vector registers."""
    gather: bool
    """Whether vector loads and stores may be strided."""
    threads: int
    """Processors that a parallel scope may use."""
    description: str = ""
    """One line for people."""
    architecture: str = ""
    """Instruction set, as LLVM's triples name it (`x86_64`, `nvptx64`); empty for a model, whose code runs anywhere."""
    backend: str = "llvm"
    """Name of the backend that generates code for it (`llvm`, `snitch`); empty if there is none."""
    processor: str = ""
    """The processor's name in the compiler's spelling (`sm_90`); empty if the features are enough."""
    cache_bytes: tuple[int, ...] = (32 << 10, 1 << 20)
    """Data cache sizes, innermost first; the last may be shared."""
    cache_line: int = 64
    features: tuple[str, ...] = ()
    """Instruction set features in the compiler's spelling, sorted."""
    unroll_limit: int = 256
    """Most statement instances that nested unrolled scopes may expand to."""
    stack_bytes: int = 256 << 10
    """Most bytes that stack buffers of a kernel may take per thread."""
    register_bytes: int = 2048
    """Most bytes that register buffers of a kernel may take per thread."""
    lanes: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    """Lane counts per dtype that do not follow from `vector_bytes`."""
    cpu: Cpu = Cpu()
    gpu: Gpu = Gpu()
    snitch: Snitch = Snitch()
    intrinsics: tuple[Intrinsic, ...] = ()
    """Instructions that compute whole nests, for `tensorize`; each may need features that the machine lacks."""

    def __repr__(self) -> str:
        return f"<Machine {self.name}, {self.threads} thread{'s' * (self.threads != 1)}>"

    @property
    def private_cache(self) -> int:
        """Bytes of the largest cache that belongs to one core: the second one, or the only one."""
        return self.cache_bytes[min(1, len(self.cache_bytes) - 1)] if self.cache_bytes else 0

    def vector_lanes(self, dtype: str) -> tuple[int, ...]:
        """Lane counts at least 2 of the vectors of `dtype`, ascending."""
        if dtype in self.lanes:
            return self.lanes[dtype]
        from pdojo.dialect.functions import byte_width

        width = byte_width(dtype)
        return tuple(b // width for b in self.vector_bytes if b // width >= 2)


_FOLDER = Path(__file__).parent / "machines"
_PATH = re.compile(r".*\.toml|.*[/\\].*", re.DOTALL)
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_introduced: dict[str, Machine] = {}


def machines() -> tuple[str, ...]:
    """The names of all machine descriptions: `host`, those shipped with pdojo, those of other packages."""
    from pdojo.dialect.plugins import MACHINES, plugins

    return (*shipped_machines(), *plugins(MACHINES, shipped_machines()))


def is_machine_name(text: str) -> bool:
    """Whether a text can be the name of a machine: letters, digits, `_`, `-` and `.`; not the path of a file."""
    return _NAME.fullmatch(text) is not None and _PATH.fullmatch(text) is None


def machine(name: str | None = None, *, trust: bool = False) -> Machine:
    """The machine description of that name; a name that ends in `.toml` or has a slash is the path of a file.

    None, like `host`, describes the processor that this runs on.

    For names from a command line or a program; `known_machine` is for those in kernels, traces and databases (data).
    If `trust`, the code of a file's intrinsics may be compiled and run. Raises UsageError for an unknown name and a
    wrong file, PluginError if another package's description cannot be loaded.

    >>> import pdojo
    >>> pdojo.machine("x86-64-avx512").vector_lanes("f32")
    (4, 8, 16)
    >>> pdojo.machine() == pdojo.machine("host")
    True
    """
    if name is None:
        return host()
    if _PATH.fullmatch(name):
        from pdojo.dialect.machine_file import read_machine

        return read_machine(Path(name), trusted=trust)
    return known_machine(name)


def known_machine(name: str) -> Machine:
    """The machine description of that name: `host`, a shipped one, or one of a package or the command line.

    No file is read because of the name. Raises UsageError if it is not known, PluginError if another package's
    description cannot be loaded.
    """
    if name == "host":
        return host()
    if not is_machine_name(name):
        raise UsageError(f"{name!r} is no name of a machine; only --machine and programs may name a machine file")
    return _introduced.get(name) or _named(name)


def introduce(described: Machine) -> None:
    """Register the machine of the command line by its name in this process, so that kernels can name it."""
    if described.name not in shipped_machines():
        _introduced[described.name] = described


def host() -> Machine:
    """The processor that this runs on."""
    from pdojo.dialect.host import detect

    return detect()


@cache
def shipped_machines() -> tuple[str, ...]:
    """The names of the machine descriptions shipped with pdojo, `host` first."""
    return ("host", *sorted(path.stem for path in _FOLDER.glob("*.toml")))


@cache
def _named(name: str) -> Machine:
    if name in shipped_machines():
        from pdojo.dialect.machine_file import read_machine

        return read_machine(_FOLDER / f"{name}.toml", trusted=True)
    from pdojo.dialect.plugins import MACHINES, plugins

    others = plugins(MACHINES, shipped_machines())
    if name in others:
        from pdojo.dialect.machine_file import plugin_machine

        return plugin_machine(others[name])
    from difflib import get_close_matches

    close = get_close_matches(name, machines(), 1)
    hint = f"; did you mean '{close[0]}'?" if close else ""
    raise UsageError(
        f"unknown machine '{name}'{hint}; known: {', '.join(machines())}, or the path of a .toml file (--machine)"
    )
