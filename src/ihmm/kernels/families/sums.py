"""Statistics that are plain sums."""

from ihmm.kernels._jit import jit


@jit
def combine(prior, first, second, combined):
    """The statistics of two states together, but for the number of observations."""
    for i in range(1, len(combined)):
        combined[i] = first[i] + second[i]
