"""Names of kernels, arrays and machines: the allowed names, and the symbol of a kernel in the code of every target.

A name is an ASCII identifier, so that it is valid in the notation, in C, in assembly and in LLVM IR. Compilers,
assemblers and linkers give some identifiers a meaning: words of C, C++ and CUDA, functions of the run-time library,
registers. A kernel may have such a name; its symbol then differs slightly, in the same way in all targets.
"""

from __future__ import annotations

import re

from pdojo.errors import LoweringError

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_MACHINE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")

_KEYWORDS = """
alignas alignof asm auto bool break case char complex const constexpr continue default do double else enum extern false
float for fortran goto if imaginary inline int long nullptr register restrict return short signed sizeof static
static_assert struct switch thread_local true typedef typeof typeof_unqual union unsigned void volatile while
"""
_CPLUSPLUS = """
and and_eq bitand bitor catch char16_t char32_t char8_t class co_await co_return co_yield compl concept consteval
constinit const_cast decltype delete dynamic_cast explicit export friend mutable namespace new noexcept not not_eq
operator or or_eq private protected public reinterpret_cast requires static_cast template this throw try typeid typename
using virtual wchar_t xor xor_eq
"""
_CUDA = "atomicAdd blockDim blockIdx dim3 gridDim half half2 threadIdx uint3 warpSize"
_LIBRARY = """
abort abs accept access acos acosh alarm aligned_alloc asin asinh assert at_quick_exit atan atan2 atanh atexit atof
atoi atol atoll backtrace bcmp bcopy bind brk bsearch bzero calloc cbrt ceil chdir chmod clearenv clock clone close
connect copysign cos cosh daemon difftime div dlclose dlerror dlopen dlsym drem dup dup2 environ erf erfc errno err
execl execle execlp execv execve execvp exit exp exp10 exp2 expm1 fabs fclose fcntl fdim fdopen feof ferror fflush
fgetc fgets ffs fileno floor fma fmax fmin fmod fopen fork fprintf fputc fputs fread free frexp fscanf fseek fstat
ftell ftruncate fwrite gamma getc getchar getcwd getenv getpid gets hypot ilogb index ioctl isalnum isalpha isdigit
isfinite isinf isnan isnormal isspace j0 j1 jn kill labs ldexp ldiv lgamma link linux listen llabs lldiv llrint
llround localtime log log10 log1p log2 logb longjmp lrint lround lseek main malloc mbrtowc memccpy memchr memcmp
memcpy memmem memmove mempcpy memset mkdir mktime mmap modf mprotect mremap munmap nan nanosleep nearbyint nextafter
nexttoward nice open pause perror pipe poll popen posix_memalign pow pow10 printf ptrace putc putchar putenv puts
qsort quick_exit raise rand random read readlink realloc recv remainder remove remquo rename rewind rindex rint round
roundeven sbrk scalb scalbln scalbn scanf select send setenv setjmp sigaction siglongjmp signal signbit significand
sigsetjmp sin sincos sinh sleep snprintf socket sprintf sqrt srand srandom sscanf stat stderr stdin stdout stpcpy
strcat strchr strcmp strcpy strdup strerror strlen strncat strncmp strncpy strrchr strstr strtod strtof strtok strtol
strtold strtoll strtoul symlink sync syscall system tan tanh tgamma threads time times tolower toupper trunc truncate
umask ungetc unix unlink unsetenv usleep vfprintf vprintf vsnprintf vsprintf wait waitpid wcslen workspace write y0 y1
yn
"""
RESERVED = frozenset(f"{_KEYWORDS} {_CPLUSPLUS} {_CUDA} {_LIBRARY}".split())
"""Names that no generated function may have: words of the languages, library functions, pdojo's own parameters."""
_SHADOWED = frozenset(
    "gamma half index j0 j1 jn link read remainder select send significand sync time wait write y0 y1 yn".split()
)
"""Library functions that generated code never calls, so that parameters and variables may have their names."""

_REGISTERS = re.compile(
    # Registers of RISC-V, x86-64 and AArch64; special registers of all three.
    r"x\d+|[astf]\d+|f[ast]\d+|v\d+|ft?csr|frm|fflags|zero|ra|sp|gp|tp|fp|pc"
    r"|r\d+[dwb]?|[re]?([abcd]x|[sd]i|[sb]p|ip)|[abcd][lh]|[sd]il|[sb]pl|[cdefgs]s|[xyzt]mm\d+|k\d+|mm\d+|st|cr\d+|dr\d+"
    r"|[wbhdqz]\d+|lr|[wx]zr|wsp|nzcv|ffr|fpcr|fpsr|pn?\d+|mxcsr|rflags|eflags",
    re.IGNORECASE,
)
_BEGINNINGS = re.compile(
    r"_|pd_|g?omp_|GOMP_|kmpc?_|cuda|hip[A-Z_]|nv_|llvm_|pdojo_|pthread_|sched_|(M|FP|MATH)_|is(un|less|great)"
)
_ENDINGS = re.compile(
    r".*_t|.*_WORKSPACE|.*_constants|[fu]\d+x\d+|U?INT.*_(MIN|MAX|C)|NAN|INFINITY|HUGE_VAL.*|NULL|EOF|[A-Z]+_(MIN|MAX)"
)
"""Types, macros, and names that pdojo's code puts next to a function; one more `_` avoids all of them."""


def name_problem(name: str) -> str | None:
    """The reason why a kernel or an array cannot have a name; None if it can."""
    if not name:
        return "the name is empty"
    if _IDENTIFIER.fullmatch(name) is None:
        return f"{name[:60]!r} is no name: names are ASCII letters, digits and _, not a digit first, at most 200"
    return None


def is_machine_name(text: str) -> bool:
    """Whether a text can be the name of a machine: letters, digits, `_`, `-` and `.`; not the path of a file."""
    return _MACHINE.fullmatch(text) is not None and not text.endswith(".toml")


def symbol(name: str) -> str:
    """The symbol of a kernel in C, C headers, LLVM IR, object files and assembly; no two names share one.

    Raises LoweringError for a name that a kernel cannot have.
    """
    problem = name_problem(name)
    if problem is not None:
        raise LoweringError(f"kernel: {problem}")
    return _apart(name, taken=_is_reserved(name.rstrip("_")) or _REGISTERS.fullmatch(name.rstrip("_")) is not None)


def variable(name: str) -> str:
    """The name of an array's parameter or variable in C; different arrays have different names."""
    plain = name.rstrip("_")
    return _apart(name, taken=_is_reserved(plain) and plain not in _SHADOWED)


def _is_reserved(name: str) -> bool:
    """Whether `name` is a word of a language, a library function (or its f or l form: `sinf`), a type or a macro."""
    return bool({name, re.sub("[fl]$", "", name)} & RESERVED) or _ENDINGS.fullmatch(name) is not None


def _apart(name: str, *, taken: bool) -> str:
    """A name without another meaning; a name that equals a taken one up to final `_` also gets one more `_`."""
    return f"k{name}{'_' * taken}" if _BEGINNINGS.match(name.lstrip("k")) else f"{name}{'_' * taken}"
