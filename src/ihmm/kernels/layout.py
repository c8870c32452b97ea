"""How tables lie in memory."""

from ihmm.kernels._jit import jit


@jit
def relate(source, scale, least, target):
    """A table by state, (K, T), step by step: relative to the scale of each step, and nowhere below `least`."""
    n_rows, n_columns = source.shape
    for t in range(n_columns):
        for k in range(n_rows):
            target[t, k] = max(source[k, t] - scale[t], least)
