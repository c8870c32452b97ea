"""Settings of the memory allocator."""

import ctypes
from contextlib import suppress
from functools import cache

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # from malloc.h


@cache
def keep_memory() -> None:
    """Let the allocator of this process keep up to 256 MB of freed memory instead of returning it to the system.

    A sampler allocates and frees the same arrays in every sweep. Allocating their pages again takes up to a third of
    its run time, more if threads contend for it, and twice its run time in Dask workers, which return freed memory at
    once.
    """
    with suppress(OSError, AttributeError):  # not on Linux
        allocator = ctypes.CDLL("libc.so.6")
        allocator.mallopt(M_TRIM_THRESHOLD, 256 << 20)
        allocator.mallopt(M_MMAP_THRESHOLD, 32 << 20)
