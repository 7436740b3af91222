"""Identifiers and types of C for the names and element types of a kernel."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pdojo.dialect.attributes import Intent
from pdojo.dialect.nest import Buffer

C_TYPES = {
    "f64": "double",
    "f32": "float",
    "f16": "uint16_t",
    "bf16": "uint16_t",
    "i64": "int64_t",
    "i32": "int32_t",
    "i16": "int16_t",
    "i8": "int8_t",
    "i1": "uint8_t",
}
"""What an element is in memory: of f16 and bf16 the bits; an i1 is 0 or 1."""

_KEYWORDS = """
alignas alignof auto asm bool break case char const constexpr continue default do double else enum extern false float
for goto if inline int long nullptr register restrict return short signed sizeof static static_assert struct switch
thread_local true typedef typeof union unsigned void volatile while
"""
_CPLUSPLUS = """
and bitand bitor catch class compl concept const_cast decltype delete dynamic_cast explicit export friend mutable
namespace new noexcept not operator or private protected public reinterpret_cast requires static_cast template this
throw try typeid typename using virtual wchar_t xor
"""
_LIBRARY = """
abs acos asin assert atan atan2 atof atoi bsearch calloc cbrt ceil copysign cos cosh div erf erfc errno exit exp exp2
expm1 fabs fdim floor fma fmax fmin fmod free frexp gamma hypot ilogb index isfinite isinf isnan isnormal j0 j1 jn
labs ldexp ldiv lgamma linux llabs lldiv llrint llround log log10 log1p log2 logb lrint lround main malloc memchr
memcmp memcpy memmove memset modf nan nearbyint nextafter pow printf putchar puts qsort rand realloc remainder remquo
rint round roundeven scalbn sin sinh signbit significand sqrt srand strlen system tan tanh tgamma threads trunc unix
workspace y0 y1 yn
"""
RESERVED = frozenset(f"{_KEYWORDS} {_CPLUSPLUS} {_LIBRARY}".split())
"""Names that a function of ours must not have: words of C and C++, the standard library's, our own parameters."""
_BESSEL = frozenset("j0 j1 jn y0 y1 yn gamma index remainder significand".split())
"""Functions of libraries that no code here calls, so that arrays may have their names."""


_IMPLEMENTATION = re.compile(
    r"_.*|pd_.*|omp_.*|.*_t|[fu]\d+x\d+|(M|FP|MATH)_.*|U?INT.*_(MIN|MAX|C)|NAN|INFINITY|HUGE_VAL.*|NULL|is(un|less|great).*"
)
"""Names that begin as those of the implementation, of its macros and types, and of our helpers and vectors do."""


class Names:
    """Identifiers of one C scope, each used once."""

    def __init__(self, taken: Iterable[str] = (), *, local: bool = False) -> None:
        """`local` for names of parameters and variables, `taken` for what they must not be called."""
        self._taken = set(taken)
        self._reserved = RESERVED - _BESSEL if local else RESERVED

    def fresh(self, name: str) -> str:
        """An identifier like `name`: with `_` behind it where C, its library or something here is called so."""
        spelled = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name)
        if spelled[:1].isdigit() or _IMPLEMENTATION.fullmatch(spelled):
            spelled = f"k{spelled}"
        while {spelled, re.sub("[fl]$", "", spelled)} & self._reserved or spelled in self._taken:
            spelled += "_"
        self._taken.add(spelled)
        return spelled


def parameter(buffer: Buffer, name: str) -> str:
    """The declaration of the pointer to an interface array."""
    const = "const " if buffer.intent is Intent.IN else ""
    return f"{const}{C_TYPES[buffer.dtype]} *restrict {name}"


def comment(buffer: Buffer, name: str) -> str:
    """One line that says what the array behind a pointer is: `x: f32 [4][8], read, aligned to 4 bytes`."""
    extents = "".join(f"[{extent}]" for extent in buffer.shape)
    uses = {Intent.IN: "read", Intent.OUT: "written", Intent.INOUT: "read and written"}
    assert buffer.intent is not None
    return f"{name}: {buffer.dtype} {extents}{' ' * bool(extents)}{uses[buffer.intent]}, aligned to {buffer.alignment}"
