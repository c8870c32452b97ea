"""How arrays lie in memory."""

from ihmm.kernels._jit import jit


@jit
def transpose(source, target):
    """target = sourceᵀ, a few columns at a time so that both stay in the cache."""
    n_rows, n_columns = source.shape
    for begin in range(0, n_columns, 8):
        for k in range(n_rows):
            for t in range(begin, min(begin + 8, n_columns)):
                target[t, k] = source[k, t]
