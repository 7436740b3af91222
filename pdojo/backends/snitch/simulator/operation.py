"""Decoded floating-point instructions: operands, function, destination of the result."""

from __future__ import annotations

from dataclasses import replace

from pdojo.backends.snitch.assembler.instruction import Instruction
from pdojo.backends.snitch.assembler.registers import ROUNDING
from pdojo.backends.snitch.simulator import causes
from pdojo.backends.snitch.simulator.configuration import Configuration, Timing
from pdojo.backends.snitch.simulator.crossing import from_integer, to_integer
from pdojo.backends.snitch.simulator.lane import Lane
from pdojo.backends.snitch.simulator.packed import packed_compare, packed_functions
from pdojo.backends.snitch.simulator.scalar import Function, float_functions
from pdojo.errors import SimulationError

COMPUTE, LOAD, STORE, SWITCH = range(4)
TO_INTEGER = 64
"""The first index of integer registers as destinations; 0 to 31 are FP registers, lanes begin at 32."""
SPARE = 40
"""The place in the register file that unused operands read."""
SIZES = {"flb": 0, "flh": 1, "flw": 2, "fld": 3, "fsb": 0, "fsh": 1, "fsw": 2, "fsd": 3}

_MULTIPLY_ADDS = ("fmadd", "fmsub", "fnmsub", "fnmadd", "vfmac", "vfmre")
_ARITHMETIC = ("fadd", "fsub", "fmul", "fdiv", "fsqrt", "vfadd", "vfsub", "vfmul", "vfdiv", "vfsqrt")
_CHOICES = ("fmin", "fmax", "vfmin", "vfmax")


class FpuPipeline:
    """A pipeline of the FPU."""

    __slots__ = ("count", "free", "interval", "latency", "stages")

    def __init__(self, latency: int, stages: int, interval: int = 0) -> None:
        self.latency = latency
        """Cycles until a result leaves the pipeline."""
        self.stages = stages
        """Number of instructions in the pipeline."""
        self.interval = interval
        """Cycles until it accepts another instruction; 0 if it is fully pipelined."""
        self.count = 0
        self.free = 0


class Groups:
    """The FPU's pipelines. A result that can be used `n` cycles after issue leaves its pipeline after `n - 1`."""

    def __init__(self, timing: Timing) -> None:
        self.fma = FpuPipeline(timing.fma - 1, timing.fma - 1)
        self.sums = FpuPipeline(timing.fma - 1, timing.fma - 1)
        self.simple = FpuPipeline(timing.simple - 1, timing.simple - 1)
        self.conversion = FpuPipeline(timing.conversion - 1, timing.conversion - 1)
        divider = FpuPipeline(0, 1 << 30)
        self.double = (divider, timing.division_double - 1, timing.division_double_interval)
        self.single = (divider, timing.division_single - 1, timing.division_single_interval)
        self.packed = (divider, timing.division_packed - 1, timing.division_single_interval)

    def of(self, name: str) -> tuple[FpuPipeline, int, int]:
        """Pipeline, latency and interval of an instruction."""
        base = name.split(".")[0]
        if base in ("fdiv", "fsqrt"):
            return self.double if name.endswith(".d") else self.single
        if base in ("vfdiv", "vfsqrt"):
            return self.packed
        if base in ("vfsum", "vfdotpex"):
            group = self.sums
        elif base.startswith(("fcvt", "vfcpk")):
            group = self.conversion
        elif base in (*_MULTIPLY_ADDS, *_ARITHMETIC):
            group = self.fma
        else:
            group = self.simple
        return group, group.latency, 0


class OperandView:
    """An instruction's operands, for streams either switched on or off."""

    __slots__ = ("a", "b", "c", "destination", "lanes", "registers")

    def __init__(
        self, operands: tuple[int, int, int], destination: int, lanes: tuple[Lane, ...], registers: tuple[int, ...]
    ) -> None:
        self.a, self.b, self.c = operands
        self.destination = destination
        self.lanes = lanes
        """The distinct streams that the instruction reads."""
        self.registers = registers
        """Registers that must hold their final value: operands and destination."""


class FloatOperation:
    """An instruction of the FP subsystem."""

    __slots__ = (
        "count",
        "direct",
        "flops",
        "function",
        "group",
        "index",
        "instruction",
        "interval",
        "kind",
        "latency",
        "order",
        "plain",
        "size",
        "stalls",
        "streaming",
        "switch",
        "takes_integer",
        "variants",
    )

    def __init__(self, index: int, instruction: Instruction) -> None:
        self.index = index
        self.instruction = instruction
        self.kind = COMPUTE
        self.direct = False
        """Whether it bypasses the sequencer, once that is empty, as it writes integer registers or switches streams."""
        self.takes_integer = False
        self.function: Function = _nothing
        self.group = FpuPipeline(1, 1)
        self.latency = self.interval = 0
        self.size = 3
        self.switch = False
        """Whether streams are on after the instruction."""
        self.flops = 0
        self.order = 0
        """Extra cycles of its result on the way to the core."""
        self.plain = self.streaming = OperandView((SPARE, SPARE, SPARE), SPARE, (), ())
        self.variants: dict[tuple[int, int], FloatOperation] = {}
        self.count = 0
        self.stalls = [0] * causes.COUNT


def _nothing(a: float, b: float, c: float) -> float:
    del b, c
    return a


class Decoder:
    """Decodes floating-point instructions for one core complex."""

    def __init__(self, configuration: Configuration, lanes: list[Lane], source: str) -> None:
        self._configuration = configuration
        self._lanes = lanes
        self._source = source
        self._functions = {**float_functions(), **packed_functions()}
        self._groups = Groups(configuration.timing)

    def trap(self, instruction: Instruction, message: str) -> SimulationError:
        """The error of an instruction."""
        return trap(self._source, instruction, message)

    def decode(self, index: int, instruction: Instruction) -> FloatOperation:
        """The operation of an instruction. Raises SimulationError if it is not modelled."""
        operation = FloatOperation(index, instruction)
        name = instruction.name
        letters = instruction.encoding.operands.split(",")
        operation.flops = flops_of(name)
        if name in SIZES:
            operation.kind = LOAD if name.startswith("fl") else STORE
            operation.size = SIZES[name]
        elif name.startswith("csrr"):
            operation.kind, operation.direct = SWITCH, True
            operation.switch = name == "csrrsi"
        else:
            self._compute(operation, letters)
        operation.plain = self._view(operation, letters, streaming=False)
        operation.streaming = self._view(operation, letters, streaming=True)
        return operation

    def _compute(self, operation: FloatOperation, letters: list[str]) -> None:
        instruction = operation.instruction
        name = instruction.name
        operation.group, operation.latency, operation.interval = self._groups.of(name)
        crossing = to_integer(name, instruction.rm) or packed_compare(name)
        incoming = from_integer(name)
        timing = self._configuration.timing
        if crossing is not None:
            operation.function, operation.direct = crossing, True
            operation.order = timing.for_core(name) - operation.latency - 1
        elif incoming is not None:
            operation.takes_integer = True
            operation.direct = not self._configuration.integers_queue
            operation.function = lambda a, b, c: incoming(int(a))
        elif name in self._functions:
            operation.function = self._functions[name]
        else:
            raise self.trap(instruction, "the simulator does not know this instruction")
        if operation.interval and not self._configuration.division:
            raise self.trap(
                instruction, "this core has no divider (feature xdiv_sqrt of the machine, Configuration.division)"
            )
        if "m" in letters and instruction.rm not in (ROUNDING["rne"], ROUNDING["dyn"]) and crossing is None:
            raise self.trap(instruction, "only rounding to nearest is modelled")

    def _view(self, operation: FloatOperation, letters: list[str], *, streaming: bool) -> OperandView:
        i = operation.instruction
        sources = [{"S": i.rs1, "T": i.rs2, "R": i.rs3}[letter] for letter in letters if letter in "STR"]
        places = [SPARE, SPARE, SPARE]
        places[: len(sources)] = sources
        writes_float = "D" in letters
        if reads_destination(i.name):
            places[2] = i.rd
            sources.append(i.rd)
        if operation.takes_integer:
            places[0] = SPARE + 1
        count = len(self._lanes) if streaming else 0
        lanes = tuple(self._lanes[r] for r in dict.fromkeys(r for r in sources if r < count))
        registers = [r for r in sources if r >= count]
        destination = SPARE
        if writes_float:
            streamed = i.rd < count and operation.kind == COMPUTE
            destination = 32 + i.rd if streamed else i.rd
            if not streamed:
                registers.append(i.rd)
        elif "d" in letters and operation.kind == COMPUTE:
            destination = TO_INTEGER + i.rd
        a, b, c = (32 + p if p < count else p for p in places)
        return OperandView((a, b, c), destination, lanes, tuple(dict.fromkeys(registers)))

    def staggered(self, operation: FloatOperation, mask: int, shift: int) -> FloatOperation:
        """The operation with `shift` added to the register numbers that `mask` selects."""
        found = operation.variants.get((mask, shift))
        if found is None:
            i = operation.instruction
            letters = i.encoding.operands
            names = {1: ("rd", "Dd"), 2: ("rs1", "Ss"), 4: ("rs2", "Tt"), 8: ("rs3", "R")}
            changes: dict[str, int] = {}
            for bit, (name, kinds) in names.items():
                if mask & bit:
                    if not any(kind in letters for kind in kinds):
                        raise self.trap(i, f"staggering would change bits that are no register ({name})")
                    changes[name] = getattr(i, name) + shift & 31
            found = self.decode(operation.index, replace(i, **changes))
            found.stalls = operation.stalls
            operation.variants[mask, shift] = found
        return found


def reads_destination(name: str) -> bool:
    """Whether an instruction adds to its destination, or keeps parts of it."""
    return name.split(".")[0] in ("vfmac", "vfmre", "vfsum", "vfdotpex") or name in ("vfcpka.h.s", "vfcpkb.h.s")


def flops_of(name: str) -> int:
    """Number of floating-point operations: one per lane for each sum, product, quotient, root, minimum or maximum."""
    parts = name.split(".")
    lanes = {"s": 2, "h": 4}.get(parts[-1], 1) if parts[0].startswith("v") else 1
    if parts[0] == "vfsum":
        return lanes
    if parts[0] == "vfdotpex":
        return 2 * lanes
    if parts[0] in _MULTIPLY_ADDS:
        return 2 * lanes
    return lanes if parts[0] in (*_ARITHMETIC, *_CHOICES) else 0


def trap(source: str, instruction: Instruction, message: str) -> SimulationError:
    """The error of an instruction."""
    return SimulationError(f"{source}:{instruction.line}:1: error: {message}\n  {instruction.text}")
