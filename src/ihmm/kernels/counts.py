"""Transition counts, table counts of the Chinese restaurant franchise, and logarithms of gamma ratios."""

import math

import numpy as np

from ihmm.kernels._jit import in_place, jit
from ihmm.kernels.draws import uniform

MAX_DIRECT = 16  # customers or factors up to which there are no shortcuts
MAX_GAP = 64.0  # customers per table up to which customers are drawn one by one: a bisection takes as long


@jit
def count_transitions(states, offsets, n_states):
    """n_jk, shape (K + 1, K): row 0 counts the sequences that begin in k, row j + 1 the transitions from j to k."""
    counts = np.zeros((n_states + 1, n_states), np.int64)
    for i in range(len(offsets) - 1):
        # Self-transitions are counted in a local variable: adding to one array entry at every step is twice as slow
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
def mark(positions, size):
    """An array of `size` flags, True at the given positions."""
    flags = np.zeros(size, np.bool_)
    for i in range(len(positions)):
        flags[positions[i]] = True
    return flags


@jit
def steps_in(states, k):
    """The time steps in state k, in order."""
    steps = np.empty(len(states), np.int64)
    n = 0
    for t in range(len(states)):
        if states[t] == k:
            steps[n] = t
            n += 1
    return steps[:n]


@in_place
def row_total(counts):
    """Σ_k n_k of one row."""
    number = 0
    for k in range(len(counts)):
        number += counts[k]
    return number


@jit
def moments(states, values, n_states):
    """For each state: number of steps, mean of their values, sum of squared deviations. Terms are added in order."""
    count, average, square = np.zeros(n_states, np.int64), np.zeros(n_states), np.zeros(n_states)
    t = 0
    while t < len(states):
        k, begin = states[t], t
        subtotal = average[k]
        while t < len(states) and states[t] == k:
            subtotal += values[t]
            t += 1
        count[k] += t - begin
        average[k] = subtotal
    for k in range(n_states):
        average[k] /= max(count[k], 1)
    t = 0
    while t < len(states):
        k = states[t]
        center, subtotal = average[k], square[k]
        while t < len(states) and states[t] == k:
            subtotal += (values[t] - center) * (values[t] - center)
            t += 1
        square[k] = subtotal
    return count, average, square


@in_place
def count_tables(stream, customers, concentration):
    """Σ_i Bernoulli(a / (a + i)), i = 0 … n − 1: the first customer always opens a table.

    Where tables are rare the gaps are drawn instead: P(no table among customers i … l − 1) is
    Γ(l) Γ(a+i) / (Γ(i) Γ(a+l)), so one uniform and a bisection find the next table, and the cost grows with the number
    of tables, not of customers.
    """
    tables = 1
    i = int(min(float(customers), max(MAX_DIRECT, MAX_GAP * concentration)))
    for customer in range(1, i):
        tables += uniform(stream) * (concentration + customer) < concentration
    while i < customers:
        # the next table is opened by the first customer l with log P(none among i … l) < log u
        log_u = math.log(1.0 - uniform(stream))
        start = log_gamma_ratio(i, concentration)
        low, high = i, customers
        while low < high:
            middle = (low + high) // 2
            if log_gamma_ratio(middle + 1, concentration) - start < log_u:
                high = middle
            else:
                low = middle + 1
        if low == customers:
            break
        tables += 1
        i = low + 1
    return tables


@in_place
def log_rise(x, n):
    """Log of the rising factorial x(x + 1)…(x + n − 1), n an integer; accurate for tiny and for huge x."""
    if x > MAX_DIRECT:
        return -log_gamma_ratio(x, n)
    if n > MAX_DIRECT:
        return math.lgamma(x + n) - math.lgamma(x)
    product = 1.0
    for i in range(int(n)):
        product *= x + i
    return math.log(product)


@in_place
def log_half_step(x):
    """log Γ(x + ½) − log Γ(x), by its asymptotic series where that is accurate to machine precision."""
    if x < 32.0:
        return math.lgamma(x + 0.5) - math.lgamma(x)
    inverse = 1.0 / x
    square = inverse * inverse
    return 0.5 * math.log(x) - inverse * (1.0 / 8.0 - square * (1.0 / 192.0 - square / 640.0))


@in_place
def log_gamma_ratio(i, a):
    """log Γ(i) − log Γ(a + i) for i ≥ 16, by Stirling's series: with lgamma, a ≪ 1 would be lost to cancellation."""
    i = float(i)
    x = a + i
    series = -a / (12.0 * i * x) - (1.0 / x**3 - 1.0 / i**3) / 360.0 + (1.0 / x**5 - 1.0 / i**5) / 1260.0
    return a - (i - 0.5) * math.log1p(a / i) - a * math.log(x) - series


@jit
def compact(path, rank, renamed):
    """Relabel the visited states 0 … K − 1 in order of `rank`; returns their old labels.

    `rank` is a permutation of the states; `renamed` may be `path` itself.
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


@in_place
def rename(path, label, renamed):
    """The state sequence with every state k replaced by label[k]."""
    for t in range(len(path)):
        renamed[t] = label[path[t]]


@in_place
def count_overlap(left, right, counts):
    """counts[a, b]: number of steps at which one state sequence is in state a and the other in state b."""
    for a in range(counts.shape[0]):
        for b in range(counts.shape[1]):
            counts[a, b] = 0
    # As in `count_transitions`: steps at which neither sequence changes are counted in a local variable
    a, b, stayed = 0, 0, 0
    for t in range(len(left)):
        if left[t] != a or right[t] != b:
            counts[a, b] += stayed
            a, b, stayed = left[t], right[t], 0
        stayed += 1
    counts[a, b] += stayed
