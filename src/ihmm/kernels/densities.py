"""Normal log-densities in one pass. NumPy would make one pass per operation, and threads would wait for the GIL between
them."""

from ihmm.kernels._jit import jit


@jit
def log_normal(y, mean, factor, constant, out):
    """factor_k (y_t − mean_k)² − constant_k for every state and step, shape (K, T)."""
    for k in range(len(mean)):
        for t in range(len(y)):
            residual = y[t] - mean[k]
            out[k, t] = residual * residual * factor[k] - constant[k]


@jit
def log_normal_at(y, states, mean, factor, constant, out):
    """The same for the state of each step, shape (T,)."""
    for t in range(len(y)):
        k = states[t]
        residual = y[t] - mean[k]
        out[t] = residual * residual * factor[k] - constant[k]
