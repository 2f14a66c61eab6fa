"""Hold an object's symbols and libraries against what a kernel may call.

A filter, not a wall: it tells honest authors early what is not allowed. The wall is the jail.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cuda_sandbox.elf import Symbols

_MATHS = (
    "acos|acosh|asin|asinh|atan|atan2|atanh|cbrt|ceil|copysign|cos|cosh|erf|erfc|exp|exp10|exp2"
    "|expm1|fabs|fdim|floor|fma|fmax|fmin|fmod|frexp|hypot|ilogb|j0|j1|jn|ldexp|lgamma|llrint"
    "|llround|log|log10|log1p|log2|logb|lrint|lround|modf|nan|nearbyint|nextafter|nexttoward|pow"
    "|remainder|remquo|rint|round|roundeven|scalbln|scalbn|sin|sincos|sinh|sqrt|tan|tanh|tgamma"
    "|trunc|y0|y1|yn"
)
_LIBC = (
    "abort|exit|_exit|_Exit|__assert_fail|__stack_chk_fail|__errno_location|__tls_get_addr"
    "|__cxa_.*|_Unwind_.*|__gxx_personality_v0|__gmon_start__|_ITM_.*|__dso_handle"
    "|_GLOBAL_OFFSET_TABLE_|__libc_single_threaded|__cpu_model|__cpu_indicator_init"
    "|malloc|calloc|realloc|free|aligned_alloc|posix_memalign|memalign"
    "|(?:mem|str|wmem|wcs)[a-z]*|__(?:mem|str|v?f?printf|v?s?n?printf|f?puts)[a-z]*_chk"
    "|v?f?printf|v?sn?printf|puts|putchar|putc|fputc|fputs|fwrite|fflush|stdout|stderr"
    "|abs|labs|llabs|div|ldiv|lldiv|qsort|bsearch|rand|srand|rand_r|ato[ifl]|atoll"
    "|strto[a-z]+|__isoc(?:99|23)_[a-z]+|pthread_mutex_(?:un)?lock|__pthread_key_create"
    "|__once_proxy|pthread_once|_dl_relocate_static_pie"
)
_LIBCPP = (
    r"_Z(?:n[wa]|d[la])\w*|_ZT[VISH]\w*|_ZN?K?S[tosaibd]\w*|_ZNVK?St\w*|_ZG[VR]N?S\w*|_ZTHN\w*"
)
# What the compiler itself calls for types that the processor lacks: half, 128-bit integers.
_COMPILER = (
    r"__(?:extend|trunc|float|floatun|fix|fixuns)[bhsdxt][fi][bhsdxt][fi]2?"
    r"|__(?:add|sub|mul|div|neg|eq|ne|lt|le|gt|ge|unord)[hsdxt]f[23]"
    r"|__(?:mul|u?div|u?mod|u?divmod|ash[lr]|lshr)[sdt]i[34]|__powi[sdxt]f2"
)
_OPENMP = r"omp_\w+|GOMP_\w+|__kmpc_\w+|__kmp_\w+"
COMMON = (
    rf"(?:__)?(?:{_MATHS})[fl]?(?:_finite)?|_ZGV[a-z][NM]\d+[vl]+_\w+|{_LIBC}|{_LIBCPP}"
    rf"|{_OPENMP}|{_COMPILER}"
)
# Parts of the C++ library that reach outside, although their names look like the rest.
_OUTWARD = re.compile(
    r"_Z\w*(?:6thread|11this_thread|12__future_base|18condition_variable|10filesystem|6chrono"
    r"|13random_device|basic_filebuf|basic_[io]?fstream|13_Async_state)\w*|omp_get_w(?:time|tick)"
)
_LIBRARIES = (
    r"lib(?:c|m|mvec|dl|rt|pthread|stdc\+\+|gcc_s|gomp|omp|iomp5|c\+\+|c\+\+abi)\.so[.\d]*"
    r"|ld-linux[\w.-]*"
)
HINTS = (
    (r"cuda(?:Malloc|Free|Mem(?:Pool|Alloc)).*", "launch must not allocate; use workspace_bytes()"),
    (r"cuda\w*Synchronize", "launch only enqueues work and must not wait for it"),
    (r"cu(?:blas|dnn|fft|sparse|solver|rand)\w*", "a kernel computes by itself, without libraries"),
    (r"cu[A-Z]\w*|cudaGet(?:Driver|Func)\w*", "the driver is not linked; see the header's helpers"),
    (r"fopen|open\w*|read|write|\w*fstream\w*|\w*filesystem\w*", "a kernel has no files"),
    (r"\w*(?:clock|time|chrono)\w*", "a kernel has no clock"),
    (r"pthread_\w+|\w*thread\w*|fork", "threads come from OpenMP alone"),
)


@dataclass(frozen=True, slots=True)
class Rules:
    """What a backend's objects may call (regular expressions, matched in full)."""

    symbols: str = COMMON
    libraries: str = _LIBRARIES

    def complaint(self, found: Symbols) -> str:
        """Why an object is refused, naming the symbol; empty if it is not."""
        if "launch" not in found.defined:
            return "the source defines no function launch (see the prototype in the header)"
        for name in sorted(found.undefined):
            if _OUTWARD.fullmatch(name) or not re.fullmatch(self.symbols, name):
                return f"the kernel calls {name}, which is not allowed{_hint(name)}"
        for name in found.needed:
            if not re.fullmatch(self.libraries, name):
                return f"the kernel needs the library {name}, which is not allowed"
        return ""


def with_extra(symbols: str, libraries: str) -> Rules:
    """The common rules and more."""
    return Rules(f"{COMMON}|{symbols}", f"{_LIBRARIES}|{libraries}")


def _hint(name: str) -> str:
    hints = (hint for pattern, hint in HINTS if re.fullmatch(pattern, name))
    return next((f": {hint}" for hint in hints), "")
