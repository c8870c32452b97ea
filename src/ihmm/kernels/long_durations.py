"""Filter and smoother of a hidden semi-Markov model in which many ages are told apart.

A segment of state k that began at step s has, at step t, the mass

    entering_k(s) S_k(t − s + 1) Π_{τ = s … t} r_k(τ)        r_k(τ) = f(y_τ | φ_k) / p(y_τ | y_1 … y_{τ−1})

where S_k(a) = P(d ≥ a). The product is the same for all segments of a state, up to what it was at their beginning:
divided by that, masses at the beginning do not change any more, and all that is left to do at a step is to multiply
them by S_k(a) or P_k(a) = P(d = a) and to add them up, as fast as vectors can be multiplied.
"""

import math
from typing import NamedTuple

import numpy as np

from ihmm.kernels._jit import jit, reordered

TOO_SMALL, TOO_LARGE = 1e-100, 1e100  # products between these are not applied


class Laws(NamedTuple):
    """The duration laws of L states. From age n_ages on, which segments seldom reach, the hazard is constant."""

    n_ages: np.ndarray  # (L,)
    ends: np.ndarray  # (L, A): P(d = a) at column A − a, for a < n_ages
    goes_on: np.ndarray  # (L, A): P(d > a) at column A − a, for a < n_ages
    first: np.ndarray  # (L, A): hazard of the first segment of a sequence at age a, in column a − 1
    last: np.ndarray  # (L,): hazard from age n_ages on


@jit
def filter_long(laws, density, starts, initial, rows, ratio, entering, leaving, filtered, total):
    """p(s_t = k | y_1 … y_t) in `filtered` (T, L), and p(y_t | y_1 … y_{t−1}) in `total`, up to the factors of the
    densities. Returns the smallest of these.

    `entering` and `leaving` (T, L) receive the probabilities that a segment begins at step t, given the steps before,
    or ends there, given the steps up to t; `ratio` (T, L) the r_k(t).
    """
    n_ages, ends, goes_on, first, last = laws
    n_steps, n_states = density.shape
    room = ends.shape[1]
    begun = np.zeros((n_states, n_steps))  # masses at the beginning, divided by the product up to there
    product, of_first, old = np.ones(n_states), np.zeros(n_states), np.zeros(n_states)
    staying = np.empty(n_states)
    start, smallest = 0, math.inf
    for t in range(n_steps):
        if starts[t]:
            start = t
            for k in range(n_states):
                of_first[k], old[k], product[k], staying[k] = initial[k], 0.0, 1.0, initial[k]
                entering[t, k] = 0.0
        else:
            for k in range(n_states):
                # segments that began at steps low … t − 1 are t − low … 1 steps old; the first one of all is not here
                low = max(start + 1, t - n_ages[k] + 1)
                begin = room - (t - low)
                end, on = two_products(begun[k, low:t], ends[k, begin:], goes_on[k, begin:])
                hazard = first[k, min(t - start, n_ages[k]) - 1]
                leaving[t - 1, k] = product[k] * end + of_first[k] * hazard + old[k] * last[k]
                of_first[k] *= 1.0 - hazard
                old[k] *= 1.0 - last[k]
                staying[k] = product[k] * on + of_first[k] + old[k]
                if t - low == n_ages[k] - 1:
                    old[k] += product[k] * begun[k, low] * goes_on[k, begin]
            for k in range(n_states):
                entering[t, k] = 0.0
                for j in range(n_states):
                    entering[t, k] += leaving[t - 1, j] * rows[j, k]
        scale = 0.0
        for k in range(n_states):
            scale += (staying[k] + entering[t, k]) * density[t, k]
        total[t] = scale
        smallest = min(smallest, scale)
        for k in range(n_states):
            r = density[t, k] / scale
            ratio[t, k] = r
            filtered[t, k] = (staying[k] + entering[t, k]) * r
            begun[k, t] = entering[t, k] / product[k]
            of_first[k] *= r
            old[k] *= r
            product[k] *= r
            if not TOO_SMALL < product[k] < TOO_LARGE:
                apply_product(begun[k], max(start + 1, t - n_ages[k] + 1), t + 1, product[k])
                product[k] = 1.0
    return smallest


@jit
def smooth_long(laws, starts, rows, ratio, entering, leaving, probabilities):
    """Turn the filtered probabilities into smoothed ones, p(s_t = k | all y).

    With B_k(t) = p(y_{t+1} … | state k ends at t) and b_k(s) = p(y_s … | state k begins at s), relative to what is
    expected before, segments begin and end with probabilities entering b and leaving B; the probability of a state is
    that of the step after, less what begins there, plus what ends before.
    """
    n_ages, ends, goes_on, _, last = laws
    n_steps, n_states = probabilities.shape
    room = ends.shape[1]
    # in reverse order of the steps, as `ends` and `goes_on` are, and divided by the product from there on
    ended, aged = np.zeros((n_states, n_steps)), np.zeros((n_states, n_steps))
    product, whole, old = np.ones(n_states), np.ones(n_states), np.ones(n_states)
    future = np.ones(n_states)  # b of the step after
    stop = n_steps  # of the sequence
    for t in range(n_steps - 1, -1, -1):
        is_last = t + 1 == n_steps or starts[t + 1]
        place = n_steps - 1 - t
        if is_last:
            stop = t + 1
            for k in range(n_states):
                product[k], whole[k] = 1.0, 1.0
        else:
            for k in range(n_states):
                probabilities[t, k] = probabilities[t + 1, k] - entering[t + 1, k] * future[k]
        for k in range(n_states):
            out = 1.0
            if not is_last:
                out = 0.0
                for j in range(n_states):
                    out += rows[k, j] * future[j]
                probabilities[t, k] = max(probabilities[t, k] + leaving[t, k] * out, 0.0)
            ended[k, place] = 0.0 if is_last else out / product[k]
            old[k] = ratio[t, k] * (1.0 if is_last else last[k] * out + (1.0 - last[k]) * old[k])
            product[k] *= ratio[t, k]
            aged[k, place] = old[k] / product[k] if product[k] > 0.0 else 0.0
        for k in range(n_states):
            # a segment that begins here may end at steps t … high − 1, or be cut off by the end of the sequence
            high = min(stop, t + n_ages[k] - 1)
            low = n_steps - high
            begin = room - (high - t)
            end = product_of(ended[k, low : place + 1], ends[k, begin:])
            if high < stop:
                beyond = goes_on[k, begin] * aged[k, low - 1]
            else:
                beyond = whole[k] * (goes_on[k, begin + 1] if high - t > 1 else 1.0)
            future[k] = product[k] * (end + beyond)
            if not TOO_SMALL < product[k] < TOO_LARGE:
                low = max(n_steps - stop, place + 1 - n_ages[k])
                apply_product(ended[k], low, place + 1, product[k])
                apply_product(aged[k], low, place + 1, product[k])
                whole[k] *= product[k]
                product[k] = 1.0


@reordered
def two_products(x, y, z):
    """Σ_i x_i y_i and Σ_i x_i z_i."""
    first, second = 0.0, 0.0
    for i in range(len(x)):
        first += x[i] * y[i]
        second += x[i] * z[i]
    return first, second


@reordered
def product_of(x, y):
    """Σ_i x_i y_i."""
    total = 0.0
    for i in range(len(x)):
        total += x[i] * y[i]
    return total


@jit
def apply_product(values, begin, end, product):
    for i in range(begin, end):
        values[i] *= product
