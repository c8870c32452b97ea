"""Proofs by computation: is a sampler's law the posterior's law?

`exact_posterior` gives the posterior over all set partitions of a tiny series in closed form, `partition_test` holds a
sampler against it, and `geweke` tests the whole sweep, hyperparameters and emissions included. Use them on your own
emissions and samplers:

    result = ihmm.testing.geweke(ihmm.Model(MyEmission()), lengths=[5])
    assert result.p_value > 1e-4, result
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import gammaln, logsumexp, roots_genlaguerre, roots_jacobi

from ihmm import _checks
from ihmm._typing import Array, BoolArray, FloatArray, IntArray
from ihmm.data import Data
from ihmm.emissions import DPMixture
from ihmm.emissions._parameters import fields
from ihmm.emissions._protocol import Emission, provides
from ihmm.gibbs import initial_draw, sweep
from ihmm.model import Draw, Model, Prior
from ihmm.moves import Move
from ihmm.priors import BetaPrior, FinitePrior, GammaPrior
from ihmm.samplers import ParticleGibbs, Sampler
from ihmm.simulation import draw_observations, draw_prior

Partition = tuple[int, ...]
NODES = 48  # of each quadrature over a free hyperparameter
BURN_IN = 200  # sweeps that settle the hyperparameters; the path starts in the exact posterior
BATCHES = 50  # of a chain, for the autocorrelation times of its averages
EVIDENCE_DRAWS = 200_000  # from H, for emissions that cannot integrate φ out themselves


@dataclass(frozen=True)
class LawTest:
    """z-scores of a sampler's averages against the law it should have."""

    names: tuple[str, ...]
    expected: FloatArray
    observed: FloatArray
    z: FloatArray
    p_value: float
    """Probability of a deviation as large as the largest one, all of them taken into account (Bonferroni)."""

    def __repr__(self) -> str:
        order = np.argsort(-np.abs(self.z))[:8]
        rows = [
            f"  {self.names[i]:<40} expected {self.expected[i]:9.5f}  "
            f"observed {self.observed[i]:9.5f}  z {self.z[i]:+6.2f}"
            for i in order
        ]
        return "\n".join([f"LawTest: {len(self.z)} averages, p-value {self.p_value:.2g}; the largest |z|:", *rows])


def exact_posterior(model: Model, y: Any) -> dict[Partition, float]:
    """Posterior probability of every set partition of the steps by state, for a tiny series.

    A partition is written as states in order of appearance, several sequences end to end: (0, 0, 1, 0). The number of
    partitions grows as the Bell numbers (203 for 6 steps, 4140 for 8). π and β are integrated in closed form, free
    hyperparameters by Gauss quadrature, φ by `log_evidence`, or by Monte Carlo for emissions without it. Components of
    mixtures are summed over.
    """
    data = model.observe(y)
    if len(data.y) > 9:
        raise ValueError(f"exact_posterior enumerates set partitions: at most 9 steps in all, got {len(data.y)}")
    evidence = _MixtureEvidence(model, data) if isinstance(model.emission, DPMixture) else _Evidence(model, data)
    partitions = list(set_partitions(len(data.y)))
    log_weight = np.array(
        [
            log_path_probability(model.prior, np.array(partition), data.offsets) + evidence.of(partition)
            for partition in partitions
        ]
    )
    probability = np.exp(log_weight - logsumexp(log_weight))
    return dict(zip(partitions, probability.tolist(), strict=True))


def partition_test(
    model: Model,
    y: Any,
    sampler: Sampler | None = None,
    *,
    moves: Sequence[Move] = (),
    sweeps: int = 20_000,
    seed: int = 0,
) -> LawTest:
    """Run one chain on a tiny series and compare how often it visits each set partition with the exact posterior."""
    _checks.count("sweeps", sweeps, least=1000)
    exact = exact_posterior(model, y)
    partitions, probability = list(exact), np.array(list(exact.values()))
    index = {partition: i for i, partition in enumerate(partitions)}
    rng = np.random.default_rng(seed)
    data = model.observe(y)
    draw = initial_draw(rng, data, model, np.array(partitions[rng.choice(len(exact), p=probability)]))
    visits = np.empty(sweeps, np.int64)
    for i in range(-BURN_IN, sweeps):
        draw, _ = sweep(rng, data, model, draw, sampler or ParticleGibbs(), moves)
        if i >= 0:
            visits[i] = index[canonical(draw.states)]

    # the number of states, and each partition that is common enough to be judged
    common = np.flatnonzero(probability * sweeps >= 100)
    functionals = np.zeros((len(exact), 1 + len(common)))
    functionals[:, 0] = [max(partition) + 1 for partition in partitions]
    functionals[common, 1 + np.arange(len(common))] = 1
    names = ["number of states", *("".join(map(str, partitions[i])) for i in common)]
    expected = probability @ functionals
    variance = probability @ (functionals - expected) ** 2
    return compare(names, expected, variance, np.zeros(len(names)), functionals[visits])


def geweke(
    model: Model,
    lengths: list[int],
    sampler: Sampler | None = None,
    *,
    moves: Sequence[Move] = (),
    sweeps: int = 20_000,
    seed: int = 0,
    missing: BoolArray | None = None,
    functionals: Callable[[Model, Data, Draw], dict[str, float]] | None = None,
) -> LawTest:
    """Geweke's joint distribution test of one whole sweep.

    Draws from the prior, (θ, s) and then y, have the same law as a chain that alternates a sweep of (θ, s) given y with
    fresh y given (θ, s). Averages of label-invariant quantities, standardised, and of all their products are compared:
    products catch mistakes of order and dependence that means do not see. `missing` marks values that the sweep is
    not shown, shape (total T,) or (total T, D). What an emission takes as given, such as the first values of an
    autoregression, is the same in all draws.
    """
    _checks.count("sweeps", sweeps, least=1000)
    measure = functionals or standard_functionals
    rng = np.random.default_rng(seed)
    direct = [measure(model, *_direct(rng, model, lengths, missing)) for _ in range(sweeps)]

    data, draw = _direct(rng, model, lengths, missing)
    successive = []
    for _ in range(sweeps):
        draw, _ = sweep(rng, data, model, draw, sampler or ParticleGibbs(), moves)
        data = _observe(rng, model, draw, lengths, missing)
        successive.append(measure(model, data, draw))

    left, right = (np.array([list(row.values()) for row in rows]) for rows in (direct, successive))
    center, scale = left.mean(axis=0), left.std(axis=0)
    moving = scale > 1e-9 * (1 + np.abs(center))
    names = [name for name, keep in zip(direct[0], moving, strict=True) if keep]
    left, right = (_with_products((values - center)[:, moving] / scale[moving]) for values in (left, right))
    names += [f"{a} × {b}" for i, a in enumerate(names) for b in names[i:]]
    return compare(names, left.mean(axis=0), left.var(axis=0), left.std(axis=0) / np.sqrt(sweeps), right)


def standard_functionals(model: Model, data: Data, draw: Draw) -> dict[str, float]:
    """Label-invariant quantities with finite variance that between them touch every part of a draw."""
    (beta, initial, rows), phi, hyper, states = draw.transitions, draw.phi, draw.hyper, draw.states
    first, last = states[0], states[-1]
    fit = model.log_density_at(data, states, phi)
    values = {
        "n_states": draw.n_states,
        "log gamma": np.log(hyper.gamma) if np.isfinite(hyper.gamma) else 0.0,
        "log concentration": np.log(hyper.concentration),
        "stickiness": hyper.stickiness,
        "max beta": beta[:-1].max(),
        "beta of first": beta[first],
        "initial of first": initial[first],
        "initial rest": initial[-1],
        "max pi": rows[:, :-1].max(),
        "self transition": rows[first, first],
        "first to last": rows[first, last],
        "row rest": rows[last, -1],
        "stays": np.mean(states[1:] == states[:-1]),
        "fit": np.arctan(fit.mean()),
        "y first": np.arctan(np.nansum(data.y[0])),
        "y last": np.arctan(np.nansum(data.y[-1])),
    }
    for name, field in fields(phi).items():
        values[f"{name} of first"] = np.arctan(np.ravel(field[first])[0])
        values[f"{name} of last"] = np.arctan(np.ravel(field[last])[0])
        # of a covariance what is off its diagonal, of a mixture the second component if there is one
        values[f"second {name} of first"] = np.arctan(np.append(field[first], 0.0)[1])
    return {name: float(value) for name, value in values.items()}


def compare(
    names: list[str], expected: FloatArray, variance: FloatArray, error: FloatArray, chain: FloatArray
) -> LawTest:
    """z-scores of a chain's averages against expectations known up to `error`.

    A chain that by chance visits a rare set too seldom also varies too little there, so its own variance would make the
    deviation look larger than it is. The variance is therefore the expected law's; only the autocorrelation time, the
    ratio of the variance of batch means to that of single draws, is the chain's.
    """
    size = len(chain) // BATCHES
    chain = chain[: size * BATCHES]
    means = chain.reshape(BATCHES, size, -1).mean(axis=1)
    single = chain.var(axis=0)
    time = np.divide(size * means.var(axis=0, ddof=1), single, out=np.zeros_like(single), where=single > 0)
    time = np.maximum(time, np.median(time[single > 0]))  # a set hardly visited says little about its own time
    spread = np.sqrt(time * variance / len(chain) + error**2)
    gap = chain.mean(axis=0) - expected
    z = np.divide(gap, spread, out=np.where(np.abs(gap) < 1e-9, 0.0, np.inf), where=spread > 0)
    p_value = min(1.0, len(z) * 2 * float(stats.t.sf(np.abs(z).max(), BATCHES - 1)))
    return LawTest(tuple(names), expected, expected + gap, z, p_value)


def set_partitions(n: int) -> Iterator[Partition]:
    """All set partitions of n steps, as states in order of appearance."""

    def extend(prefix: Partition, used: int) -> Iterator[Partition]:
        if len(prefix) == n:
            yield prefix
        else:
            for state in range(used + 1):
                yield from extend((*prefix, state), max(used, state + 1))

    return extend((), 0)


def canonical(states: IntArray) -> Partition:
    """States renamed in order of appearance."""
    names: dict[int, int] = {}
    return tuple(names.setdefault(state, len(names)) for state in states.tolist())


def log_path_probability(prior: Prior, states: IntArray, offsets: IntArray) -> float:
    """log p(partition) with β, π and the free hyperparameters integrated out.

    Given (c, ρ) every cell of the transition counts is a rising factorial Π_i (a β_k + b + i), a polynomial in β_k;
    multiplied out, E[Π β_k^{m_k}] over β and all labellings is, with M = Σ m_k,

        Γ(γ)/Γ(γ+M) · Π γ Γ(m_k)                              β ~ GEM(γ)
        Γ(γ)/Γ(γ+M) · Π Γ(γ/L+m_k)/Γ(γ/L) · L!/(L−K)!         β ~ Dirichlet(γ/L, …)
        Π L^{−m_k} · L!/(L−K)!                                β = (1/L, …)
    """
    n_states = int(states.max()) + 1
    counts = np.zeros((n_states + 1, n_states), np.int64)
    for begin, end in pairwise(offsets):
        np.add.at(counts, (np.append(0, states[begin : end - 1] + 1), states[begin:end]), 1)

    c, _, weight = _transition_nodes(prior.concentration, prior.stickiness)
    customers = counts.sum(axis=1)
    weight = weight * np.exp((gammaln(c)[:, None] - gammaln(c[:, None] + customers)).sum(axis=1))
    columns = [
        _column(prior.concentration, prior.stickiness, counts[0, k], counts[k + 1, k], _others(counts, k))
        for k in range(n_states)
    ]
    coefficients = weight @ _outer(columns)  # of every Π β_k^{m_k}, c and ρ integrated out

    gamma, weight_gamma = _nodes(prior.gamma)
    powers = [np.arange(1, column.shape[1] + 1) for column in columns]
    moments = _outer([_stick_moments(prior, gamma, m) for m in powers])
    if np.isfinite(gamma).all():
        total = _outer([m[None] for m in powers], np.add)
        moments = moments * np.exp(gammaln(gamma)[:, None] - gammaln(gamma[:, None] + total))
    return float(np.log(coefficients @ (weight_gamma @ moments)) + _log_labellings(prior, n_states))


@functools.lru_cache(maxsize=1024)
def _column(
    concentration: float | GammaPrior,
    stickiness: float | BetaPrior,
    initial: int,
    own: int,
    others: tuple[int, ...],
) -> FloatArray:
    """Coefficients of β_k^m, m = 1, 2, …, in the product of the cells of one column, at every node of (c, ρ).

    The column has counts of the initial row, of the state's own row and of all other rows. The coefficient of β_k^0 is
    left out: every visited state is entered through β at least once.
    """
    c, rho, _ = _transition_nodes(concentration, stickiness)
    free, zero = c * (1 - rho), np.zeros_like(c)
    column: FloatArray = np.ones((len(c), 1))
    for slope, bias, count in [(c, zero, initial), (free, c * rho, own), *((free, zero, n) for n in others)]:
        for i in range(count):
            column = _times(column, np.stack([bias + i, slope], axis=1))
    return column[:, 1:]


def _others(counts: IntArray, k: int) -> tuple[int, ...]:
    """Transitions into state k from other states, in any order."""
    return tuple(sorted(int(n) for j, n in enumerate(counts[1:, k]) if n and j != k))


def _stick_moments(prior: Prior, gamma: FloatArray, powers: IntArray) -> FloatArray:
    """A state's factor in E[Π β_k^{m_k}], for every node of γ and every m in `powers`."""
    if not isinstance(prior, FinitePrior):
        return np.asarray(gamma[:, None] * np.exp(gammaln(powers)))
    each = gamma[:, None] / prior.n_states
    if np.isinf(gamma).all():
        return np.full_like(each, float(prior.n_states)) ** -powers
    return np.asarray(np.exp(gammaln(each + powers) - gammaln(each)))


def _log_labellings(prior: Prior, n_states: int) -> float:
    """Ways to give the states of a partition different names; the infinite model's are summed over already."""
    if not isinstance(prior, FinitePrior):
        return 0.0
    if n_states > prior.n_states:
        return -np.inf
    return float(gammaln(prior.n_states + 1) - gammaln(prior.n_states - n_states + 1))


def _log_evidence(emission: Emission, data: Data) -> Callable[[Array], float] | None:
    """The marginal likelihood of one state in closed form, if the emission has it for these data."""
    if data.conjugate is not None:
        return data.conjugate.log_evidence
    if provides(emission, "log_evidence") and not provides(emission, "conjugate"):
        return emission.log_evidence  # type: ignore[attr-defined, no-any-return]
    return None


class _Evidence:
    """log Π_k ∫ Π_{t: s_t = k} f(y_t|φ) H(dφ), each block of steps computed once."""

    def __init__(self, model: Model, data: Data) -> None:
        self._known: dict[Partition, float] = {}
        self._y, self._observed = data.observations, data.informative
        self._closed_form = _log_evidence(model.emission, data)
        if self._closed_form is None:
            phi = model.emission.sample_prior(np.random.default_rng(1), EVIDENCE_DRAWS)
            self._table = model.log_density(data, phi)

    def of(self, partition: Partition) -> float:
        return sum(self.of_block(tuple(block)) for block in _blocks(partition).values())

    def of_block(self, block: Partition) -> float:
        if block not in self._known:
            steps = [t for t in block if self._observed[t]]
            if self._closed_form is not None:
                self._known[block] = float(self._closed_form(self._y[steps]))
            else:
                self._known[block] = float(logsumexp(self._table[steps].sum(axis=0)) - np.log(EVIDENCE_DRAWS))
        return self._known[block]


class _MixtureEvidence:
    """The same of a Dirichlet process mixture: with all partitions of a block into components summed over, and σ,
    which all blocks share, integrated by quadrature."""

    def __init__(self, model: Model, data: Data) -> None:
        emission = model.emission
        assert isinstance(emission, DPMixture)
        self._sigma, self._weight = _nodes(emission.concentration)
        self._component = _Evidence(replace(model, emission=emission.component), data)
        self._observed = data.informative

    def of(self, partition: Partition) -> float:
        log_weight = np.log(self._weight)
        for block in _blocks(partition).values():
            log_weight = log_weight + self._of_block(tuple(t for t in block if self._observed[t]))
        return float(logsumexp(log_weight))

    def of_components(self, partition: Partition, components: Partition) -> float:
        """The same with the components given, numbered within states."""
        log_weight = np.log(self._weight)
        for block in _blocks(partition).values():
            seated = [t for t in block if self._observed[t]]
            log_weight = log_weight + self._of_seats(seated, [components[t] for t in seated])
        return float(logsumexp(log_weight))

    def _of_block(self, block: Partition) -> FloatArray:
        return np.asarray(logsumexp([self._of_seats(block, seats) for seats in set_partitions(len(block))], axis=0))

    def _of_seats(self, block: Sequence[int], seats: Sequence[int]) -> FloatArray:
        # the Chinese restaurant: σ^C Γ(σ)/Γ(σ+n) Π (n_c − 1)!
        tables = [[block[i] for i in table] for table in _blocks(seats).values()]
        log_prior = len(tables) * np.log(self._sigma) + gammaln(self._sigma) - gammaln(self._sigma + len(block))
        fit = sum(gammaln(len(table)) + self._component.of_block(tuple(table)) for table in tables)
        return np.asarray(log_prior + fit)


def _blocks(partition: Sequence[int]) -> dict[int, list[int]]:
    """State → its steps."""
    blocks: dict[int, list[int]] = {}
    for t, state in enumerate(partition):
        blocks.setdefault(state, []).append(t)
    return blocks


@functools.lru_cache(maxsize=64)
def _transition_nodes(
    concentration: float | GammaPrior, stickiness: float | BetaPrior
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Quadrature nodes of (c, ρ) and their weights."""
    c, weight_c = _nodes(concentration)
    rho, weight_rho = _nodes(stickiness)
    return np.tile(c, len(rho)), np.repeat(rho, len(c)), np.outer(weight_rho, weight_c).ravel()


@functools.lru_cache(maxsize=64)
def _nodes(quantity: float | GammaPrior | BetaPrior | None) -> tuple[FloatArray, FloatArray]:
    """Quadrature nodes and weights (summing to one) of a hyperparameter's prior; a fixed one is a single node."""
    if quantity is None:
        return np.array([np.inf]), np.ones(1)
    if isinstance(quantity, GammaPrior):
        nodes, weights = roots_genlaguerre(NODES, quantity.shape - 1)
        return nodes / quantity.rate, weights / weights.sum()
    if isinstance(quantity, BetaPrior):
        nodes, weights = roots_jacobi(NODES, quantity.b - 1, quantity.a - 1)
        return (1 + nodes) / 2, weights / weights.sum()
    return np.array([float(quantity)]), np.ones(1)


def _times(left: FloatArray, right: FloatArray) -> FloatArray:
    """Product of polynomials, row by row."""
    out = np.zeros((len(left), left.shape[1] + right.shape[1] - 1))
    for i in range(right.shape[1]):
        out[:, i : i + left.shape[1]] += left * right[:, i : i + 1]
    return out


def _outer(tables: list[FloatArray], combine: np.ufunc = np.multiply) -> FloatArray:
    """All combinations of one entry from each table, row by row."""
    out = tables[0]
    for table in tables[1:]:
        out = combine(out[:, :, None], table[:, None, :]).reshape(len(out), -1)
    return out


def _direct(rng: np.random.Generator, model: Model, lengths: list[int], missing: BoolArray | None) -> tuple[Data, Draw]:
    draw = draw_prior(rng, model, lengths)
    if model.is_mixture:
        draw = _with_components(rng, model, draw, missing)
    return _observe(rng, model, draw, lengths, missing), draw


def _with_components(rng: np.random.Generator, model: Model, draw: Draw, missing: BoolArray | None) -> Draw:
    """A draw from the prior with a component for every step that has a value."""
    seated = np.ones(len(draw.states), bool) if missing is None else ~missing.reshape(len(missing), -1).all(axis=1)
    components = np.full(len(draw.states), -1)
    phi, components[seated] = model.emission.sample_components(rng, draw.states[seated], draw.phi)  # type: ignore[attr-defined]
    return draw._replace(phi=phi, components=components)


def _observe(rng: np.random.Generator, model: Model, draw: Draw, lengths: list[int], missing: BoolArray | None) -> Data:
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    if missing is None:
        return model.describe(draw_observations(rng, model, draw, offsets[1:-1]), offsets)
    gaps = np.flatnonzero(missing.reshape(offsets[-1], -1).any(axis=1))
    y = draw_observations(rng, model, draw, np.union1d(offsets[1:-1], gaps + 1))
    steps: BoolArray = np.asarray(missing.reshape(len(y), -1).all(axis=1))
    if missing.ndim == 2:
        y = np.where(missing & ~steps[:, None], np.nan, y)
    return model.describe(y, offsets, steps)


def _with_products(values: FloatArray) -> FloatArray:
    """The functionals and the products of all pairs of them, in the order of their names."""
    i, j = np.triu_indices(values.shape[1])
    return np.hstack([values, values[:, i] * values[:, j]])
