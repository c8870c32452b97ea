"""Twins of `ihmm.kernels.sticks`: what has been opened of β and π has a Dirichlet law, written down at once.

Here a θ is opened in the way the library opens it, and its law is said the way a book says it.
"""

import numpy as np

from ihmm.emissions.normal_mean import NormalMeanPhi
from ihmm.kernels import sticks
from ihmm.model import Draw, Transitions
from ihmm.priors import HDPPrior
from ihmm.sticks import grow, open_sticks
from ihmm.trajectory import Trajectory

INFINITE = HDPPrior()


def draw_with(beta, hyper, leftover=0.2):
    """A draw whose states have these β (the last entry: the rest) and rows of no particular shape."""
    n_states = len(beta) - 1
    weights = np.random.default_rng(8).uniform(0.5, 2, (n_states + 1, n_states))
    rows = np.empty((n_states + 1, n_states + 1))
    rows[:, :-1] = (1 - leftover) * weights / weights.sum(axis=1, keepdims=True)
    rows[:, -1] = leftover
    phi = NormalMeanPhi(np.linspace(-1.0, 1.0, n_states))
    return Draw(Trajectory(np.arange(n_states)), Transitions(np.array(beta), rows[0], rows[1:]), phi, hyper)


def opened(draw, key, threshold, prior=INFINITE):
    """θ before a pass, and which column stands where."""
    return open_sticks(draw, prior, np.uint64(key), threshold)


def unarranged(draw, key, prior=INFINITE):
    """θ as the last sweep left it: no stick broken, no state explicit."""
    return opened(draw, key, np.inf, prior)[0]


def break_sticks(theta, n):
    """The same θ with n more states."""
    for _ in range(n):
        if theta.size[0] == len(theta.beta):
            theta = grow(theta)
        sticks.break_stick(theta)
    return theta


def open_row(theta, state):
    """The same θ with the row of one more state."""
    if theta.size[1] == len(theta.rest):
        theta = grow(theta)
    sticks.open_row(theta, state)
    return theta


def beta_of(theta):
    """β over the states opened so far, and the rest."""
    n = theta.size[0]
    return np.append(theta.beta[:n], theta.left[n - 1])


def row_of(theta, state):
    """π_j over the states opened so far, and the rest; state −1 is the initial row."""
    r = 0 if state < 0 else theta.row_of[state]
    theta = with_row_known(theta, r)
    return np.append(theta.rows[r, : theta.size[0]], theta.rest[r])


def all_known(theta):
    """The same θ with every row broken as far as β is."""
    for r in range(theta.size[1]):
        theta = with_row_known(theta, r)
    return theta


def with_row_known(theta, r):
    while not sticks.extend_row(theta, r, theta.size[0], np.inf):
        theta = grow(theta)
    return theta


def row_concentration(beta, hyper, state):
    """c((1−ρ)β + ρδ_j), the Dirichlet parameters of row j; the initial row, state −1, has no self bias."""
    if state < 0:
        return hyper.concentration * beta
    own = np.zeros(len(beta))
    own[state] = 1.0
    return hyper.concentration * ((1 - hyper.stickiness) * beta + hyper.stickiness * own)


def gem_mean(gamma, n):
    """E β_k, k = 0 … n − 1, and of the rest, for β ~ GEM(γ)."""
    part = 1 / (1 + gamma)
    return np.append(part * (1 - part) ** np.arange(n), (1 - part) ** n)
