"""The ROM of the emulated computer: `firmware.s` as machine code, the table of exceptions, the reset vector.

The machine code is in `firmware.hex`, because LLVM's Python package has an assembler only for the computer's own
architecture. `python -m differential.bare.rom` in the folder `test` writes it again; a test compares.
"""

from __future__ import annotations

import struct
from pathlib import Path

import llvmlite.binding as binding

from differential.bare.elf import link
from pdojo.backends.llvm import optimize
from pdojo.dialect.machines.registry import machine

ROM = 0xFFFF_F000
"""The last page below 4 GiB, where the processor starts."""
_IDT = ROM + 0xC00
TABLES = 0x80_0000
"""Physical address of the page tables' root, and of the other contents of the memory; below are the stacks."""
MEMORY, _BLOCK = 128 << 20, 128 << 10
"""Bytes of memory, and of the blocks in which the emulator allocates it."""
RECORDS = 0xC000_0000
"""Virtual address of two pointers: to the record of the call in progress, and behind the last record."""
FIRST_RECORD = RECORDS + 64
STACK_TOP = 0xBF00_0000
"""Virtual address behind the stack of kernels."""
FAULT_STACK_TOP = 0xBE00_0000
"""Virtual address behind the stack of exceptions."""
ARGUMENTS = 80
RECORD = struct.Struct(f"<5Q{ARGUMENTS}q")
"""A call: the function; the outcome, error code, instruction and address of an exception; the arguments."""
PENDING, RETURNED, EXCEPTION = 0, 1, 2
"""Outcomes of a call; an exception's is `EXCEPTION` and its number."""

_ENTRIES = """start exception memset memcpy GOMP_parallel GOMP_loop_dynamic_start GOMP_loop_dynamic_next
GOMP_loop_end_nowait omp_get_thread_num omp_get_num_threads""".split()
FUNCTIONS = {name: ROM + 16 * number for number, name in enumerate(_ENTRIES)}
"""Addresses of functions; kernels may call those from `memset` on."""
_WITH_CODE = (8, 10, 11, 12, 13, 14, 17, 21)
"""Exceptions with which the processor pushes an error code."""
_CODE = Path(__file__).with_name("firmware.hex")


def rom() -> bytes:
    """The contents of the ROM."""
    contents = bytearray(0x1000)
    code = bytes.fromhex(_CODE.read_text())
    contents[: len(code)] = code
    for number in range(32):
        stub, gate = 0x800 + 16 * number, _IDT - ROM + 16 * number
        push = b"\x6a" + bytes([number])
        push = push if number in _WITH_CODE else b"\x6a\0" + push
        jump = b"\xe9" + struct.pack("<i", FUNCTIONS["exception"] - ROM - stub - len(push) - 5)
        contents[stub : stub + len(push + jump)] = push + jump
        address = ROM + stub
        struct.pack_into("<4HQ", contents, gate, address & 0xFFFF, 8, 0x8E01, address >> 16, 0)
    struct.pack_into("<Bh", contents, 0xFF0, 0xE9, -0xFF3)
    return bytes(contents)


def assembled() -> bytes:
    """The machine code of `firmware.s`, by LLVM's assembler on an x86-64 processor."""
    binding.initialize_native_asmparser()
    values = {
        **{"ROM": ROM, "IDT": _IDT, "TABLES": TABLES, "RECORDS": RECORDS, "STACK_TOP": STACK_TOP},
        **{"FAULT_STACK_TOP": FAULT_STACK_TOP, "ARGUMENTS": ARGUMENTS, "HEADER": RECORD.size - 8 * ARGUMENTS},
        **{"RETURNED": RETURNED, "MEMORY": MEMORY, "BLOCK": _BLOCK, "EXCEPTION": EXCEPTION},
    }
    lines = [f".set {name}, {value}" for name, value in values.items()]
    lines += _CODE.with_suffix(".s").read_text().splitlines()
    return link(object_code("\n".join(f'module asm "{line}"' for line in lines)), ROM, {}).contents


def object_code(text: str) -> bytes:
    """LLVM IR as an object file for AVX-512."""
    target = optimize.described_processor(machine("x86-64-avx512")).target_machine("full", jit=False)
    return target.emit_object(optimize.parse(text))  # pyright: ignore[reportUnknownMemberType]


if __name__ == "__main__":
    digits = assembled().hex()
    _CODE.write_text("".join(digits[at : at + 64] + "\n" for at in range(0, len(digits), 64)))
