"""Random streams and draws for compiled code.

A stream is four 64-bit words, the state of a xoshiro256++ generator seeded from a key and a number. It is used instead
of a NumPy Generator for two reasons: the k-th new stick of a sweep needs its own stream, so that it does not depend on
which worker breaks it or when (every worker then sees the same infinite θ), and a uniform costs a third.
"""

import math

import numpy as np

from ihmm.kernels._jit import in_place

FLOOR = 1e-300  # smallest probability
MAX_LOG_DIFFERENCE = (
    1000.0  # 300 more than it takes to reach the floor: a difference of two log Gamma(a + 1) is never that large
)
MAX_RATE = 1e15  # of Poisson variates
SMALL_SHAPE = 0.3  # below it, rejection sampling of the logarithm is faster
ALWAYS_ACCEPT = -40.0  # exp(−eˣ) is 1 for all x below
GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)


@in_place
def seed_stream(stream, key, number):
    """Seed `stream` from a key and a number."""
    word = mix(np.uint64(key) + mix(np.uint64(number) + GOLDEN_RATIO))
    for i in range(4):
        word += GOLDEN_RATIO
        stream[i] = mix(word)


@in_place
def copy_stream(source, target):
    for i in range(4):
        target[i] = source[i]


@in_place
def mix(word):
    """The finaliser of splitmix64."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@in_place
def uniform(stream):
    """Uniform on [0, 1), 53 bits."""
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    total = s0 + s3
    result = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s0
    s2 ^= s0
    s3 ^= s1
    stream[2] = s2 ^ (s1 << np.uint64(17))
    stream[1] = s1 ^ s2
    stream[0] = s0 ^ s3
    stream[3] = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    return (result >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@in_place
def normal(stream):
    """Standard normal draw, by Marsaglia's polar method."""
    while True:
        x = 2.0 * uniform(stream) - 1.0
        y = 2.0 * uniform(stream) - 1.0
        square = x * x + y * y
        if 0.0 < square < 1.0:
            return x * math.sqrt(-2.0 * math.log(square) / square)


@in_place
def log_gamma(stream, shape):
    """Logarithm of a Gamma(shape, 1) draw, accurate for tiny shapes: log G(a) = log G(a+1) + log(U)/a."""
    if shape < SMALL_SHAPE:
        return log_gamma_small(stream, shape)
    return log_gamma_above_one(stream, shape + 1.0) + math.log(1.0 - uniform(stream)) / shape


@in_place
def log_gamma_small(stream, shape):
    """Logarithm of a Gamma(a, 1) draw for small a, by the method of Liu, Martin and Syring.

    Its density exp(a x − eˣ) is below exp(a x), and for x > 0 below exp(−1 − (1−a) x). Nearly all of its mass
    is to the left of 0, most of it so far left that nothing is rejected.
    """
    right = shape / (math.e * (1.0 - shape))  # mass of the envelope beyond 0; before 0 it is 1
    while True:
        u = (1.0 - uniform(stream)) * (1.0 + right)
        if u <= 1.0:
            x = math.log(u) / shape
            if x < ALWAYS_ACCEPT or uniform(stream) < math.exp(-math.exp(x)):
                return x
        else:
            x = -math.log(1.0 - uniform(stream)) / (1.0 - shape)
            if uniform(stream) < math.exp(1.0 + x - math.exp(x)):
                return x


@in_place
def log_gamma_above_one(stream, shape):
    """Logarithm of a Gamma(shape, 1) draw for shape ≥ 1, by the method of Marsaglia and Tsang."""
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(stream)
        v = 1.0 + c * x
        if v > 0.0:
            v = v * v * v
            log_v = math.log(v)
            if math.log(1.0 - uniform(stream)) < 0.5 * x * x + d * (1.0 - v + log_v):
                return math.log(d) + log_v


@in_place
def split(stream, a, b):
    """(v, 1 − v) with v ~ Beta(a, b); both are positive.

    The terms log(U)/a and log(U)/b of log G(a) − log G(b) are drawn first. If a or b is tiny, they differ by so much
    that v or 1 − v is at the floor whatever the other terms are, and these are not drawn.
    """
    a, b = max(a, FLOOR), max(b, FLOOR)
    difference = math.log(1.0 - uniform(stream)) / a - math.log(1.0 - uniform(stream)) / b
    if abs(difference) < MAX_LOG_DIFFERENCE:
        difference += log_gamma_above_one(stream, a + 1.0) - log_gamma_above_one(stream, b + 1.0)
    difference = min(max(difference, -700.0), 700.0)
    return max(1.0 / (1.0 + math.exp(-difference)), FLOOR), max(1.0 / (1.0 + math.exp(difference)), FLOOR)


@in_place
def log_beta(stream, a, b):
    """Logarithm of a Beta(a, b) draw."""
    difference = log_gamma(stream, b) - log_gamma(stream, a)
    return -(max(difference, 0.0) + math.log1p(math.exp(-abs(difference))))


@in_place
def draw_poisson(stream, rate):
    """The number of points of a Poisson process in [0, rate], by the method of Ahrens and Dieter.

    The n-th point is Gamma(n), n a little below the rate. If it is within the rate, the points after it are counted in
    the same way; else the n − 1 points before it are uniform.
    """
    count = 0
    rate = min(rate, MAX_RATE)
    while rate > 16.0:
        n = int(0.875 * rate)
        point = math.exp(log_gamma(stream, float(n)))
        if point > rate:
            return count + draw_binomial(stream, n - 1, rate / point)
        count, rate = count + n, rate - point
    product = 1.0 - uniform(stream)
    limit = math.exp(-rate)
    while product > limit:
        count += 1
        product *= 1.0 - uniform(stream)
    return count


@in_place
def draw_binomial(stream, n, p):
    """The number of n uniform points below p; halved at the median of the points, which is a Beta variate."""
    count = 0
    while n > 16:
        middle = 1 + n // 2
        point = math.exp(log_beta(stream, float(middle), float(n + 1 - middle)))
        if point <= p:
            count, n, p = count + middle, n - middle, (p - point) / (1.0 - point)
        else:
            n, p = middle - 1, p / point
    for _ in range(n):
        count += uniform(stream) < p
    return count


@in_place
def draw_index(stream, weight):
    """An index drawn with probability proportional to its weight; never one of weight zero."""
    total, last = 0.0, 0
    for q in range(len(weight)):
        total += weight[q]
        if weight[q] > 0.0:
            last = q
    u = uniform(stream) * total
    for q in range(last):
        u -= weight[q]
        if u < 0.0:
            return q
    return last
