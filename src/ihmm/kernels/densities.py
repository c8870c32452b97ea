"""Normal densities in one go: NumPy goes over all steps once for every operation, and in between threads wait for the
interpreter."""

from ihmm.kernels._jit import jit


@jit
def log_normal(y, mean, factor, constant, out):
    """factor_k (y_t − mean_k)² − constant_k, a table by state, (K, T)."""
    for k in range(len(mean)):
        for t in range(len(y)):
            residual = y[t] - mean[k]
            out[k, t] = residual * residual * factor[k] - constant[k]


@jit
def log_normal_at(y, states, mean, factor, constant, out):
    """The same for the state that each step has, (T,)."""
    for t in range(len(y)):
        k = states[t]
        residual = y[t] - mean[k]
        out[t] = residual * residual * factor[k] - constant[k]
