"""The exact posterior over set partitions of a tiny series."""

from typing import Any

import numpy as np
from scipy.special import logsumexp

from ihmm.emissions import DPMixture
from ihmm.model import Model
from ihmm.testing._evidence import Evidence, MixtureEvidence
from ihmm.testing._partitions import Partition, set_partitions
from ihmm.testing._state_prior import log_path_probability

MAX_STEPS = 9


def exact_posterior(model: Model, y: Any) -> dict[Partition, float]:
    """Posterior probability of every set partition of the steps of a tiny series into states.

    A partition is a tuple of states in order of appearance, such as (0, 0, 1, 0); several sequences are concatenated.
    The number of partitions grows as the Bell numbers (203 for 6 steps, 4140 for 8). π and β are integrated out in
    closed form, hyperparameters with a prior by Gauss quadrature, and φ by `log_evidence`, or by Monte Carlo for
    emissions without it. Components of mixtures are summed over.
    """
    data = model.observe(y)
    if len(data.y) > MAX_STEPS:
        raise ValueError(f"exact_posterior enumerates set partitions of at most {MAX_STEPS} steps, got {len(data.y)}")
    evidence = MixtureEvidence(model, data) if isinstance(model.emission, DPMixture) else Evidence(model, data)
    partitions = list(set_partitions(len(data.y)))
    log_weight = np.array(
        [
            log_path_probability(model.prior, np.array(partition), data.offsets) + evidence.of(partition)
            for partition in partitions
        ]
    )
    probability = np.exp(log_weight - logsumexp(log_weight))
    return dict(zip(partitions, probability.tolist(), strict=True))
