"""Families of emissions: one file each, all behind the same protocol."""

from ihmm.emissions._conjugate import Conjugate
from ihmm.emissions._protocol import ConjugateEmission, Emission
from ihmm.emissions._slice import slice_step
from ihmm.emissions.autoregressive import Autoregressive
from ihmm.emissions.bernoulli import Bernoulli
from ihmm.emissions.categorical import Categorical
from ihmm.emissions.dp_mixture import DPMixture
from ihmm.emissions.independent import Independent
from ihmm.emissions.log_scale import LogScale
from ihmm.emissions.multinomial import Multinomial
from ihmm.emissions.multivariate_normal import MultivariateNormal
from ihmm.emissions.negative_binomial import NegativeBinomial
from ihmm.emissions.noisy_levels import NoisyLevels
from ihmm.emissions.normal import Normal
from ihmm.emissions.normal_mean import NormalMean
from ihmm.emissions.poisson import Poisson
from ihmm.emissions.student_t import StudentT
from ihmm.emissions.von_mises import VonMises
from ihmm.kernels.families import CompiledFamily

__all__ = [
    "Autoregressive",
    "Bernoulli",
    "Categorical",
    "CompiledFamily",
    "Conjugate",
    "ConjugateEmission",
    "DPMixture",
    "Emission",
    "Independent",
    "LogScale",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "NoisyLevels",
    "Normal",
    "NormalMean",
    "Poisson",
    "StudentT",
    "VonMises",
    "slice_step",
]
