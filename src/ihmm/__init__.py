"""Infinite hidden Markov models: exact, truncation-free posterior sampling when the number of states is unknown."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ihmm import datasets as datasets
    from ihmm import distributed as distributed
    from ihmm import durations as durations
    from ihmm import plots as plots
    from ihmm import report as report
    from ihmm import testing as testing
    from ihmm.chain import iterate as iterate
    from ihmm.chain import resume as resume
    from ihmm.chain import sample as sample
    from ihmm.comparison import compare as compare
    from ihmm.emissions import Autoregressive as Autoregressive
    from ihmm.emissions import Bernoulli as Bernoulli
    from ihmm.emissions import Categorical as Categorical
    from ihmm.emissions import ConjugateEmission as ConjugateEmission
    from ihmm.emissions import DPMixture as DPMixture
    from ihmm.emissions import Emission as Emission
    from ihmm.emissions import Independent as Independent
    from ihmm.emissions import LogScale as LogScale
    from ihmm.emissions import Multinomial as Multinomial
    from ihmm.emissions import MultivariateNormal as MultivariateNormal
    from ihmm.emissions import NegativeBinomial as NegativeBinomial
    from ihmm.emissions import NoisyLevels as NoisyLevels
    from ihmm.emissions import Normal as Normal
    from ihmm.emissions import NormalMean as NormalMean
    from ihmm.emissions import Poisson as Poisson
    from ihmm.emissions import StudentT as StudentT
    from ihmm.emissions import VonMises as VonMises
    from ihmm.estimator import InfiniteHMM as InfiniteHMM
    from ihmm.model import Draw as Draw
    from ihmm.model import Model as Model
    from ihmm.moves import GreedySplitMerge as GreedySplitMerge
    from ihmm.moves import GroupComponents as GroupComponents
    from ihmm.moves import MergeTwins as MergeTwins
    from ihmm.moves import PairGibbs as PairGibbs
    from ihmm.moves import SplitMerge as SplitMerge
    from ihmm.posterior import Posterior as Posterior
    from ihmm.priors import BetaPrior as BetaPrior
    from ihmm.priors import FinitePrior as FinitePrior
    from ihmm.priors import GammaPrior as GammaPrior
    from ihmm.priors import HDPPrior as HDPPrior
    from ihmm.samplers import Beam as Beam
    from ihmm.samplers import Blocked as Blocked
    from ihmm.samplers import DirectAssignment as DirectAssignment
    from ihmm.samplers import ParticleGibbs as ParticleGibbs
    from ihmm.simulation import prior_predictive as prior_predictive
    from ihmm.simulation import simulate as simulate

# The front page. Names are imported when first used, so that `import ihmm` stays quick.
_HOME = {
    "Autoregressive": "ihmm.emissions",
    "Beam": "ihmm.samplers",
    "Bernoulli": "ihmm.emissions",
    "BetaPrior": "ihmm.priors",
    "Blocked": "ihmm.samplers",
    "Categorical": "ihmm.emissions",
    "ConjugateEmission": "ihmm.emissions",
    "DPMixture": "ihmm.emissions",
    "DirectAssignment": "ihmm.samplers",
    "Draw": "ihmm.model",
    "Emission": "ihmm.emissions",
    "FinitePrior": "ihmm.priors",
    "GammaPrior": "ihmm.priors",
    "GreedySplitMerge": "ihmm.moves",
    "GroupComponents": "ihmm.moves",
    "MergeTwins": "ihmm.moves",
    "PairGibbs": "ihmm.moves",
    "SplitMerge": "ihmm.moves",
    "HDPPrior": "ihmm.priors",
    "Independent": "ihmm.emissions",
    "InfiniteHMM": "ihmm.estimator",
    "Model": "ihmm.model",
    "LogScale": "ihmm.emissions",
    "Multinomial": "ihmm.emissions",
    "MultivariateNormal": "ihmm.emissions",
    "NegativeBinomial": "ihmm.emissions",
    "NoisyLevels": "ihmm.emissions",
    "Normal": "ihmm.emissions",
    "NormalMean": "ihmm.emissions",
    "ParticleGibbs": "ihmm.samplers",
    "Poisson": "ihmm.emissions",
    "Posterior": "ihmm.posterior",
    "StudentT": "ihmm.emissions",
    "VonMises": "ihmm.emissions",
    "compare": "ihmm.comparison",
    "datasets": "ihmm.datasets",
    "distributed": "ihmm.distributed",
    "durations": "ihmm.durations",
    "iterate": "ihmm.chain",
    "plots": "ihmm.plots",
    "prior_predictive": "ihmm.simulation",
    "report": "ihmm.report",
    "resume": "ihmm.chain",
    "sample": "ihmm.chain",
    "simulate": "ihmm.simulation",
    "testing": "ihmm.testing",
}
__all__ = sorted(_HOME.keys() - {"plots", "report"})  # `from ihmm import *` must not need matplotlib or Bokeh


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'ihmm' has no attribute {name!r}")
    module = import_module(_HOME[name])
    value = module if _HOME[name] == f"ihmm.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
