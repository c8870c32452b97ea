"""Marginal likelihood of the observations given a partition, φ integrated out."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import gammaln, logsumexp

from ihmm._typing import Array, FloatArray
from ihmm.data import Data
from ihmm.emissions import Categorical, DPMixture
from ihmm.emissions._conjugate import conjugate
from ihmm.emissions._parameters import join
from ihmm.emissions._protocol import Emission, log_density_at, provides
from ihmm.model import Model
from ihmm.testing._partitions import Partition, blocks_of, set_partitions
from ihmm.testing._quadrature import quadrature

EVIDENCE_DRAWS = 200_000  # from H, for emissions without a closed form
SHARED_DRAWS = 30_000  # the same for the parameters of all states together


class Evidence:
    """log Π_k ∫ Π_{t: s_t = k} f(y_t|φ) H(dφ). Results are cached by block."""

    def __init__(self, model: Model, data: Data) -> None:
        self._cache: dict[Partition, float] = {}
        self._y, self._observed = data.observations, data.informative
        self._closed_form = _closed_form(model.emission, data)
        if self._closed_form is None:
            phi = model.emission.sample_prior(np.random.default_rng(1), EVIDENCE_DRAWS)
            self._table = model.log_density(data, phi)

    def of(self, partition: Partition) -> float:
        return sum(self.of_block(tuple(block)) for block in blocks_of(partition).values())

    def of_block(self, block: Partition) -> float:
        if block not in self._cache:
            steps = [t for t in block if self._observed[t]]
            if self._closed_form is not None:
                self._cache[block] = float(self._closed_form(self._y[steps]))
            else:
                self._cache[block] = float(logsumexp(self._table[steps].sum(axis=0)) - np.log(EVIDENCE_DRAWS))
        return self._cache[block]


def _closed_form(emission: Emission, data: Data) -> Callable[[Array], float] | None:
    """log ∫ Π_t f(y_t|φ) H(dφ) in closed form, if the emission has it for these data."""
    found = conjugate(emission, data.observations)
    if found is not None:
        return found.log_evidence
    if provides(emission, "log_evidence") and not provides(emission, "conjugate"):
        return emission.log_evidence  # type: ignore[attr-defined, no-any-return]
    return None


class LearnedEvidence:
    """The same for symbols whose prior has a concentration that is inferred: integrated by quadrature."""

    def __init__(self, model: Model, data: Data) -> None:
        emission = model.emission
        assert isinstance(emission, Categorical)
        concentration, weight = quadrature(emission.concentration)
        fixed = [replace(emission, concentration=float(value)) for value in concentration]
        self._given = [Evidence(replace(model, emission=each), data) for each in fixed]
        self._log_weight = np.log(weight)

    def of(self, partition: Partition) -> float:
        return float(logsumexp(self._log_weight + [given.of(partition) for given in self._given]))


class SharedEvidence:
    """The same for an emission whose states share parameters, or that remembers the state before: by Monte Carlo, all
    states together."""

    def __init__(self, model: Model, data: Data) -> None:
        self._model, self._data, self._n_steps = model, data, len(data.y)
        rng = np.random.default_rng(1)
        self._phi = join(*(model.emission.sample_prior(rng, self._n_steps) for _ in range(SHARED_DRAWS)))
        self._y = np.concatenate([data.observations[data.informative]] * SHARED_DRAWS)

    def of(self, partition: Partition) -> float:
        path = self._model.with_previous(np.array(partition))[self._data.informative]
        own = np.arange(SHARED_DRAWS).reshape(-1, *(1,) * path.ndim) * self._n_steps
        states = (own + path).reshape(-1, *path.shape[1:])
        log_density = log_density_at(self._model.emission, self._y, states, self._phi)
        return float(logsumexp(log_density.reshape(SHARED_DRAWS, -1).sum(axis=1)) - np.log(SHARED_DRAWS))


class MixtureEvidence:
    """The same for a Dirichlet process mixture: all partitions of a block into components are summed over, and σ, which
    all blocks share, is integrated by quadrature."""

    def __init__(self, model: Model, data: Data) -> None:
        emission = model.emission
        assert isinstance(emission, DPMixture)
        self._sigma, self._weight = quadrature(emission.concentration)
        self._component = Evidence(replace(model, emission=emission.component), data)
        self._observed = data.informative

    def of(self, partition: Partition) -> float:
        log_weight = np.log(self._weight)
        for block in blocks_of(partition).values():
            log_weight = log_weight + self._of_block(tuple(t for t in block if self._observed[t]))
        return float(logsumexp(log_weight))

    def of_components(self, partition: Partition, components: Partition) -> float:
        """The same given the components, which are numbered within states."""
        log_weight = np.log(self._weight)
        for block in blocks_of(partition).values():
            seated = [t for t in block if self._observed[t]]
            log_weight = log_weight + self._of_seats(seated, [components[t] for t in seated])
        return float(logsumexp(log_weight))

    def _of_block(self, block: Partition) -> FloatArray:
        return np.asarray(logsumexp([self._of_seats(block, seats) for seats in set_partitions(len(block))], axis=0))

    def _of_seats(self, block: Sequence[int], seats: Sequence[int]) -> FloatArray:
        # Chinese restaurant process: σ^C Γ(σ)/Γ(σ+n) Π (n_c − 1)!
        tables = [[block[i] for i in table] for table in blocks_of(seats).values()]
        log_prior = len(tables) * np.log(self._sigma) + gammaln(self._sigma) - gammaln(self._sigma + len(block))
        fit = sum(gammaln(len(table)) + self._component.of_block(tuple(table)) for table in tables)
        return np.asarray(log_prior + fit)
