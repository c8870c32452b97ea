"""Direct-assignment Gibbs (Teh et al. 2006; sticky: Fox et al.): one s_t at a time, π and φ integrated out."""

import math

import numpy as np

from ihmm.kernels._jit import jit
from ihmm.kernels.draws import FLOOR, draw_index, split
from ihmm.kernels.families import change_statistics, log_predictive
from ihmm.kernels.sticks import ENDLESS


@jit
def reassign(t, stream, compiled, concentrations, n_total, sequence, states, counts, visits, statistics, beta):
    """Draw s_t for t, t + 1, … in turn, in place. Returns the first step at which the arrays had no room for a new
    state, or the number of steps. The last entry of β is the mass of the states not visited."""
    family, prior, values, _ = compiled
    gamma, concentration, stickiness = concentrations
    alpha, kappa = concentration * (1.0 - stickiness), concentration * stickiness
    capacity = len(visits)
    weight = np.empty(capacity + 1)
    empty = np.zeros(statistics.shape[1])  # the statistics of a new state
    while t < len(states):
        fresh = 0
        while fresh < capacity and visits[fresh] > 0:
            fresh += 1
        if fresh == capacity:
            return t

        # Remove s_t: its two transitions, its observation, and its state if no other step is in it
        state = states[t]
        previous = states[t - 1] if sequence[t] < 0 else -1
        following = states[t + 1] if t + 1 < len(states) and sequence[t + 1] < 0 else -1
        counts[previous + 1, state] -= 1
        if following >= 0:
            counts[state + 1, following] -= 1
        visits[state] -= 1
        change_statistics(family, statistics[state], values, t, -1.0)
        if visits[state] == 0:
            beta[capacity] += beta[state]
            beta[state] = 0.0

        # P(s_t = k) ∝ p(k | s_{t−1}) p(s_{t+1} | k) p(y_t | other observations of k)
        top = -math.inf
        n_visited = 0
        into = concentration if previous < 0 else alpha
        for k in range(capacity):
            weight[k] = -math.inf
            if visits[k] > 0:
                n_visited += 1
                arrive = counts[previous + 1, k] + into * beta[k] + (kappa if k == previous else 0.0)
                leave = 1.0
                if following >= 0:
                    stays = 1.0 if k == previous else 0.0
                    leave = counts[k + 1, following] + alpha * beta[following]
                    leave += kappa + stays if k == following else 0.0
                    leave /= counts[k + 1].sum() + concentration + stays
                weight[k] = math.log(max(arrive * leave, FLOOR))
                weight[k] += log_predictive(family, prior, statistics[k], values, t)
                top = max(top, weight[k])
        weight[capacity] = -math.inf
        if n_visited < n_total:
            leave = 1.0 if following < 0 else alpha * beta[following] / concentration
            weight[capacity] = math.log(max(into * beta[capacity] * leave, FLOOR))
            weight[capacity] += log_predictive(family, prior, empty, values, t)
            top = max(top, weight[capacity])
        for k in range(capacity + 1):
            weight[k] = math.exp(weight[k] - top)
        state = draw_index(stream, weight)

        # A new state takes the first free slot and its share of the rest of β
        if state == capacity:
            state = 0
            while visits[state] > 0:
                state += 1
            part, remainder = draw_share(stream, gamma, n_total, n_visited)
            beta[state] = max(beta[capacity] * part, FLOOR)
            beta[capacity] = max(beta[capacity] * remainder, FLOOR)
        states[t] = state
        counts[previous + 1, state] += 1
        if following >= 0:
            counts[state + 1, following] += 1
        visits[state] += 1
        change_statistics(family, statistics[state], values, t, 1.0)
        t += 1
    return t


@jit
def draw_share(stream, gamma, n_total, n_visited):
    """The share that a new state takes of the rest of β: Beta(1, γ), or its counterpart in a finite model."""
    if n_total == ENDLESS:
        return split(stream, 1.0, gamma)
    others = n_total - n_visited - 1
    if others == 0:
        return 1.0, FLOOR
    if gamma == math.inf:
        return 1.0 / (others + 1), 1.0 - 1.0 / (others + 1)
    return split(stream, 1.0 + gamma / n_total, others * gamma / n_total)
