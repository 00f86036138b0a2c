"""How the loops of this folder are compiled: the decorators, and instructions that Python has no word for.

The first run compiles (some seconds) and stores the machine code beside the sources, or in the user's cache directory
where that is not writable; every later one loads it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from distro_model.search.layout import Int, Words

Loop = TypeVar("Loop", bound=Callable[..., Any])


# Counting references to arrays would cost most of the time; a loop that makes no array can do without. The option is
# not in Numba's documentation, so it is not in its types either.
UNCOUNTED: dict[str, Any] = {"_nrt": False}


def kernel(loop: Loop) -> Loop:
    """A loop that makes no arrays."""
    return cast(Loop, njit(nogil=True, cache=True, error_model="numpy", **UNCOUNTED)(loop))


def allocating_kernel(loop: Loop) -> Loop:
    return cast(Loop, njit(nogil=True, cache=True, error_model="numpy")(loop))


def part_of_kernel(loop: Loop) -> Loop:
    return cast(Loop, njit(nogil=True, inline="always", error_model="numpy")(loop))


def _fetch(_: Any, array: Any, index: Any) -> Any:
    def generated(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), cgutils.voidptr_t)
        number = ir.IntType(32)
        prefetch = builder.module.declare_intrinsic(
            "llvm.prefetch", [cgutils.voidptr_t], ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t] + 3 * [number])
        )
        builder.call(prefetch, [address, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, index), generated


def _lowest_bit(_: Any, word: Any) -> Any:
    def generated(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return types.int64(word), generated


def _scalar(_: Any) -> Any:
    def generated(context: Any, builder: Any, _: Any, __: Any) -> Any:
        builder.function.attributes.add("noimplicitfloat")
        return context.get_dummy_value()

    return types.void(), generated


fetch = cast(Callable[[Words, Int], None], intrinsic(_fetch))
"""Ask for the cache line of `array[index]` without waiting for it."""

scalar = cast(Callable[[], None], intrinsic(_scalar))
"""Compile the kernel in which this stands without vector instructions: its loops are too short to gain from them."""

lowest_bit = cast(Callable[[np.uint64], int], intrinsic(_lowest_bit))
"""The position of the lowest bit that is set in a 64-bit word that is not 0."""
