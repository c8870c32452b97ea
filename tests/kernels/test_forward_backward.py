"""Forward–backward routines against the sum over all K^T paths, and against figures of another package."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

import ihmm
from ihmm.emissions.normal import NormalPhi
from ihmm.emissions.normal_mean import NormalMeanPhi
from ihmm.emissions.poisson import PoissonPhi
from ihmm.kernels import forward_backward as fb
from ihmm.samplers import beam

pytestmark = pytest.mark.bounds

RNG = np.random.default_rng(5)
N_STATES, N_STEPS = 3, 6
ONE, TWO = np.array([0, -1, -1, -1, -1, -1]), np.array([0, -1, 1, -1, -1, -1])
INITIAL = RNG.dirichlet(np.ones(N_STATES))
ROWS = RNG.dirichlet(np.ones(N_STATES), size=N_STATES)
DENSITY = RNG.gamma(1.0, size=(N_STEPS, N_STATES))


def log_joint_of_all_paths(sequence, initial=INITIAL, rows=ROWS, density=DENSITY):
    """Every path and its log p(s, y), one by one."""
    paths = np.array(list(itertools.product(range(len(initial)), repeat=len(sequence))))
    log_joint = np.zeros(len(paths))
    for t in range(len(sequence)):
        log_joint += np.log(density[t, paths[:, t]])
        log_joint += np.log(initial[paths[:, t]] if sequence[t] >= 0 else rows[paths[:, t - 1], paths[:, t]])
    return paths, log_joint


def filtered(sequence):
    out = np.empty((N_STEPS, N_STATES))
    log_predictive = np.empty(len(DENSITY))
    fb.filter_forward(DENSITY, sequence, INITIAL, ROWS, out, log_predictive)
    return out, log_predictive.sum()


@pytest.mark.parametrize("sequence", [ONE, TWO], ids=["one sequence", "two sequences"])
class TestAgainstEnumeration:
    def test_the_likelihood_is_the_sum_over_all_paths(self, sequence):
        _, log_joint = log_joint_of_all_paths(sequence)
        assert filtered(sequence)[1] == pytest.approx(logsumexp(log_joint), abs=1e-12)

    def test_smoothed_probabilities_are_those_of_the_paths_through_a_state(self, sequence):
        paths, log_joint = log_joint_of_all_paths(sequence)
        probability = np.exp(log_joint - logsumexp(log_joint))
        expected = np.array([[probability[paths[:, t] == k].sum() for k in range(N_STATES)] for t in range(N_STEPS)])
        smoothed, _ = filtered(sequence)
        fb.smooth(smoothed, sequence, ROWS)
        np.testing.assert_allclose(smoothed, expected, atol=1e-12)

    def test_filtered_probabilities_do_not_know_the_future(self, sequence):
        probabilities, _ = filtered(sequence)
        for t in range(N_STEPS):
            paths, log_joint = log_joint_of_all_paths(sequence[: t + 1])
            weight = np.exp(log_joint - logsumexp(log_joint))
            expected = [weight[paths[:, t] == k].sum() for k in range(N_STATES)]
            np.testing.assert_allclose(probabilities[t], expected, atol=1e-12)

    def test_the_most_probable_path_is_the_best_of_all(self, sequence):
        paths, log_joint = log_joint_of_all_paths(sequence)
        path = np.empty(N_STEPS, np.int64)
        value = fb.most_probable_path(np.log(DENSITY), sequence, np.log(INITIAL), np.log(ROWS), path)
        np.testing.assert_array_equal(path, paths[log_joint.argmax()])
        assert value == pytest.approx(log_joint.max(), abs=1e-12)

    def test_paths_sampled_backwards_have_their_posterior_frequencies(self, sequence):
        paths, log_joint = log_joint_of_all_paths(sequence)
        expected = np.exp(log_joint - logsumexp(log_joint))
        probabilities, _ = filtered(sequence)
        columns, path = np.ascontiguousarray(ROWS.T), np.empty(N_STEPS, np.int64)
        visits = np.zeros(len(paths))
        base = N_STATES ** np.arange(N_STEPS - 1, -1, -1)
        for key in range(60_000):
            fb.sample_backward(probabilities, sequence, columns, np.uint64(key), path)
            visits[path @ base] += 1
        assert chi_square_z(visits, expected) < 5

    @pytest.mark.parametrize("way", ["narrow", "wide", "faint"])
    def test_the_beam_filter_is_the_sum_over_the_paths_the_slices_allow(self, sequence, way):
        everything = np.vstack([ROWS, INITIAL])
        slices = np.full(N_STEPS, 0.25)
        paths, _ = log_joint_of_all_paths(sequence)
        allowed = np.ones(len(paths), bool)
        weight = np.ones(len(paths))
        for t in range(N_STEPS):
            taken = INITIAL[paths[:, t]] if sequence[t] >= 0 else ROWS[paths[:, t - 1], paths[:, t]]
            allowed &= taken > slices[t]
            weight *= DENSITY[t, paths[:, t]]
        expected = weight * allowed / (weight * allowed).sum()
        assert 1 < allowed.sum() < len(paths)

        order = np.argsort(-everything, axis=1)
        falling = np.take_along_axis(everything, order, axis=1)
        messages = beam.empty_messages(N_STEPS, N_STATES)
        if way == "narrow":
            assert fb.filter_beam(np.log(DENSITY), sequence, falling, order, slices, *messages)
        elif way == "wide":
            assert fb.filter_wide_beam(DENSITY, sequence, everything, slices, *messages)
        else:
            fb.filter_faint_beam(np.log(DENSITY), sequence, falling, order, slices, *messages)
        assert messages[0][-1] <= N_STEPS * N_STATES
        visits, path = np.zeros(len(paths)), np.empty(N_STEPS, np.int64)
        base = N_STATES ** np.arange(N_STEPS - 1, -1, -1)
        for key in range(40_000):
            fb.sample_beam(*messages, way == "faint", sequence, ROWS, slices, np.uint64(key), path)
            visits[path @ base] += 1
        assert visits[~allowed].sum() == 0
        assert chi_square_z(visits[allowed], expected[allowed]) < 5


def test_a_beam_is_wide_where_the_present_path_could_go_many_ways():
    rows, path, sequence = np.full((41, 40), 1 / 40), np.arange(1000) % 40, np.where(np.arange(1000), -1, 0)
    assert beam.is_wide(rows, np.full(1000, 0.02), path, sequence)
    assert not beam.is_wide(rows, np.full(1000, 0.03), path, sequence)


@pytest.mark.parametrize("wide", [True, False])
def test_a_beam_that_leaves_only_faint_states_goes_through_them(wide):
    """The second step has one way in, from the state that the first step all but rules out."""
    sequence, slices = np.array([0, -1]), np.array([0.1, 0.5])
    rows = np.array([[0.2, 0.4, 0.4], [0.9, 0.05, 0.05], [0.4, 0.3, 0.3], [0.4, 0.3, 0.3]])  # the initial row last
    model, phi = ihmm.Model(ihmm.NormalMean()), NormalMeanPhi(np.array([0.0, 1e3, 0.0]))
    data = model.observe(np.zeros(2))
    messages, in_logarithms = beam.filter_allowed(model, data, phi, sequence, rows, slices, wide)
    assert in_logarithms
    path = np.empty(2, np.int64)
    fb.sample_beam(*messages, in_logarithms, sequence, rows, slices, np.uint64(1), path)
    np.testing.assert_array_equal(path, [1, 0])


@pytest.mark.parametrize("slices", [0.0, 0.02, 0.2])
@pytest.mark.parametrize("n_states", [2, 3, 7, 16])
def test_all_ways_through_a_beam_find_the_same_probabilities(slices, n_states):
    rng = np.random.default_rng(n_states)
    sequence = np.full(30, -1)
    sequence[[0, 17]] = 0, 1
    rows = rng.dirichlet(np.ones(n_states), n_states + 1)
    rows[:, 0] += 0.2  # so that there is always a way
    log_density = rng.normal(0, 5, (30, n_states))
    order = np.argsort(-rows, axis=1)
    narrow = log_density, sequence, np.take_along_axis(rows, order, axis=1), order, np.full(30, slices)
    ways = [beam.empty_messages(30, n_states) for _ in range(3)]
    assert fb.filter_beam(*narrow, *ways[0])
    assert fb.filter_wide_beam(np.exp(log_density), sequence, rows, np.full(30, slices), *ways[1])
    fb.filter_faint_beam(*narrow, *ways[2])
    for t in range(30):
        tables = []
        for first, state, mass in ways:
            table = np.zeros(n_states)
            here = slice(first[t], first[t + 1])
            table[state[here]] = np.exp(mass[here]) if mass is ways[2][2] else mass[here]
            tables.append(table / table.sum())
        np.testing.assert_allclose(tables[1], tables[0], rtol=1e-10, atol=1e-200)
        np.testing.assert_allclose(tables[2], tables[0], rtol=1e-10, atol=1e-200)


def chi_square_z(visits, expected):
    """χ² over cells expected at least five times, the rest pooled, as a standard normal."""
    total = visits.sum()
    common = expected * total >= 5
    observed = np.append(visits[common], visits[~common].sum())
    mean = np.append(expected[common], expected[~common].sum()) * total
    keep = mean > 0
    statistic = ((observed[keep] - mean[keep]) ** 2 / mean[keep]).sum()
    degrees = keep.sum() - 1
    return (statistic - degrees) / np.sqrt(2 * degrees)


class TestAgainstHmmlearn:
    """Figures that hmmlearn 0.3.3 prints for the same parameters (score, decode, predict_proba)."""

    def test_health_example_with_symbols(self):
        initial, rows = np.array([0.6, 0.4]), np.array([[0.7, 0.3], [0.4, 0.6]])
        density = np.array([[0.1, 0.6], [0.4, 0.3], [0.5, 0.1]])  # one of each symbol in turn
        self.check(
            initial,
            rows,
            density,
            score=-3.3928721329161653,
            best=-4.309519943887134,
            path=[1, 0, 0],
            first=[0.2317029632, 0.7682970368],
        )

    def test_three_normal_states(self):
        initial = np.array([0.5, 0.3, 0.2])
        rows = np.array([[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.2, 0.2, 0.6]])
        y = np.array([-1.2, -0.7, 0.1, 0.9, 2.8, 3.3, 2.5, 0.2, -0.4, -1.5])
        phi = NormalPhi(np.array([-1.0, 0.5, 3.0]), np.array([0.5, 1.0, 0.25]))
        self.check(
            initial,
            rows,
            np.exp(np.ascontiguousarray(ihmm.Normal().log_density(y, phi))),
            score=-14.902892116717226,
            best=-16.333975674694393,
            path=[0, 0, 1, 1, 2, 2, 2, 0, 0, 0],
            first=[0.91165265891, 0.088347341094, 1.1311555074e-16],
        )

    def check(self, initial, rows, density, *, score, best, path, first):
        sequence = np.full(len(density), -1)
        sequence[0] = 0
        probabilities = np.empty(density.shape)
        log_predictive = np.empty(len(density))
        fb.filter_forward(density, sequence, initial, rows, probabilities, log_predictive)
        assert log_predictive.sum() == pytest.approx(score, abs=1e-9)
        fb.smooth(probabilities, sequence, rows)
        np.testing.assert_allclose(probabilities[0], first, rtol=1e-8)
        found = np.empty(len(sequence), np.int64)
        value = fb.most_probable_path(np.log(density), sequence, np.log(initial), np.log(rows), found)
        assert value == pytest.approx(best, abs=1e-9)
        np.testing.assert_array_equal(found, path)


class TestEarthquakes:
    """Annual counts of major earthquakes, 1900 to 2006: maximum-likelihood fits in Zucchini and MacDonald (2009), §3.2.

    The initial law is the stationary one. Parameters are printed with a few digits, at a maximum of the likelihood.
    """

    # fmt: off
    COUNTS = np.array([
        13, 14, 8, 10, 16, 26, 32, 27, 18, 32, 36, 24, 22, 23, 22, 18, 25, 21, 21, 14, 8, 11, 14, 23, 18, 17, 19, 20,
        22, 19, 13, 26, 13, 14, 22, 24, 21, 22, 26, 21, 23, 24, 27, 41, 31, 27, 35, 26, 28, 36, 39, 21, 17, 22, 17, 19,
        15, 34, 10, 15, 22, 18, 15, 20, 15, 22, 19, 16, 30, 27, 29, 23, 20, 16, 21, 21, 25, 16, 18, 15, 18, 14, 10, 15,
        8, 15, 6, 11, 8, 7, 18, 16, 13, 12, 13, 20, 15, 16, 12, 18, 15, 16, 13, 15, 16, 11, 11,
    ])
    # fmt: on

    @pytest.mark.parametrize(
        ("rates", "rows", "score"),
        [
            ([15.472, 26.125], [[0.9340, 0.0660], [0.1285, 0.8715]], -342.3183),
            (
                [13.146, 19.721, 29.714],
                [[0.955, 0.024, 0.021], [0.050, 0.899, 0.051], [0.0, 0.197, 0.803]],
                -329.4603,
            ),
        ],
        ids=["two states", "three states"],
    )
    def test_the_likelihood_is_the_published_one(self, rates, rows, score):
        assert self.COUNTS.mean() == pytest.approx(19.36, abs=0.005)
        assert self.COUNTS.var(ddof=1) == pytest.approx(51.57, abs=0.005)
        rows = np.array(rows)
        stationary = np.linalg.solve((np.eye(len(rows)) - rows + 1).T, np.ones(len(rows)))
        density = np.exp(ihmm.Poisson().log_density(self.COUNTS, PoissonPhi(np.array(rates))))
        sequence = np.full(len(self.COUNTS), -1)
        sequence[0] = 0
        filtered = np.empty(density.shape)
        log_predictive = np.empty(len(density))
        fb.filter_forward(np.ascontiguousarray(density), sequence, stationary, rows, filtered, log_predictive)
        assert log_predictive.sum() == pytest.approx(score, abs=2e-4)
