"""Conjugate families for code that integrates φ out: sufficient statistics, predictive densities and evidence.

A family is identified by a number (see `dispatch`), a prior and the sufficient statistics of each state, a flat array
whose first entry is the number of observations. Each family has one file with the same four functions:

    change_statistics(statistic, y, sign)       add an observation (sign 1) or remove it (sign −1)
    log_predictive(prior, statistic, y)         log p(y | the observations of a state)
    combine(prior, first, second, combined)     the statistics of two states together
    log_evidence(prior, statistic)              log ∫ Π f(y_t | φ) H(dφ), up to terms that do not change in a merge

and a docstring with the layout of its prior and of its statistics. The normal families keep terms of their predictive
density in the statistics, and compute them in `prepare`. `dispatch` calls them by number; it also skips missing
observations (NaN) and counts the others, so the families need not.

There are three kinds, told apart by the dimensions of `values` and of the prior: families of numbers, values (T,) and a
1-D prior; families of rows, values (T, D) and a 2-D prior; and products of families, see `product`, values (T, D, 1)
and a 3-D prior. Dimensions are known at compile time, so the compiler drops the branches of the other kinds.
"""

from typing import NamedTuple

import numpy as np

from ihmm.kernels._jit import inlined, jit
from ihmm.kernels.families import dispatch, product


class CompiledFamily(NamedTuple):
    """A conjugate family and the observations, as compiled code reads them."""

    family: int | np.ndarray  # its number, or the table of a product
    prior: np.ndarray
    values: np.ndarray  # one entry per time step; NaN where missing
    size: int  # length of a state's statistics


@inlined
def change_statistics(family, statistic, values, t, sign):
    """Add the observation of step t to a state's statistics (sign 1) or remove it (sign −1)."""
    if values.ndim == 3:
        product.change_statistics(family, statistic, values[t, :, 0], sign)
    elif values.ndim == 2:
        dispatch.change_row(family, statistic, values[t], sign)
    else:
        dispatch.change_number(family, statistic, values[t], sign)


@inlined
def log_predictive(family, prior, statistic, values, t):
    """log p(y_t | the observations of a state); 0 if y_t is missing."""
    if values.ndim == 3:
        return product.log_predictive(family, prior, statistic, values[t, :, 0])
    if values.ndim == 2:
        return dispatch.log_predictive_of_row(family, prior, statistic, values[t])
    return dispatch.log_predictive_of_number(family, prior, statistic, values[t])


@inlined
def prepare(family, prior, statistic):
    """Compute in advance what the next call of `log_predictive` would otherwise compute, in families of numbers."""
    if prior.ndim == 1:
        dispatch.prepare_number(family, prior, statistic)


@jit
def combine(family, prior, first, second, combined):
    """The statistics of two states' observations together; `combined` may be one of the two."""
    if prior.ndim == 3:
        product.combine(family, prior, first, second, combined)
    elif prior.ndim == 2:
        dispatch.combine_rows(family, prior, first, second, combined)
    else:
        dispatch.combine_numbers(family, prior, first, second, combined)


@jit
def log_evidence(family, prior, statistic):
    """log ∫ Π f(y_t | φ) H(dφ) over a state's observations, up to terms that do not change in a merge."""
    if prior.ndim == 3:
        return product.log_evidence(family, prior, statistic)
    if prior.ndim == 2:
        return dispatch.log_evidence_of_rows(family, prior, statistic)
    return dispatch.log_evidence_of_numbers(family, prior, statistic)


@jit
def gather_statistics(family, statistics, values, states):
    """Add every observation to the statistics of its state."""
    for t in range(len(states)):
        change_statistics(family, statistics[states[t]], values, t, 1.0)
