"""Instruction set features and how a program finds out whether a processor has them.

x86-64: bits of CPUID (Intel SDM, volume 2A, CPUID; AMD APM, volume 3, appendix E). AArch64: bits of the auxiliary
vector (Linux, arch/arm64/include/uapi/asm/hwcap.h). RISC-V: bits of the auxiliary vector, a bit for each letter; the
length of the vector registers is read from the register `vlenb`. Names are LLVM's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pdojo.errors import UsageError

if TYPE_CHECKING:
    from pdojo.dialect.machines.machine import Machine

EAX, EBX, ECX, EDX = range(4)
_HWCAP, _HWCAP2 = 16, 26


@dataclass(frozen=True)
class FeatureTest:
    """A bit that the processor or the system reports."""

    leaf: int
    """CPUID's leaf, or the key of the auxiliary vector."""
    subleaf: int
    register: int
    bit: int


def _bits(leaf: int, subleaf: int, register: int, names: dict[str, int]) -> dict[str, tuple[FeatureTest, ...]]:
    return {name: (FeatureTest(leaf, subleaf, register, bit),) for name, bit in names.items()}


_X86 = {
    **_bits(1, 0, EDX, {"cx8": 8, "cmov": 15, "mmx": 23, "fxsr": 24, "sse": 25, "sse2": 26}),
    **_bits(1, 0, ECX, {"sse3": 0, "pclmul": 1, "ssse3": 9, "fma": 12, "cx16": 13, "sse4.1": 19, "sse4.2": 20}),
    **_bits(1, 0, ECX, {"crc32": 20, "movbe": 22, "popcnt": 23, "aes": 25, "xsave": 26, "avx": 28, "f16c": 29}),
    **_bits(7, 0, EBX, {"bmi": 3, "avx2": 5, "bmi2": 8, "adx": 19, "sha": 29}),
    **_bits(7, 0, EBX, {"avx512f": 16, "avx512dq": 17, "avx512ifma": 21, "avx512cd": 28, "avx512bw": 30}),
    **_bits(7, 0, EBX, {"avx512vl": 31}),
    **_bits(7, 0, ECX, {"avx512vbmi": 1, "avx512vbmi2": 6, "gfni": 8, "vaes": 9, "vpclmulqdq": 10}),
    **_bits(7, 0, ECX, {"avx512vnni": 11, "avx512bitalg": 12, "avx512vpopcntdq": 14}),
    **_bits(7, 0, EDX, {"avx512vp2intersect": 8, "amx-bf16": 22, "avx512fp16": 23, "amx-tile": 24, "amx-int8": 25}),
    **_bits(7, 1, EAX, {"avxvnni": 4, "avx512bf16": 5, "amx-fp16": 21, "avxifma": 23}),
    **_bits(7, 1, EDX, {"avxvnniint8": 4, "avxneconvert": 5, "avxvnniint16": 10}),
    **_bits(0x80000001, 0, ECX, {"sahf": 0, "lzcnt": 5, "sse4a": 6, "prfchw": 8, "xop": 11, "fma4": 16, "tbm": 21}),
    **_bits(0x80000001, 0, EDX, {"64bit": 29}),
}
_ARM = {
    **_bits(_HWCAP, 0, 0, {"fp-armv8": 0, "neon": 1, "crc": 7, "lse": 8, "rdm": 12, "rcpc": 15, "dotprod": 20}),
    **_bits(_HWCAP, 0, 0, {"aes": 3, "sha3": 17, "sve": 22, "fp16fml": 23}),
    "fullfp16": (FeatureTest(_HWCAP, 0, 0, 9), FeatureTest(_HWCAP, 0, 0, 10)),
    "sha2": (FeatureTest(_HWCAP, 0, 0, 5), FeatureTest(_HWCAP, 0, 0, 6)),
    **_bits(_HWCAP2, 0, 0, {"sve2": 1, "i8mm": 13, "bf16": 14}),
}
_RISCV = {
    **_bits(_HWCAP, 0, 0, {name: ord(name) - ord("a") for name in "acdfmv"}),
    # The length of the registers is tested apart.
    **{f"zvl{width}b": () for width in (32, 64, 128, 256, 512, 1024)},
}
TESTS = {"x86_64": _X86, "aarch64": _ARM, "riscv64": _RISCV}
"""Per architecture, the tests of each feature."""
ARCHITECTURES = tuple(TESTS)
"""The architectures of libraries."""

_STATES = {"avx": 0x6, "avx512": 0xE6, "amx": 0x60000}
"""Bits of XCR0 that the system sets if it keeps the registers of these features (Intel SDM, volume 1, chapter 13)."""


def detectable(machine: Machine) -> tuple[str, ...]:
    """The features of a machine whose presence a program can find out."""
    known = TESTS.get(machine.architecture, {})
    return tuple(feature for feature in machine.features if feature in known)


def feature_tests(machine: Machine) -> tuple[FeatureTest, ...]:
    """The tests for all features of a machine. Raises UsageError for a feature that cannot be found out."""
    known = TESTS[machine.architecture]
    unknown = [feature for feature in machine.features if feature not in known]
    if unknown:
        raise UsageError(
            f"level '{machine.name}' has the features {', '.join(unknown)}, which a library cannot detect; "
            f"leave them out of the machine's description"
        )
    return tuple(dict.fromkeys(test for feature in machine.features for test in known[feature]))


def state_of(machine: Machine) -> int:
    """The bits of XCR0 that the features of a machine need; 0 for other architectures than x86-64."""
    if machine.architecture != "x86_64":
        return 0
    found = 0
    for feature in machine.features:
        wanted = next((prefix for prefix in ("amx", "avx512") if feature.startswith(prefix)), None)
        if wanted is None and feature.startswith(("avx", "fma", "f16c", "xop", "vaes", "vpclmul")):
            wanted = "avx"
        found |= _STATES.get(wanted or "", 0)
    return found
