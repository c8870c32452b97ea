"""Greedy splits and merges: the gains are right, they do what they should, and they end with tuning."""

import itertools

import numpy as np
import pytest
from convergence import Setting, run
from scipy.special import gammaln, logsumexp

import ihmm
from ihmm.chain import MOVES
from ihmm.emissions._parameters import size
from ihmm.gibbs import initial_draw, sweep
from ihmm.kernels import greedy as kernels
from ihmm.kernels.conditionals import Concentrations
from ihmm.kernels.counts import count_transitions
from ihmm.kernels.families import CompiledFamily, gather_statistics, log_predictive
from ihmm.kernels.families.dispatch import CHOICE
from ihmm.model import Hyper
from ihmm.moves import greedy
from ihmm.samplers import StateUpdate
from reference.cases import COLUMNS, EMISSIONS

GREEDY = tuple(move for move in MOVES if isinstance(move, ihmm.GreedySplitMerge))
HYPER = Hyper(gamma=1.7, concentration=2.5, stickiness=0.4)
CONCENTRATIONS = Concentrations(*HYPER)
FAMILIES = EMISSIONS | COLUMNS
every_family = pytest.mark.parametrize(("emission", "series"), FAMILIES.values(), ids=FAMILIES)


def log_joint(model, data, states, beta, hyper=HYPER):
    """log p(s, β, y) with π and φ integrated out, term by term from its formula."""
    n_states = len(beta) - 1
    counts = np.zeros((n_states + 1, n_states))
    for begin, end in itertools.pairwise(data.offsets):
        np.add.at(counts, (np.append(0, states[begin : end - 1] + 1), states[begin:end]), 1)
    base = np.tile(hyper.alpha * beta[:-1], (n_states + 1, 1))
    base[0] = hyper.concentration * beta[:-1]
    base[1:] += hyper.kappa * np.eye(n_states)
    rows = gammaln(base + counts) - gammaln(base)
    total = rows.sum() + (gammaln(hyper.concentration) - gammaln(hyper.concentration + counts.sum(axis=1))).sum()
    total += n_states * np.log(hyper.gamma) - np.log(beta[:-1]).sum() + (hyper.gamma - 1) * np.log(beta[-1])
    return total + sum(model.emission.log_evidence(data.y[states == k]) for k in range(n_states))


@every_family
def test_the_gain_of_a_merge_is_the_change_of_the_joint_probability(emission, series):
    rng = np.random.default_rng(1)
    model = ihmm.Model(emission)
    data = model.observe([np.concatenate([series] * 4), np.array(series)])
    states = np.append(np.arange(4), rng.integers(4, size=len(data.y) - 4))
    beta = rng.dirichlet(np.ones(5))
    compiled = emission.conjugate(data.y).compiled
    statistics = np.zeros((4, compiled.size))
    gather_statistics(compiled.family, statistics, compiled.values, states)
    counts = count_transitions(states, data.offsets, 4)
    for a, b in itertools.combinations(range(4), 2):
        gain = kernels.merge_gain(compiled, CONCENTRATIONS, statistics, counts, beta[:-1], np.ones(4, bool), a, b)
        merged = np.unique(np.where(states == b, a, states), return_inverse=True)[1]
        weights = np.delete(beta, b)
        weights[a] = beta[a] + beta[b]
        change = log_joint(model, data, merged, weights) - log_joint(model, data, states, beta)
        assert gain == pytest.approx(change - np.log(weights[a]), abs=1e-8)


@every_family
def test_choices_between_two_states_are_judged_as_if_all_were_listed(emission, series):
    model = ihmm.Model(emission)
    data = model.observe([series, series[:2]])
    states = np.array([0, 1, 1, 2, 0, 1, 0])  # between 0 and 1, at all steps but one
    beta = np.array([0.3, 0.4, 0.2])
    compiled = emission.conjugate(data.y).compiled
    family, prior, values, size = compiled
    statistics = np.zeros((3, size))
    gather_statistics(family, statistics, values, states)
    counts = count_transitions(states, data.offsets, 3)
    rows = counts + HYPER.alpha * beta
    rows[0] = counts[0] + HYPER.concentration * beta
    rows[1:] += HYPER.kappa * np.eye(3)
    rows = rows / (counts.sum(axis=1, keepdims=True) + HYPER.concentration)
    density = np.array([[log_predictive(family, prior, s, values, t) for s in statistics] for t in range(7)])

    def log_probability(path):
        total = density[np.arange(7), path].sum()
        for begin, end in itertools.pairwise(data.offsets):
            total += np.log(rows[np.append(0, path[begin : end - 1] + 1), path[begin:end]]).sum()
        return total

    listed = {}
    for choice in itertools.product([0, 1], repeat=6):
        path = states.copy()
        path[states != 2] = choice
        listed[tuple(path)] = log_probability(path)
    expected = listed[tuple(states)] - logsumexp(list(listed.values()))
    found = kernels.log_choices(compiled, CONCENTRATIONS, data.offsets, states, statistics, counts, beta, 0, 1)
    assert found == pytest.approx(expected, abs=1e-9)


def move(model, data, states, rng, times=1, careful=False):
    draw = initial_draw(rng, data, model, states)
    path = StateUpdate(draw.trajectory, draw.transitions.beta, draw.phi)
    for _ in range(times):
        path, _ = ihmm.GreedySplitMerge(careful=careful).apply(rng, data, model, path, draw.hyper)
        assert path.beta.sum() == pytest.approx(1.0)
        np.testing.assert_array_equal(np.unique(path.states), np.arange(len(path.beta) - 1))
    return path


def same_partition(first, second):
    return np.array_equal(first[:, None] == first, second[:, None] == second)


LEVELS = np.repeat([0, 1, 2, 1, 0, 2], 25)
SERIES = np.array([-6.0, 0.0, 7.0])[LEVELS] + np.random.default_rng(3).normal(0, 0.5, 150)


@pytest.mark.parametrize("emission", [ihmm.Normal(), ihmm.NormalMean(noise=0.5, scale=6.0)], ids=repr)
@pytest.mark.parametrize("n_states", [1, 3, 20])
def test_any_start_comes_to_the_true_states_in_a_few_moves(emission, n_states):
    model = ihmm.Model(emission, ihmm.HDPPrior(1.0, 1.0))
    rng = np.random.default_rng(n_states)
    path = move(model, model.observe(SERIES), rng.integers(n_states, size=150), rng, times=12)
    assert same_partition(path.states, LEVELS)


def test_symbols_that_never_share_a_stretch_are_split():
    model = ihmm.Model(ihmm.Categorical(n_symbols=3), ihmm.HDPPrior(1.0, 1.0))
    rng = np.random.default_rng(0)
    path = move(model, model.observe(LEVELS), np.zeros(150, int), rng, times=12)
    assert same_partition(path.states, LEVELS)


ROWS = np.array([[-6.0, -4.0], [0.0, 3.0], [7.0, 9.0]])[LEVELS] + np.random.default_rng(4).normal(0, 0.5, (150, 2))

GAPPY = np.where(np.arange(300).reshape(150, 2) % 7 == 0, np.nan, ROWS)
OFTEN = np.repeat([[1, 1, 99], [1, 99, 1], [99, 1, 1]], 3, axis=1) / 100
ONES = np.random.default_rng(6).random((150, 9)) < OFTEN[LEVELS]
SHARES = np.random.default_rng(7).multinomial(99, np.array([[7, 2, 1], [1, 8, 1], [2, 2, 6]])[LEVELS] / 10)
MIXED = np.column_stack([LEVELS == 2, GAPPY])  # a symbol and two numbers


@pytest.mark.parametrize("n_states", [1, 3, 20])
@pytest.mark.parametrize(
    ("emission", "y"),
    [
        (ihmm.Poisson(1.0, 0.02), np.random.default_rng(5).poisson(np.array([2, 40, 200])[LEVELS])),
        (ihmm.MultivariateNormal(2), ROWS),
        (ihmm.MultivariateNormal(2, covariance="diagonal"), ROWS),
        (ihmm.MultivariateNormal(2, covariance="diagonal"), GAPPY),
        (ihmm.Bernoulli(9), ONES),
        (ihmm.Multinomial(3), SHARES),
        (ihmm.Independent(ihmm.Categorical(2), ihmm.Normal(), ihmm.NormalMean(0.5, scale=5.0)), MIXED),
    ],
    ids=["counts", "full", "diagonal", "diagonal with gaps", "ones", "shares", "mixed"],
)
def test_counts_and_rows_come_to_the_true_states_too(emission, y, n_states):
    model = ihmm.Model(emission, ihmm.HDPPrior(1.0, 1.0))
    rng = np.random.default_rng(n_states)
    path = move(model, model.observe(y), rng.integers(n_states, size=150), rng, times=12)
    assert same_partition(path.states, LEVELS)


def test_states_that_differ_stay_apart_and_copies_are_merged():
    model = ihmm.Model(ihmm.Normal(), ihmm.HDPPrior(1.0, 1.0))
    data, rng = model.observe(SERIES), np.random.default_rng(0)
    assert same_partition(move(model, data, LEVELS, rng).states, LEVELS)
    copies = LEVELS + 3 * rng.integers(3, size=150)
    assert same_partition(move(model, data, copies, rng).states, LEVELS)


def test_states_that_overlap_are_merged_along_the_path_but_not_with_care():
    """Two states one standard deviation apart: the dynamics tell them apart, a single path does not."""
    rng = np.random.default_rng(1)
    truth = np.cumsum(rng.random(3000) < 0.05) % 2
    model = ihmm.Model(ihmm.Normal(strength=0.5), ihmm.HDPPrior(1.0, 1.0))
    data = model.observe(truth + rng.normal(size=3000))
    draw = initial_draw(rng, data, model, truth)
    for _ in range(20):
        draw, _ = sweep(rng, data, model, draw, ihmm.ParticleGibbs())
    copies = np.where(rng.random(3000) < 0.5, draw.n_states + draw.states, draw.states)
    assert len(move(model, data, draw.states, rng).beta) - 1 == 1
    assert len(move(model, data, draw.states, rng, careful=True).beta) - 1 == 2
    assert len(move(model, data, copies, rng, careful=True).beta) - 1 == 2


def test_a_large_state_is_not_split_for_its_size():
    """Half of a normal state fits its own half far better; the choice between the halves costs more than that."""
    rng = np.random.default_rng(0)
    model = ihmm.Model(ihmm.Normal(), ihmm.HDPPrior(1.0, 1.0))
    data = model.observe(rng.normal(size=12_000))
    for careful in (False, True):
        assert len(move(model, data, np.zeros(12_000, int), rng, times=3, careful=careful).beta) - 1 == 1


def test_states_are_found_in_spite_of_missing_values():
    rng = np.random.default_rng(2)
    model = ihmm.Model(ihmm.Normal(), ihmm.HDPPrior(1.0, 1.0))
    data = model.observe(np.where(rng.random(150) < 0.3, np.nan, SERIES))
    path = move(model, data, np.zeros(150, int), rng, times=12)
    assert len(path.beta) - 1 == 3


def test_a_finite_model_never_gets_more_states_than_it_has():
    model = ihmm.Model(ihmm.Normal(), ihmm.FinitePrior(2))
    path = move(model, model.observe(SERIES), np.zeros(150, int), np.random.default_rng(0), times=5)
    assert len(path.beta) - 1 == 2
    equal = ihmm.Model(ihmm.Normal(), ihmm.FinitePrior(5, gamma=None))
    assert len(move(equal, equal.observe(SERIES), LEVELS, np.random.default_rng(0)).beta) - 1 == 3


class Plain:
    """Six methods of Normal and no more: φ cannot be integrated out."""


for name in ("validate", "log_density", "sample_prior", "resample", "sample_observations", "log_prior"):
    setattr(Plain, name, staticmethod(getattr(ihmm.Normal(), name)))


ANGLES = np.array([3.1, -1.0, 0.8])[LEVELS] + np.random.default_rng(6).vonmises(0, 30, 150)
WITHOUT_CLOSED_FORMS = {
    "user's": (Plain(), SERIES),
    "student-t": (ihmm.StudentT(), SERIES),
    "von-mises": (ihmm.VonMises(), ANGLES),
    "full with gaps": (ihmm.MultivariateNormal(2), GAPPY),
}


@pytest.mark.parametrize("n_states", [1, 3, 20])
@pytest.mark.parametrize("case", WITHOUT_CLOSED_FORMS)
def test_emissions_that_cannot_be_integrated_out_come_to_the_true_states_too(case, n_states):
    emission, y = WITHOUT_CLOSED_FORMS[case]
    model, rng = ihmm.Model(emission, ihmm.HDPPrior(1.0, 1.0)), np.random.default_rng(n_states)
    path = move(model, model.observe(y), rng.integers(n_states, size=150), rng, times=12)
    assert len(path.beta) - 1 == size(path.phi) == 3
    together = path.states[:, None] == path.states
    assert np.mean(together == (LEVELS[:, None] == LEVELS)) > 0.98  # single steps are for the sampler to move


@pytest.mark.parametrize("case", WITHOUT_CLOSED_FORMS)
def test_without_closed_forms_too_missing_values_and_finite_models_are_no_obstacle(case):
    emission, y = WITHOUT_CLOSED_FORMS[case]
    model, rng = ihmm.Model(emission, ihmm.FinitePrior(3)), np.random.default_rng(1)
    data = model.observe(np.where(rng.random(y.shape[:1] + (1,) * (y.ndim - 1)) < 0.3, np.nan, y))
    for n_states in (1, 3):
        path = move(model, data, rng.permutation(np.arange(150) % n_states), rng, times=12)
        assert len(path.beta) - 1 == 3


@pytest.mark.parametrize("seed", range(3))
def test_a_visit_of_a_few_steps_is_not_lost_in_the_tails_of_a_large_state(seed):
    truth = np.arange(1000) // 25 == 19
    y = 5.0 * truth + 0.5 * np.random.default_rng(seed).standard_t(4, 1000)
    chain = ihmm.iterate(ihmm.Model(ihmm.StudentT()), y, init=1, tune=30, seed=seed)
    draw, _ = next(itertools.islice(chain, 30, None))
    assert np.mean((draw.states == draw.states[480]) == truth) > 0.99


def test_a_stand_in_is_judged_by_the_best_of_its_parameters():
    rng = np.random.default_rng(0)
    model = ihmm.Model(ihmm.StudentT())
    data = model.observe(SERIES)
    states, beta = np.append(np.arange(4), rng.integers(4, size=146)), rng.dirichlet(np.ones(5))
    table = greedy.log_densities(model, data, model.emission.sample_prior(rng, 7))
    statistics, counts = np.zeros((4, 8)), count_transitions(states, data.offsets, 4)
    gather_statistics(CHOICE, statistics, table, states)

    def log_joint_of_choice(states, beta):
        fit = sum(table[states == k].sum(axis=0).max() - np.log(7) for k in range(len(beta) - 1))
        return log_joint(ihmm.Model(NoEvidence()), data, states, beta) + fit

    compiled, alive = CompiledFamily(CHOICE, np.zeros((1, 1)), table, 8), np.ones(4, bool)
    gain = kernels.merge_gain(compiled, CONCENTRATIONS, statistics, counts, beta[:-1], alive, 1, 3)
    weights = np.delete(beta, 3)
    weights[1] = beta[1] + beta[3]
    change = log_joint_of_choice(np.where(states == 3, 1, states), weights) - log_joint_of_choice(states, beta)
    assert gain == pytest.approx(change - np.log(weights[1]), abs=1e-8)


class NoEvidence(Plain):
    def log_evidence(self, y):
        return 0.0


def test_what_cannot_be_seen_to_differ_is_one_state():
    for emission, y in ((ihmm.StudentT(), np.full(30, 5.0)), (ihmm.VonMises(), np.full(30, np.pi))):
        model, rng = ihmm.Model(emission, ihmm.HDPPrior(1.0, 1.0)), np.random.default_rng(0)
        path = move(model, model.observe(y), rng.integers(3, size=30), rng, times=3)
        assert len(path.beta) - 1 == 1


class Boxes(Plain):
    """A density that is zero outside a box."""

    def log_density(self, y, phi):
        with np.errstate(divide="ignore"):
            return np.log((np.abs(y[:, None] - phi.mean) < 1) / 2)


def test_densities_that_are_zero_do_no_harm():
    model, rng = ihmm.Model(Boxes(), ihmm.HDPPrior(1.0, 1.0)), np.random.default_rng(0)
    move(model, model.observe(SERIES), rng.integers(3, size=150), rng, times=5)


def test_moves_end_with_tuning():
    greedy = ihmm.GreedySplitMerge(sweeps=30)
    assert [greedy.acts(sweep, tune=10) for sweep in (0, 9, 10)] == [True, True, False]
    assert [greedy.acts(sweep, tune=500) for sweep in (0, 29, 30)] == [True, True, False]
    settings = {"draws": 20, "tune": 0, "chains": 1, "seed": 1, "progress": False}
    for emission in (ihmm.Normal(), ihmm.StudentT()):
        model = ihmm.Model(emission)
        with_moves, without = (ihmm.sample(model, SERIES, moves=m, **settings) for m in ((greedy,), ()))
        np.testing.assert_array_equal(with_moves.states, without.states)


def test_moves_can_be_switched_off():
    model = ihmm.Model(ihmm.Normal())
    settings = {"draws": 1, "tune": 5, "chains": 1, "seed": 1, "progress": False, "save_warmup": True, "init": 20}
    greedy, plain = (ihmm.sample(model, SERIES, **settings, **m).warmup for m in ({}, {"moves": ()}))
    assert greedy.n_states[0, 0] < plain.n_states[0, 0]


@pytest.mark.parametrize("moves", [5, [ihmm.GreedySplitMerge], ["greedy"]])
def test_what_is_not_a_move_is_refused(moves):
    with pytest.raises(TypeError, match="GreedySplitMerge"):
        ihmm.sample(ihmm.Model(ihmm.Normal()), SERIES, moves=moves)


@pytest.mark.slow
@pytest.mark.parametrize("init", [1, 3, 10, 30])
@pytest.mark.parametrize("data", ["four_state", "ten_state"])
def test_the_papers_data_take_a_few_sweeps_from_any_start(data, init):
    recording = getattr(ihmm.datasets, data)()
    chain = run(recording, init, 0, Setting(GREEDY, tune=30, sweeps=30))
    assert np.all(chain.sizes[10:] == len(recording.means))


@pytest.mark.parametrize("y", [SERIES, [SERIES[:40], SERIES[40:]]], ids=["one sequence", "two sequences"])
def test_an_automatic_start_is_at_the_right_states_before_the_first_sweep(y):
    model = ihmm.Model(ihmm.Normal())
    starts = [next(ihmm.iterate(model, y, init="auto", seed=seed))[0].n_states for seed in range(10)]
    assert np.median(starts) == 3


@pytest.mark.parametrize("case", WITHOUT_CLOSED_FORMS)
def test_an_automatic_start_needs_no_closed_forms(case):
    emission, y = WITHOUT_CLOSED_FORMS[case]
    starts = [next(ihmm.iterate(ihmm.Model(emission), y, init="auto", seed=seed))[0].n_states for seed in range(10)]
    assert np.median(starts) == 3


@pytest.mark.slow
@pytest.mark.parametrize("data", ["four_state", "ten_state"])
def test_an_automatic_start_on_the_papers_data_needs_no_tuning(data):
    recording = getattr(ihmm.datasets, data)()
    chain = run(recording, "auto", 0, Setting((), tune=0, sweeps=20))
    assert np.all(chain.sizes[5:] == len(recording.means))
