"""Families of emissions: one file each, all behind the same protocol."""

from ihmm.emissions._base import ConjugateEmission, Emission
from ihmm.emissions.categorical import Categorical
from ihmm.emissions.normal import Normal
from ihmm.emissions.normal_mean import NormalMean

__all__ = ["Categorical", "ConjugateEmission", "Emission", "Normal", "NormalMean"]
