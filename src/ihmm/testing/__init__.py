"""Tests of exactness: is the stationary distribution of a sampler the posterior?

`exact_posterior` computes the posterior over all set partitions of a tiny series, `partition_test` compares a sampler
with it, and `geweke` tests a whole sweep, including hyperparameters and emissions. Use them on your own emissions and
samplers:

    result = ihmm.testing.geweke(ihmm.Model(MyEmission()), lengths=[5])
    assert result.p_value > 1e-4, result
"""

from ihmm.testing._exact_posterior import exact_posterior
from ihmm.testing._geweke import geweke, standard_functionals
from ihmm.testing._law_test import LawTest, compare
from ihmm.testing._partition_test import partition_test
from ihmm.testing._partitions import Partition, canonical, set_partitions
from ihmm.testing._state_prior import log_path_probability

__all__ = [
    "LawTest",
    "Partition",
    "canonical",
    "compare",
    "exact_posterior",
    "geweke",
    "log_path_probability",
    "partition_test",
    "set_partitions",
    "standard_functionals",
]
