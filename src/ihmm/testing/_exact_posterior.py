"""The exact posterior over set partitions of a tiny series."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import logsumexp

from ihmm._typing import IntArray
from ihmm.data import Data
from ihmm.emissions import Categorical, DPMixture
from ihmm.emissions._protocol import shares_parameters
from ihmm.model import Model
from ihmm.testing._evidence import Evidence, LearnedEvidence, MixtureEvidence, SharedEvidence
from ihmm.testing._partitions import Partition, set_partitions
from ihmm.testing._segment_prior import SegmentPrior
from ihmm.testing._state_prior import log_path_probability

MAX_STEPS = 9


def exact_posterior(model: Model, y: Any) -> dict[Partition, float]:
    """Posterior probability of every set partition of the steps of a tiny series into states.

    A partition is a tuple of states in order of appearance, such as (0, 0, 1, 0); several sequences are concatenated.
    The number of partitions grows as the Bell numbers (203 for 6 steps, 4140 for 8). π and β are integrated out in
    closed form, hyperparameters with a prior by Gauss quadrature, and φ by `log_evidence`, or by Monte Carlo for
    emissions without it. Components of mixtures are summed over. For models with durations, everything that
    the segments depend on is integrated by Monte Carlo.
    """
    data = model.observe(y)
    if len(data.y) > MAX_STEPS:
        raise ValueError(f"exact_posterior enumerates set partitions of at most {MAX_STEPS} steps, got {len(data.y)}")
    evidence = _evidence(model, data)
    partitions = list(set_partitions(len(data.y)))
    log_prior = _log_prior(model, data.offsets)
    log_weight = np.array([log_prior(np.array(partition)) + evidence.of(partition) for partition in partitions])
    probability = np.exp(log_weight - logsumexp(log_weight))
    return dict(zip(partitions, probability.tolist(), strict=True))


def _evidence(model: Model, data: Data) -> Evidence | LearnedEvidence | MixtureEvidence | SharedEvidence:
    if isinstance(model.emission, DPMixture):
        return MixtureEvidence(model, data)
    if not shares_parameters(model.emission):
        return Evidence(model, data)
    return LearnedEvidence(model, data) if isinstance(model.emission, Categorical) else SharedEvidence(model, data)


def _log_prior(model: Model, offsets: IntArray) -> Callable[[IntArray], float]:
    """log p(s) up to the labels of the states."""
    if model.duration is None:
        return lambda states: log_path_probability(model.prior, states, offsets)
    prior = SegmentPrior(model)
    return lambda states: prior.log_probability(states, offsets)
