"""Counting transitions, and the tables behind the counts."""

import math

import numpy as np

from ihmm.kernels._jit import jit
from ihmm.kernels.draws import uniform

DIRECT = 16  # customers up to which a table is decided one by one


@jit
def count_transitions(states, offsets, n_states):
    """n_jk, shape (K + 1, K): row 0 counts how often a sequence begins in k, row j + 1 the steps from j to k."""
    counts = np.zeros((n_states + 1, n_states), np.int64)
    for i in range(len(offsets) - 1):
        # Steps that stay are counted apart: adding to the same place in memory at every step takes twice as long
        previous, stayed = -1, 0
        for t in range(offsets[i], offsets[i + 1]):
            if states[t] == previous:
                stayed += 1
                continue
            counts[previous + 1, previous] += stayed
            counts[previous + 1, states[t]] += 1
            previous, stayed = states[t], 0
        counts[previous + 1, previous] += stayed
    return counts


@jit
def moments(states, values, n_states):
    """How many steps each state has, the average of their values and the sum of squares about it, added up in order."""
    count, average, square = np.zeros(n_states, np.int64), np.zeros(n_states), np.zeros(n_states)
    t = 0
    while t < len(states):
        k, begin = states[t], t
        so_far = average[k]
        while t < len(states) and states[t] == k:
            so_far += values[t]
            t += 1
        count[k] += t - begin
        average[k] = so_far
    for k in range(n_states):
        average[k] /= max(count[k], 1)
    t = 0
    while t < len(states):
        k = states[t]
        center, so_far = average[k], square[k]
        while t < len(states) and states[t] == k:
            so_far += (values[t] - center) * (values[t] - center)
            t += 1
        square[k] = so_far
    return count, average, square


@jit
def count_tables(stream, customers, concentration):
    """Σ_i Bernoulli(a / (a + i)), i = 0 … n − 1: the first customer always opens a table.

    For many customers the gaps are drawn instead: P(no table among customers i … l − 1) = Γ(l) Γ(a+i) / (Γ(i) Γ(a+l)),
    so one uniform and a bisection find the next table, and the cost grows with the tables, not with the customers.
    """
    tables = 1
    for i in range(1, min(customers, DIRECT)):
        tables += uniform(stream) * (concentration + i) < concentration
    i = DIRECT
    while i < customers:
        # the next table is opened by the first customer l with log P(none among i … l) < log u
        log_u = math.log(1.0 - uniform(stream))
        start = log_ratio(i, concentration)
        low, high = i, customers
        while low < high:
            middle = (low + high) // 2
            if log_ratio(middle + 1, concentration) - start < log_u:
                high = middle
            else:
                low = middle + 1
        if low == customers:
            break
        tables += 1
        i = low + 1
    return tables


@jit
def log_rise(x, n):
    """log x(x + 1)…(x + n − 1) for a whole number n; right for tiny and for huge x."""
    if x > DIRECT:
        return -log_ratio(x, n)
    if n > DIRECT:
        return math.lgamma(x + n) - math.lgamma(x)
    product = 1.0
    for i in range(int(n)):
        product *= x + i
    return math.log(product)


@jit
def log_half_step(x):
    """log Γ(x + ½) − log Γ(x), by its series where that is right to the last digits."""
    if x < 32.0:
        return math.lgamma(x + 0.5) - math.lgamma(x)
    inverse = 1.0 / x
    square = inverse * inverse
    return 0.5 * math.log(x) - inverse * (1.0 / 8.0 - square * (1.0 / 192.0 - square / 640.0))


@jit
def log_ratio(i, a):
    """log Γ(i) − log Γ(a + i) for i ≥ 16, by Stirling's series: lgamma would lose a ≪ 1 to cancellation."""
    i = float(i)
    x = a + i
    series = -a / (12.0 * i * x) - (1.0 / x**3 - 1.0 / i**3) / 360.0 + (1.0 / x**5 - 1.0 / i**5) / 1260.0
    return a - (i - 0.5) * math.log1p(a / i) - a * math.log(x) - series


@jit
def compact(path, rank, renamed):
    """Rename the states of the path 0 … K − 1 in order of `rank`; returns the old names of those kept.

    `rank` is a permutation of the states; `renamed` may be the path itself.
    """
    n_states = len(rank)
    visited = np.zeros(n_states, np.bool_)
    for t in range(len(path)):
        visited[path[t]] = True
    by_rank = np.empty(n_states, np.int64)
    for k in range(n_states):
        by_rank[rank[k]] = k
    kept = np.empty(n_states, np.int64)
    label = np.empty(n_states, np.int64)
    n_kept = 0
    for state in by_rank:
        if visited[state]:
            kept[n_kept] = state
            label[state] = n_kept
            n_kept += 1
    rename(path, label, renamed)
    return kept[:n_kept]


@jit
def rename(path, label, renamed):
    """The path with every state called by its label."""
    for t in range(len(path)):
        renamed[t] = label[path[t]]


@jit
def count_overlap(left, right, counts):
    """counts[a, b]: at how many steps one path is in state a and the other in state b."""
    for a in range(counts.shape[0]):
        for b in range(counts.shape[1]):
            counts[a, b] = 0
    for t in range(len(left)):
        counts[left[t], right[t]] += 1
