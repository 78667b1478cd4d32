"""How the inner loops are compiled: by Numba, each at its first call. Import this where it is needed: it brings Numba.

The signatures are written out so that a read-only array needs no second compilation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from numba import njit


@cache
def can_store_compiled_code() -> bool:
    """Whether Numba finds a place on disk for what it compiles: without one it refuses to be asked."""
    try:
        njit(cache=True)(lambda: None)
    except RuntimeError:  # neither this folder nor the user's cache can be written
        return False
    return True


def compiled(signature: Any, **options: Any) -> Callable[[Callable], Callable]:
    """Compile a kernel when it is first called, so that nobody waits for the kernels of other scenarios."""

    def decorate(function: Callable) -> Callable:
        @cache
        def machine_code() -> Callable:
            # Nobody calls it from C, and the wrapper for it costs compile time.
            settings: Any = {"cache": can_store_compiled_code(), "no_cfunc_wrapper": True, **options}
            return njit(signature, **settings)(function)

        return wraps(function)(lambda *args: machine_code()(*args))

    return decorate
