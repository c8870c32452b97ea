"""Families of emissions: one file each, all behind the same protocol."""

from ihmm.emissions._base import ConjugateEmission, Emission
from ihmm.emissions.categorical import Categorical
from ihmm.emissions.dp_mixture import DPMixture
from ihmm.emissions.multivariate_normal import MultivariateNormal
from ihmm.emissions.normal import Normal
from ihmm.emissions.normal_mean import NormalMean
from ihmm.emissions.poisson import Poisson

__all__ = [
    "Categorical",
    "ConjugateEmission",
    "DPMixture",
    "Emission",
    "MultivariateNormal",
    "Normal",
    "NormalMean",
    "Poisson",
]
