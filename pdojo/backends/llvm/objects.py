"""Kernels as object code: compiled in one process, loaded by another."""

from __future__ import annotations

import base64
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

import llvmlite.binding as llvm

from pdojo.backends.calling.arrays import Parameter
from pdojo.backends.llvm import optimize
from pdojo.backends.llvm.build import KernelIR
from pdojo.backends.llvm.openmp import FUNCTIONS, runtime
from pdojo.backends.llvm.optimize import Effort, Processor, processor
from pdojo.backends.llvm.tiles import permit_tiles
from pdojo.dialect.attributes import Intent

JSON: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class ObjectCode:
    """Relocatable machine code of one kernel, for the processor on which it was compiled."""

    name: str
    """Symbol of the kernel's function."""
    code: bytes
    shared_bytes: int
    """Bytes of workspace shared by all threads."""
    thread_bytes: int
    """Bytes of workspace for each thread."""
    parallel: bool
    """Whether the kernel calls an OpenMP runtime."""
    tiles: bool
    """Whether the kernel needs permission to use AMX tiles."""
    arguments: tuple[Parameter, ...]
    """The arrays that the function takes, in order; from JSON, without expressions of extents and ranges of indices."""
    binding: ObjectCode | None = None
    """The code that computes the kernel's constants; None if it has none. `code` then has the other functions."""

    def to_json(self) -> JSON:
        """A JSON object that `from_json` reads."""
        binding = None if self.binding is None else self.binding.to_json()
        arguments = [asdict(replace(each, extents=(), indices=None)) for each in self.arguments]
        code = base64.b64encode(self.code).decode()
        return {**self.__dict__, "code": code, "arguments": arguments, "binding": binding}

    @staticmethod
    def from_json(data: JSON) -> ObjectCode:
        """The code that `to_json` wrote."""
        values = dict(data)
        values["code"] = base64.b64decode(data["code"])
        values["arguments"] = tuple(
            Parameter(p["name"], p["dtype"], tuple(p["shape"]), Intent(p["intent"]), p["alignment"], p["constant"])
            for p in data["arguments"]
        )
        values["binding"] = None if data["binding"] is None else ObjectCode.from_json(data["binding"])
        return ObjectCode(**values)


def assemble(source: KernelIR, arguments: tuple[Parameter, ...], effort: Effort = "full") -> ObjectCode:
    """Compile to object code. Raises LoweringError like `build`."""
    machine = source.processor.target_machine(effort)
    module = optimize.parse(source.text, jit=True)
    optimize.run_passes(module, machine, effort)
    code = machine.emit_object(module)
    return ObjectCode(
        source.name, code, source.shared_bytes, source.thread_bytes, source.parallel, source.tiles, arguments
    )


@dataclass(frozen=True, eq=False)
class LoadedObject:
    """Object code loaded in this process; it lives as long as the engine."""

    source: ObjectCode
    address: int
    engine: llvm.ExecutionEngine


def load(code: ObjectCode) -> LoadedObject:
    """Load object code for this processor. Raises LoweringError if the system lacks a runtime or a permission."""
    if code.tiles:
        permit_tiles()
    if code.parallel:
        library = runtime()
        for name in FUNCTIONS:
            llvm.add_symbol(name, library.address(name))
    host: Processor = processor()
    module = llvm.parse_assembly(f'target triple = "{host.triple}"')
    engine = optimize.engine(module, host.target_machine("search"))
    engine.add_object_file(llvm.ObjectFileRef.from_data(code.code))
    engine.finalize_object()
    return LoadedObject(code, engine.get_function_address(code.name), engine)
