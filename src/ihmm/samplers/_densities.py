"""Tables of densities f(y_t | φ_k), computed in blocks that fit in the cache."""

from collections.abc import Iterator

import numpy as np

from ihmm._typing import FloatArray, Phi
from ihmm.data import Data
from ihmm.emissions._parameters import size
from ihmm.kernels.layout import relate
from ihmm.model import Model

CACHED_CELLS = 30_000  # densities per block of a table, about what the cache holds
# Maximum number of time steps, and approximate number of densities, that a pass scores at a time. Threads wait for the
# interpreter lock between two blocks, so blocks are large.
MAX_BLOCK_STEPS, BLOCK_CELLS = 17_000, 200_000
MIN_BLOCK_STEPS = 64
MIN_LOG_DENSITY = -700.0  # of the smallest relative density: exponentials that underflow take ten times as long


def log_densities(model: Model, data: Data, phi: Phi) -> FloatArray:
    """log f(y_t | φ_k), (T, K), contiguous by time step."""
    out = np.empty((len(data.y), size(phi)))
    for steps, by_state in _in_blocks(model, data, phi):
        out[steps] = by_state.T
    return out


def relative_densities(model: Model, data: Data, phi: Phi) -> FloatArray:
    """f(y_t | φ_k), (T, K), relative to the largest at each time step."""
    out = np.empty((len(data.y), size(phi)))
    for steps, by_state in _in_blocks(model, data, phi):
        out[steps] = densities(by_state, by_state.max(axis=0))
    return out


def _in_blocks(model: Model, data: Data, phi: Phi) -> Iterator[tuple[slice, FloatArray]]:
    """Log densities by state, (K, B), for one block of time steps after the other."""
    block = max(MIN_BLOCK_STEPS, CACHED_CELLS // size(phi))
    for begin in range(0, len(data.y), block):
        steps = slice(begin, begin + block)
        yield steps, np.ascontiguousarray(model.log_density(data, phi, steps).T)


def densities(by_state: FloatArray, log_scale: FloatArray) -> FloatArray:
    """f(y_t | φ_k) / scale_t, (T, K), from a (K, T) table of logarithms; 0 below exp(MIN_LOG_DENSITY)."""
    out = np.empty(by_state.shape[::-1])
    relate(by_state, log_scale, MIN_LOG_DENSITY, out)
    return exponentials(out)


def exponentials(logs: FloatArray) -> FloatArray:
    """Densities from logarithms that are at least MIN_LOG_DENSITY, in place; 0 at that value."""
    np.exp(logs, out=logs)
    logs -= np.exp(MIN_LOG_DENSITY)
    return logs


def steps_at_a_time(n_states: int) -> int:
    """Number of time steps that a pass of particle Gibbs scores at a time."""
    return min(MAX_BLOCK_STEPS, max(MIN_BLOCK_STEPS, BLOCK_CELLS // n_states))
