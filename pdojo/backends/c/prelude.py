"""Helper functions and types that C lacks, printed before the kernels if they are used."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pdojo.backends.c.math import FUSED, function_text
from pdojo.backends.c.spelling import CSpelling
from pdojo.dialect.functions import byte_width
from pdojo.math.functions import FUNCTIONS

_FIXED = {
    "pd_fused": FUSED,
    "pd_min": "static inline int64_t pd_min(int64_t a, int64_t b) { return a < b ? a : b; }",
    "pd_max": "static inline int64_t pd_max(int64_t a, int64_t b) { return a > b ? a : b; }",
    "pd_wrap": "static inline int64_t pd_wrap(int64_t a, int64_t count) { return a < 0 ? a + count : a; }",
    "pd_bf16_to_f32": """\
/* The bits of a bfloat16 are the upper half of those of a float. */
static inline float pd_bf16_to_f32(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float x;
  memcpy(&x, &wide, 4);
  return x;
}""",
    "pd_f32_to_bf16": """\
static inline uint16_t pd_f32_to_bf16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  if (x != x) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}""",
    "pd_f16_to_f32": """\
static inline float pd_f16_to_f32(uint16_t bits) {
  uint32_t magnitude = (uint32_t)(bits & 0x7fff) << 13, sign = (uint32_t)(bits & 0x8000) << 16;
  float x;
  memcpy(&x, &magnitude, 4);
  x *= 0x1p112f; /* the exponent was too small by 112 */
  memcpy(&magnitude, &x, 4);
  if ((bits & 0x7c00) == 0x7c00) magnitude |= 0x7f800000;
  magnitude |= sign;
  memcpy(&x, &magnitude, 4);
  return x;
}""",
    "pd_f32_to_f16": """\
static inline uint16_t pd_f32_to_f16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (x != x) return (uint16_t)(sign | 0x7e00);
  if (magnitude >= 0x47800000) return (uint16_t)(sign | 0x7c00);
  if (magnitude < 0x38800000) { /* denormal: the last place of 0.5 in float is that of f16 */
    float shifted = fabsf(x) + 0.5f;
    memcpy(&magnitude, &shifted, 4);
    return (uint16_t)(sign | (magnitude - 0x3f000000));
  }
  return (uint16_t)(sign | (magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000) >> 13);
}""",
    "pd_to_odd": """\
/* A double as float: itself, or the neighbour with an odd significand, so that a second rounding does not show. */
static inline float pd_to_odd(double x) {
  float nearest = (float)x;
  uint32_t bits;
  if ((double)nearest == x || x != x) return nearest;
  memcpy(&bits, &nearest, 4);
  bits = (bits - (fabs((double)nearest) > fabs(x))) | 1;
  memcpy(&nearest, &bits, 4);
  return nearest;
}""",
    "pd_fma_to_odd": """\
/* x * y + z rounded as by pd_to_odd; the product must be exact. */
static inline float pd_fma_to_odd(double x, double y, double z) {
  double product = x * y, sum = product + z, part = sum - product;
  double rest = (product - (sum - part)) + (z - part);
  float nearest = (float)sum;
  uint32_t bits;
  int fits = (double)nearest == sum;
  if (sum != sum || (fits && !(rest < 0 || rest > 0))) return nearest;
  memcpy(&bits, &nearest, 4);
  bits = (bits - (fits ? (rest < 0) != (sum < 0) : fabs((double)nearest) > fabs(sum))) | 1;
  memcpy(&nearest, &bits, 4);
  return nearest;
}""",
    "pd_f64_to_f16": "static inline uint16_t pd_f64_to_f16(double x) { return pd_f32_to_f16(pd_to_odd(x)); }",
    "pd_f64_to_bf16": "static inline uint16_t pd_f64_to_bf16(double x) { return pd_f32_to_bf16(pd_to_odd(x)); }",
    "pd_stream": """\
/* Stores past the caches where the compiler can: `to` is aligned to 16 bytes, of which `bytes` is a multiple. */
static inline void pd_stream(void *restrict to, const void *restrict from, size_t bytes) {
#if defined(__SSE2__)
  for (size_t k = 0; k < bytes; k += 16)
    _mm_stream_si128((__m128i *)((char *)to + k), _mm_loadu_si128((const __m128i *)((const char *)from + k)));
#else
  memcpy(to, from, bytes);
#endif
}""",
    "pd_stream_end": """\
/* Stores past the caches are seen by others before anything that follows. */
static inline void pd_stream_end(void) {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}""",
}
_FLOATING = {
    "maximum": """\
/* NaN wins, and -0 is below +0. */
static inline {T} {name}({T} a, {T} b) {{
  return a != a || b != b ? a + b : a > b ? a : b > a ? b : signbit(a) ? b : a;
}}""",
    "minimum": """\
/* NaN wins, and -0 is below +0. */
static inline {T} {name}({T} a, {T} b) {{
  return a != a || b != b ? a + b : a < b ? a : b < a ? b : signbit(a) ? a : b;
}}""",
    "unordered": """\
/* Whether one of them is NaN. */
static inline int {name}({T} a, {T} b) {{ return a != a || b != b; }}""",
    "differ": """\
/* Whether one is less than the other: false for NaN. */
static inline int {name}({T} a, {T} b) {{ return a < b || a > b; }}""",
    "maxnum": """\
/* A number wins over NaN. */
static inline {T} {name}({T} a, {T} b) {{ return a > b || b != b ? a : b; }}""",
    "minnum": """\
/* A number wins over NaN. */
static inline {T} {name}({T} a, {T} b) {{ return a < b || b != b ? a : b; }}""",
    "to_bits": """\
static inline {S} {name}({T} x) {{
  {S} bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}}""",
    "from_bits": """\
static inline {T} {name}({S} bits) {{
  {T} x;
  memcpy(&x, &bits, sizeof x);
  return x;
}}""",
}
_INTEGER = {
    "maxsi": "static inline {S} {name}({S} a, {S} b) {{ return a > b ? a : b; }}",
    "minsi": "static inline {S} {name}({S} a, {S} b) {{ return a < b ? a : b; }}",
    "maxui": "static inline {S} {name}({S} a, {S} b) {{ return ({U})a > ({U})b ? a : b; }}",
    "minui": "static inline {S} {name}({S} a, {S} b) {{ return ({U})a < ({U})b ? a : b; }}",
    "absi": "static inline {S} {name}({S} a) {{ return a < 0 ? ({S})(0 - ({U})a) : a; }}",
    "divsi": """\
/* By zero gives zero; the least number by -1 wraps. */
static inline {S} {name}({S} a, {S} b) {{ return b == 0 ? 0 : b == -1 ? ({S})(0 - ({U})a) : ({S})(a / b); }}""",
    "divui": """\
/* By zero gives zero. */
static inline {S} {name}({S} a, {S} b) {{ return b == 0 ? 0 : ({S})(({U})a / ({U})b); }}""",
    "remsi": """\
/* By zero leaves the dividend. */
static inline {S} {name}({S} a, {S} b) {{ return b == 0 ? a : b == -1 ? 0 : ({S})(a % b); }}""",
    "remui": """\
/* By zero leaves the dividend. */
static inline {S} {name}({S} a, {S} b) {{ return b == 0 ? a : ({S})(({U})a % ({U})b); }}""",
    "floordivsi": """\
/* By zero gives zero; the least number by -1 wraps. */
static inline {S} {name}({S} a, {S} b) {{
  if (b == 0 || b == -1) return b == 0 ? 0 : ({S})(0 - ({U})a);
  return ({S})(a / b - (a % b != 0 && (a < 0) != (b < 0)));
}}""",
    "shli": """\
/* By the width or more gives zero. */
static inline {S} {name}({S} a, {S} b) {{ return ({U})b < {w} ? ({S})((uint64_t)a << b) : 0; }}""",
    "shrui": """\
/* By the width or more gives zero. */
static inline {S} {name}({S} a, {S} b) {{ return ({U})b < {w} ? ({S})(({U})a >> b) : 0; }}""",
    "shrsi": """\
/* By the width or more gives the sign. */
static inline {S} {name}({S} a, {S} b) {{ return ({S})(a >> (({U})b < {w} ? b : {w} - 1)); }}""",
    "fptosi": """\
/* NaN gives zero, what does not fit the nearest number. */
static inline {S} {name}(double x) {{
  return x != x ? 0 : x <= -0x1p{v} ? INT{w}_MIN : x >= 0x1p{v} ? INT{w}_MAX : ({S})x;
}}""",
    "fptoui": """\
/* NaN gives zero, what does not fit the nearest number. */
static inline {S} {name}(double x) {{ return ({S})(!(x > 0) ? 0 : x >= 0x1p{w} ? UINT{w}_MAX : ({U})x); }}""",
}
_NEEDS = {
    "pd_f64_to_f16": ("pd_f32_to_f16", "pd_to_odd"),
    "pd_f64_to_bf16": ("pd_f32_to_bf16", "pd_to_odd"),
}


@dataclass
class Prelude:
    """The helpers that the kernels of one file need."""

    spelling: CSpelling = field(default_factory=CSpelling)
    threads: bool = False
    """Whether a kernel uses its thread's number."""
    _helpers: dict[str, str] = field(default_factory=dict[str, str])
    _fused: set[str] = field(default_factory=set[str])
    """The helpers that are called with fused multiply-add only: compilers warn about others that nothing calls."""
    _vectors: dict[str, str] = field(default_factory=dict[str, str])
    _templates: dict[str, str] = field(default_factory=dict[str, str])

    def use(self, name: str) -> str:
        """Add a helper (a fixed name, or `pd_KIND_DTYPE`) to the file; returns the name."""
        self._add(name)
        self._fused.discard(name)
        return name

    def _add(self, name: str) -> bool:
        """Add a helper, and the helpers that it needs; returns whether it is new."""
        for other in _NEEDS.get(name, ()):
            self.use(other)
        is_new = name not in self._helpers
        if is_new:
            text = self.spelling.helpers.get(name) or _FIXED.get(name) or self._function(name) or _generated(name)
            self._helpers[name] = text
        return is_new

    def _use_fused(self, name: str) -> str:
        if self._add(name):
            self._fused.add(name)
        return name

    def _function(self, name: str) -> str | None:
        """The text of an elementary function, whose own helpers are added; None for other helpers."""
        function, _, dtype = name.removeprefix("pd_").rpartition("_")
        spec = FUNCTIONS.get(f"math.{function}")
        if spec is None or spec.recipe is None:
            return None
        self.use("pd_fused")
        return function_text(spec, dtype, self._use_fused)

    def vector(self, dtype: str, lanes: int) -> str:
        """The type of vectors in memory, of any alignment; integers are unsigned, so that sums wrap."""
        name, definition = self.spelling.vector(dtype, lanes)
        self._vectors[name] = definition
        return name

    def template(self, name: str, text: str) -> None:
        """Add the C code of an intrinsic."""
        self._templates[name] = text.strip("\n")

    def text(self) -> str:
        """The beginning of the file."""
        parts = [self.spelling.head(threads=self.threads, streams="pd_stream" in self._helpers)]
        if self._vectors:
            parts.append("\n" + "\n".join(sorted(self._vectors.values(), key=_numbers)) + "\n")
        helpers = {name: self.spelling.helper(text) for name, text in self._helpers.items()}
        for name in self._fused:
            helpers[name] = f"#if PD_FMA\n{helpers[name]}\n#endif"
        return "".join([*parts, *(f"\n{text}\n" for text in (*helpers.values(), *self._templates.values()))])


def _numbers(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", text)]


def _generated(name: str) -> str:
    kind, _, dtype = name.removeprefix("pd_").rpartition("_")
    bits = 8 * byte_width(dtype)
    names = {"name": name, "S": f"int{bits}_t", "U": f"uint{bits}_t", "w": bits, "v": bits - 1}
    if kind in _FLOATING:
        return _FLOATING[kind].format(T="float" if dtype == "f32" else "double", **names)
    return _INTEGER[kind].format(**names)
