"""Twins of `ihmm.kernels.draws`: the generator on Python's own integers, and the laws of what is drawn."""

import numpy as np
from scipy import stats

BITS = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def splitmix64(state):
    """The next output of Steele, Lea and Flood's splitmix64, whose state moves on by GOLDEN each time."""
    z = (state + GOLDEN) & BITS
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & BITS
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & BITS
    return z ^ (z >> 31)


def seeded(key, number):
    """The four words of stream `number` under `key`: four outputs of splitmix64 from where the two are hashed to."""
    inner = splitmix64(number)
    start = splitmix64((key + inner - GOLDEN) & BITS)
    return [splitmix64((start + i * GOLDEN) & BITS) for i in range(4)]


def xoshiro256pp(words):
    """The next output of Blackman and Vigna's xoshiro256++, and the words after it."""

    def rotate(x, k):
        return ((x << k) | (x >> (64 - k))) & BITS

    s = list(words)
    result = (rotate((s[0] + s[3]) & BITS, 23) + s[0]) & BITS
    t = (s[1] << 17) & BITS
    s[2] ^= s[0]
    s[3] ^= s[1]
    s[1] ^= s[2]
    s[0] ^= s[3]
    s[2] ^= t
    s[3] = rotate(s[3], 45)
    return result, s


def uniforms(words, n):
    """The upper 53 bits of n outputs, as fractions."""
    out = []
    for _ in range(n):
        result, words = xoshiro256pp(words)
        out.append((result >> 11) / 2**53)
    return np.array(out)


def log_gamma_cdf(shape):
    """P(log G ≤ x), G ~ Gamma(shape, 1): scipy keeps to the logarithm where G itself would be zero."""
    return stats.loggamma(shape).cdf
