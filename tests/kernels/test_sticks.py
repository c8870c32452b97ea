"""`kernels.sticks` and the arrays around it: what is opened follows the hierarchical Dirichlet process."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import betainc

from ihmm.emissions import NormalMean
from ihmm.kernels import sticks
from ihmm.model import Hyper
from ihmm.priors import FinitePrior
from ihmm.samplers._base import NewPath, finish
from ihmm.sticks import extend_phi, grow, open_below
from reference import sticks as twin
from reference.verdicts import assert_follows, assert_mean

pytestmark = pytest.mark.bounds

QUICK = settings(max_examples=40, deadline=None, derandomize=True)
STICKY = Hyper(gamma=3.0, concentration=6.0, stickiness=0.4)
BETA = [0.25, 0.05, 0.2, 0.5]  # three states, and half of the stick unbroken
HYPERS = st.builds(Hyper, st.floats(1e-3, 1e3), st.floats(1e-6, 1e6), st.floats(0, 0.99))


def a_theta(key=5, hyper=STICKY, n_fresh=0):
    return twin.break_sticks(twin.unarranged(twin.draw_with(BETA, hyper), key), n_fresh)


def copy_of(theta):
    return type(theta)(*(np.copy(field) if isinstance(field, np.ndarray) else field for field in theta))


@QUICK
@given(HYPERS, st.integers(0, 2**63 - 1), st.integers(1, 30))
def test_beta_and_every_row_always_sum_to_one(hyper, key, n_fresh):
    theta = a_theta(key, hyper, n_fresh)
    for state in range(3, 3 + n_fresh, 4):
        theta = twin.open_row(theta, state)
    theta = twin.break_sticks(theta, 3)
    assert twin.beta_of(theta).sum() == pytest.approx(1, abs=1e-12)
    for state in [-1, *np.flatnonzero(theta.row_of[: theta.size[0]] >= 0)]:
        row = twin.row_of(theta, state)
        assert row.min() > 0
        assert row.sum() == pytest.approx(1, abs=1e-12)


def test_a_row_opened_late_equals_the_row_opened_early():
    early = twin.break_sticks(twin.open_row(a_theta(n_fresh=2), 4), 12)
    late = twin.open_row(a_theta(n_fresh=14), 4)
    np.testing.assert_array_equal(twin.row_of(early, 4), twin.row_of(late, 4))


def test_rows_do_not_depend_on_the_order_in_which_they_are_opened():
    one, other = a_theta(n_fresh=6), a_theta(n_fresh=6)
    for state in (3, 7, 5):
        one = twin.open_row(one, state)
    for state in (5, 3, 7):
        other = twin.break_sticks(twin.open_row(other, state), 1)
    one = twin.break_sticks(one, 3)
    np.testing.assert_array_equal(twin.beta_of(one), twin.beta_of(other))
    for state in (-1, 0, 1, 2, 3, 5, 7):
        np.testing.assert_array_equal(twin.row_of(one, state), twin.row_of(other, state))


def test_every_row_and_every_key_has_numbers_of_its_own():
    # without self bias all rows have the same law, so equal streams would show as equal rows
    plain = STICKY._replace(stickiness=0.0)
    theta = a_theta(5, plain, n_fresh=4)
    for state in (3, 4):
        theta = twin.open_row(theta, state)
    parts = [twin.row_of(theta, state)[3:6] for state in (-1, 0, 1, 2, 3, 4)]
    parts += [twin.beta_of(theta)[3:6], twin.beta_of(a_theta(6, plain, n_fresh=4))[3:6]]
    assert len(np.unique(np.array(parts))) == 3 * len(parts)


def test_what_the_last_sweep_drew_is_kept_as_it_was():
    draw = twin.draw_with(BETA, STICKY)
    theta = twin.break_sticks(twin.unarranged(draw, 5), 8)
    np.testing.assert_array_equal(theta.beta[:3], draw.transitions.beta[:3])
    np.testing.assert_array_equal(twin.row_of(theta, -1)[:3], draw.transitions.initial[:3])
    for state in range(3):
        np.testing.assert_array_equal(twin.row_of(theta, state)[:3], draw.transitions.rows[state, :3])


@pytest.mark.law
def test_fresh_weights_break_the_rest_of_beta_as_gem_does():
    beta = np.array([twin.beta_of(a_theta(key, n_fresh=4)) for key in range(4000)])
    for k in range(3, 7):
        left = beta[:, k:].sum(axis=1)
        assert_follows(beta[:, k] / left, stats.beta(1, STICKY.gamma).cdf)
    for drawn, mean in zip(beta[:, 3:].T, twin.gem_mean(STICKY.gamma, 4), strict=True):
        assert_mean(drawn, 0.5 * mean)


@pytest.mark.law
@pytest.mark.parametrize("state", [-1, 0, 2])
def test_fresh_columns_break_the_rest_of_a_row_as_the_dirichlet_process_does(state):
    # given β, the broken rest is Dirichlet(m β_fresh, m β_rest), m = c for the initial row and α for the others
    mass = STICKY.concentration if state < 0 else STICKY.alpha
    rng = np.random.default_rng(0)
    pits, drawn = [], []
    for key in range(4000):
        theta = a_theta(key, n_fresh=4)
        part = twin.row_of(theta, state)[3:] / 0.2
        pits += subset_pit(rng, part, mass * twin.beta_of(theta)[3:])
        drawn.append(part)
    assert_follows(pits, stats.uniform.cdf)
    for part, mean in zip(np.transpose(drawn), twin.gem_mean(STICKY.gamma, 4), strict=True):
        assert_mean(part, mean)


@pytest.mark.law
@pytest.mark.parametrize("n_more", [0, 3])
@pytest.mark.parametrize("state", [3, 4, 6])
def test_a_fresh_row_is_dirichlet_with_its_self_bias(state, n_more):
    rng = np.random.default_rng(1)
    pits, excess = [], []
    for key in range(4000):
        theta = twin.break_sticks(twin.open_row(a_theta(key, n_fresh=4), state), n_more)
        beta, row = twin.beta_of(theta), twin.row_of(theta, state)
        concentration = twin.row_concentration(beta, STICKY, state)
        pits += subset_pit(rng, row, concentration)
        excess.append(row - concentration / concentration.sum())
    assert_follows(pits, stats.uniform.cdf)
    for column in np.transpose(excess):
        assert_mean(column, 0.0)


def subset_pit(rng, weights, concentration):
    """A random part of a Dirichlet vector is Beta: where the draw stands in that law, uniform on [0, 1].

    Parts too small to be told from the floor say nothing; which they are depends on the concentration alone.
    """
    inside = rng.random(len(weights)) < 0.5
    a, b = concentration[inside].sum(), concentration[~inside].sum()
    return [betainc(a, b, min(weights[inside].sum(), 1.0))] if min(a, b) > 0.05 else []


@QUICK
@given(st.floats(1e-3, 0.9), st.integers(0, 1000))
def test_before_a_pass_beta_is_broken_until_the_rest_is_below_the_threshold(threshold, key):
    draw = twin.draw_with(BETA, STICKY)
    theta, order = twin.opened(draw, key, threshold)
    beta = twin.beta_of(theta)
    assert beta[-1] < threshold
    n_states, _, n_explicit = theta.size
    assert (beta[:n_explicit] >= threshold).all()
    assert (beta[n_explicit:-1] < threshold).all()
    broken = twin.beta_of(twin.break_sticks(twin.unarranged(draw, key), n_states - 3))
    # the draw's states keep their numbers, then come the fresh ones that are explicit, then the other fresh ones
    fresh = broken[3:-1]
    numbered = np.concatenate([broken[:3], fresh[fresh >= threshold], fresh[fresh < threshold]])
    assert sorted(order) == list(range(3 + (fresh >= threshold).sum()))
    np.testing.assert_array_equal(beta[: len(order)], numbered[order])
    np.testing.assert_array_equal(beta[len(order) : -1], numbered[len(order) :])
    # and no further than needed, but for the rounding of the sum
    assert n_states == 3 or broken[-2:].sum() >= threshold * (1 - 1e-15)


@QUICK
@given(st.floats(1e-3, 0.9), st.integers(0, 1000))
def test_before_a_pass_rows_are_broken_no_further_than_the_explicit_states(threshold, key):
    theta, order = twin.opened(twin.draw_with(BETA, STICKY), key, threshold)
    np.testing.assert_array_equal(theta.known[: theta.size[1]], len(order))
    known = theta.rows[: theta.size[1], : len(order)].copy()
    theta = twin.all_known(theta)
    np.testing.assert_array_equal(theta.rows[: theta.size[1], : len(order)], known)


@QUICK
@given(st.floats(1e-3, 0.9), st.integers(0, 1000))
def test_arrange_puts_exactly_the_explicit_states_first_and_moves_rows_with_them(threshold, key):
    theta = a_theta(key, n_fresh=9)
    for state in (4, 8):
        theta = twin.open_row(theta, state)
    theta = twin.all_known(theta)
    before = copy_of(theta)
    order = np.empty(12, np.int64)
    sticks.arrange(theta, threshold, order)
    n_explicit = theta.size[2]
    assert sorted(order) == list(range(12))
    assert (theta.beta[:n_explicit] >= threshold).all()
    assert (theta.beta[n_explicit:12] < threshold).all()
    np.testing.assert_array_equal(theta.beta[:12], before.beta[order])
    np.testing.assert_array_equal(theta.row_of[:12], before.row_of[order])
    np.testing.assert_array_equal(theta.rest[:6], before.rest[:6])
    np.testing.assert_array_equal(theta.rows[:6, :12], before.rows[:6, order])
    assert theta.left[11] == before.left[11]
    np.testing.assert_allclose(theta.left[:12], 1 - np.cumsum(theta.beta[:12]), atol=1e-12)


@QUICK
@given(st.floats(1e-3, 0.9), st.integers(0, 1000), st.integers(0, 5))
def test_the_tail_of_a_row_is_what_lies_outside_the_explicit_set(threshold, key, n_more):
    theta, _ = twin.opened(twin.draw_with(BETA, STICKY), key, threshold)
    theta = twin.break_sticks(theta, n_more)
    fresh = np.flatnonzero(theta.row_of[: theta.size[0]] < 0)
    if len(fresh):
        theta = twin.open_row(theta, fresh[-1])
    theta = twin.all_known(twin.break_sticks(theta, n_more))
    n_states, n_rows, n_explicit = theta.size
    rows = theta.rows[:n_rows, :n_states]
    np.testing.assert_allclose(theta.tail[:n_rows], rows[:, n_explicit:].sum(axis=1) + theta.rest[:n_rows], rtol=1e-12)
    np.testing.assert_allclose(
        theta.reach[:n_rows, n_explicit:n_states], np.cumsum(rows[:, n_explicit:], axis=1), rtol=1e-12
    )


@pytest.mark.parametrize("n_fresh", [0, 3, 16])
def test_grow_keeps_everything_and_makes_room(n_fresh):
    theta = a_theta(n_fresh=n_fresh)
    for state in range(3, 3 + n_fresh):
        theta = twin.open_row(theta, state)
    theta = twin.all_known(theta)
    larger = grow(copy_of(theta))
    assert larger.size[0] < len(larger.beta)
    assert larger.size[1] < len(larger.rest)
    n_states, n_rows, _ = theta.size
    for field in theta._fields:
        old, new = np.asarray(getattr(theta, field)), np.asarray(getattr(larger, field))
        used = dict.fromkeys(("beta", "left", "row_of"), (n_states,)) | dict.fromkeys(
            ("rows", "reach"), (n_rows, n_states)
        )
        used |= dict.fromkeys(("known", "own", "rest", "tail", "streams"), (n_rows,))
        part = tuple(slice(size) for size in used.get(field, old.shape))
        np.testing.assert_array_equal(new[part], old[part], err_msg=field)
    # and what comes next is what would have come
    roomy = twin.break_sticks(twin.open_row(twin.break_sticks(larger, 3), n_states + 1), 2)
    other = twin.break_sticks(twin.open_row(twin.break_sticks(theta, 3), n_states + 1), 2)
    for state in (-1, 0, n_states + 1):
        np.testing.assert_array_equal(twin.row_of(roomy, state), twin.row_of(other, state))


def test_fresh_phi_does_not_depend_on_how_much_is_asked_for_at_once():
    emission, phi = NormalMean(), twin.draw_with(BETA, STICKY).phi
    step_by_step = phi
    for n in (4, 5, 20, 41):
        step_by_step = extend_phi(emission, np.uint64(9), step_by_step, n)
    at_once = extend_phi(emission, np.uint64(9), phi, 41)
    np.testing.assert_array_equal(step_by_step.mean[:41], at_once.mean[:41])
    np.testing.assert_array_equal(at_once.mean[:3], phi.mean)
    assert len(np.unique(at_once.mean)) == len(at_once.mean)


def test_after_a_pass_the_states_of_the_path_are_kept_and_the_others_folded_into_the_rest():
    draw = twin.draw_with(BETA, STICKY)
    theta, order = twin.opened(draw, 3, 0.1)
    theta = twin.break_sticks(theta, 2)
    newborn = [theta.size[0] - 1, theta.size[0] - 2]  # opened during the pass
    where = np.argsort(order)
    path = np.array([newborn[0], where[2], where[0], newborn[1], where[2]])
    weights = theta.beta[path].copy()
    reference = where[[0, 2, 0, 1, 1]]
    phi = np.arange(theta.size[0])  # by column
    update, info = finish(NewPath.of(path.copy(), reference), theta, order, phi, draw)
    states, beta, kept = update.states, update.beta, update.phi
    np.testing.assert_array_equal(kept[states], path)
    np.testing.assert_array_equal(beta[states], weights)
    assert beta.sum() == pytest.approx(1, abs=1e-12)
    # the old ones in their old order, then the newborn in order of birth
    assert states.tolist() == [3, 1, 0, 2, 1]
    assert info.n_born == 2
    assert info.update_rate == 3 / 5


@QUICK
@given(st.floats(1e-6, 0.1), st.integers(0, 1000))
def test_all_rows_can_be_opened_until_what_is_left_of_each_is_below_a_limit(limit, key):
    draw = twin.draw_with(BETA, STICKY)
    theta = open_below(draw, twin.INFINITE, np.uint64(key), limit)
    n_states = theta.size[0]
    np.testing.assert_array_equal(theta.row_of[:n_states], np.arange(n_states) + 1)
    assert theta.rest[: n_states + 1].max() < limit
    # the same θ as a pass of the other kind would open
    other = twin.break_sticks(twin.unarranged(draw, key), n_states - 3)
    for state in range(3, n_states):
        other = twin.open_row(other, state)
    np.testing.assert_array_equal(twin.beta_of(theta), twin.beta_of(other))
    for state in range(-1, n_states):
        np.testing.assert_array_equal(twin.row_of(theta, state), twin.row_of(other, state))


@pytest.mark.law
def test_a_finite_model_breaks_the_rest_of_beta_into_equal_parts():
    # β_fresh / β_rest ~ Dirichlet(γ/L, …, γ/L), and there the stick ends
    n_total, rng, pits = 7, np.random.default_rng(2), []
    for key in range(4000):
        theta, order = twin.opened(twin.draw_with(BETA, STICKY), key, 0.0, FinitePrior(n_total))
        assert len(order) == n_total
        assert twin.beta_of(theta)[-1] < 1e-290
        pits += subset_pit(rng, theta.beta[:n_total][order >= 3] / 0.5, np.full(4, STICKY.gamma / n_total))
    assert_follows(pits, stats.uniform.cdf)


def test_equal_weights_stay_equal():
    hyper = STICKY._replace(gamma=np.inf)
    draw = twin.draw_with([0.2, 0.2, 0.2, 0.4], hyper)
    theta, _ = twin.opened(draw, 1, 0.0, FinitePrior(5, gamma=None))
    np.testing.assert_allclose(theta.beta[:5], 0.2, rtol=1e-12)
    assert theta.size[0] == 5
