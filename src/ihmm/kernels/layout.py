"""From log-densities by state to relative log-densities by time step."""

import numpy as np

from ihmm.kernels._jit import in_place, jit


@in_place
def relate(source, scale, least, target):
    """A (K, T) table as (T, K): relative to the scale of each step, and at least `least`."""
    n_rows, n_columns = source.shape
    for t in range(n_columns):
        for k in range(n_rows):
            target[t, k] = max(source[k, t] - scale[t], least)


@jit
def relate_with_tail(table, log_marginal, n_explicit, has_tail, least, target):
    """Log-densities of a block of steps, as the particle filter reads them.

    `target` receives those of the explicit states, and g_t in the last column if there is a tail, as (T, K): relative
    to the largest of each step, and at least `least`. In `table`, those of the tail become relative to g_t.
    """
    top = np.empty(len(log_marginal))
    for t in range(len(top)):
        top[t] = log_marginal[t] if has_tail else table[0, t]
    for k in range(n_explicit):
        for t in range(len(top)):
            top[t] = max(top[t], table[k, t])
    relate(table[:n_explicit], top, least, target)
    for t in range(len(top)):
        target[t, n_explicit] = max(log_marginal[t] - top[t], least) if has_tail else least
    for k in range(n_explicit, len(table)):
        for t in range(len(top)):
            table[k, t] -= log_marginal[t]
