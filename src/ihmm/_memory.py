"""Memory that is used over and over."""

import ctypes
from contextlib import suppress
from functools import cache

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of malloc.h


@cache
def keep_memory() -> None:
    """Have the allocator of this process keep what is freed, up to 256 MB, instead of giving it back to the system.

    A pass takes and frees the same few arrays in every sweep. To get them anew, page by page, takes up to a third of
    its time, more if threads have to wait for each other meanwhile, and twice its time in the workers of Dask, which
    give everything back at once.
    """
    with suppress(OSError, AttributeError):  # not on Linux
        allocator = ctypes.CDLL("libc.so.6")
        allocator.mallopt(M_TRIM_THRESHOLD, 256 << 20)
        allocator.mallopt(M_MMAP_THRESHOLD, 32 << 20)
