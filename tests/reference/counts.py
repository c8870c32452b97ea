"""Twins of `ihmm.kernels.counts`."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np


def count_transitions(sequences, n_states):
    """n_jk from a list of paths; row 0 is how often a path begins in k."""
    counts = np.zeros((n_states + 1, n_states), int)
    for path in sequences:
        counts[0, path[0]] += 1
        for j, k in pairwise(path):
            counts[1 + j, k] += 1
    return counts


def table_law(customers, concentration, most=None):
    """P(m tables), m = 0 … customers (or `most`): the sum of independent Bernoulli(a / (a + i)), i = 0 … n − 1."""
    size = customers if most is None else min(most, customers)
    law = np.zeros(size + 1)
    law[0] = 1.0
    for i in range(customers):
        p = concentration / (concentration + i)
        law[1:] = law[1:] * (1 - p) + law[:-1] * p
        law[0] *= 1 - p
    return law


def table_law_by_stirling(customers, concentration):
    """The same law, exactly: |s(n, m)| a^m / (a (a+1) … (a+n−1)) with unsigned Stirling numbers of the first kind."""
    a = Fraction(concentration)
    stirling = [1]  # |s(0, 0)|
    rising = Fraction(1)
    for n in range(customers):
        # |s(n+1, m)| = n |s(n, m)| + |s(n, m−1)|
        stirling = [n * old + new for old, new in zip([*stirling, 0], [0, *stirling], strict=True)]
        rising *= a + n
    return np.array([float(s * a**m / rising) for m, s in enumerate(stirling)])


def log_gamma_ratio(i, a):
    """log Γ(i) − log Γ(a + i), to fifty digits and then rounded."""
    with localcontext() as context:
        context.prec = 60
        return float(log_gamma(Decimal(i)) - log_gamma(Decimal(a) + Decimal(i)))


def log_gamma(x):
    """log Γ(x) by Stirling's series at x + 80, stepped down by Γ(x + 1) = x Γ(x)."""
    product = Decimal(1)
    for k in range(80):
        product *= x + k
    x += 80
    total = (x - Decimal("0.5")) * x.ln() - x + (2 * PI).ln() / 2
    for n in range(1, 25):
        b = bernoulli(2 * n)
        total += Decimal(b.numerator) / Decimal(b.denominator) / (2 * n * (2 * n - 1) * x ** (2 * n - 1))
    return total - product.ln()


def bernoulli(n):
    """B_n by Akiyama and Tanigawa's triangle."""
    row = [Fraction(0)] * (n + 1)
    for m in range(n + 1):
        row[m] = Fraction(1, m + 1)
        for j in range(m, 0, -1):
            row[j - 1] = j * (row[j - 1] - row[j])
    return row[0]


PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")
