"""Decoded floating-point instructions: operands, function, destination of the result."""

from __future__ import annotations

from dataclasses import replace

from pdojo.errors import SimulationError
from pdojo.snitch_sim.assembler.instruction import Instruction
from pdojo.snitch_sim.assembler.registers import ROUNDING
from pdojo.snitch_sim.simulator import causes
from pdojo.snitch_sim.simulator.configuration import Configuration
from pdojo.snitch_sim.simulator.crossing import from_integer, to_integer
from pdojo.snitch_sim.simulator.division import Iterations, iterations
from pdojo.snitch_sim.simulator.fpu import Fpu, FpuPipeline, divides, format_of
from pdojo.snitch_sim.simulator.lane import Lane
from pdojo.snitch_sim.simulator.packed import lanes_of, packed_compare, packed_functions
from pdojo.snitch_sim.simulator.scalar import Function, float_functions, getter

COMPUTE, LOAD, STORE, SWITCH = range(4)
TO_INTEGER = 64
"""The first index of integer registers as destinations; 0 to 31 are FP registers, lanes begin at 32."""
SPARE = 40
"""The place in the register file that unused operands read."""
SIZES = {"flb": 0, "flh": 1, "flw": 2, "fld": 3, "fsb": 0, "fsh": 1, "fsw": 2, "fsd": 3}

_MULTIPLY_ADDS = ("fmadd", "fmsub", "fnmsub", "fnmadd", "vfmac", "vfmre")
_ARITHMETIC = ("fadd", "fsub", "fmul", "fdiv", "fsqrt", "vfadd", "vfsub", "vfmul", "vfdiv", "vfsqrt")
_CHOICES = ("fmin", "fmax", "vfmin", "vfmax")


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
        "crosses",
        "direct",
        "flops",
        "function",
        "index",
        "instruction",
        "iterations",
        "kind",
        "packed",
        "pipeline",
        "plain",
        "size",
        "stalls",
        "streaming",
        "switch",
        "takes_integer",
        "variants",
    )

    def __init__(self, index: int, instruction: Instruction, pipeline: FpuPipeline) -> None:
        self.index = index
        self.instruction = instruction
        self.kind = COMPUTE
        self.crosses = False
        """Whether it reads or writes integer registers."""
        self.direct = False
        """Whether it bypasses the sequencer, once that is empty: some moves between registers, switches of streams."""
        self.takes_integer = False
        self.packed = False
        """Whether it divides several lanes, or takes their roots."""
        self.function: Function = _nothing
        self.pipeline = pipeline
        """The pipeline of the FPU; unused by loads, stores and switches of streams."""
        self.iterations: Iterations | None = None
        """Iterations of a division or root, as a function of the operands; None for other operations."""
        self.size = 3
        self.switch = False
        """Whether streams are on after the instruction."""
        self.flops = 0
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
        self._fpu = Fpu(configuration.timing)

    def trap(self, instruction: Instruction, message: str) -> SimulationError:
        """The error of an instruction."""
        return trap(self._source, instruction, message)

    def decode(self, index: int, instruction: Instruction) -> FloatOperation:
        """The operation of an instruction. Raises SimulationError if it is not modelled."""
        name = instruction.name
        operation = FloatOperation(index, instruction, self._fpu.pipeline(name))
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
        crossing = to_integer(name, instruction.rm) or packed_compare(name)
        incoming = from_integer(name)
        if crossing is not None:
            operation.function = crossing
        elif incoming is not None:
            operation.takes_integer = True
            operation.function = lambda a, b, c: incoming(int(a))
        elif name in self._functions:
            operation.function = self._functions[name]
        else:
            raise self.trap(instruction, refusal(name))
        operation.crosses = crossing is not None or incoming is not None
        operation.direct = operation.crosses and name not in self._configuration.crossings
        if divides(name):
            operation.iterations = self._iterations(instruction)
            operation.packed = name.startswith("v")
        if "m" in letters and instruction.rm not in (ROUNDING["rne"], ROUNDING["dyn"]) and crossing is None:
            raise self.trap(instruction, "only rounding to nearest is modelled")

    def _iterations(self, instruction: Instruction) -> Iterations:
        if not self._configuration.division:
            raise self.trap(
                instruction, "this core has no divider (feature xdiv_sqrt of the machine, Configuration.division)"
            )
        name = instruction.name
        letter = format_of(name)
        get = getter(letter)
        most = self._configuration.timing.iterations(letter)
        return iterations(
            name, letter, most, (lambda x: lanes_of(x, letter)) if name.startswith("v") else (lambda x: (get(x),))
        )

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


def refusal(name: str) -> str:
    """The reason why an instruction of the assembler is not simulated."""
    if name == "vfcpkb.s.s":
        return "the core does not decode this instruction: registers have no elements 2 and 3 of 32 bits"
    if name.endswith(".b"):
        return "numbers of 8 bits are not modelled; the simulator computes with 64, 32 and 16 bits"
    return "the simulator does not know this instruction"
