"""Tables by state, (K, T), laid out step by step."""

from ihmm.kernels._jit import jit


@jit
def transpose(source, target):
    n_rows, n_columns = source.shape
    for t in range(n_columns):
        for k in range(n_rows):
            target[t, k] = source[k, t]


@jit
def relate(source, scale, least, target):
    """The transpose relative to the scale of each step, and nowhere below `least`."""
    n_rows, n_columns = source.shape
    for t in range(n_columns):
        for k in range(n_rows):
            target[t, k] = max(source[k, t] - scale[t], least)
