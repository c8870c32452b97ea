"""Ways to renew the trajectory: Step 1 of the sweep."""

from ihmm.samplers._base import PassInfo, Path, Sampler
from ihmm.samplers.particle_gibbs import ParticleGibbs

__all__ = ["ParticleGibbs", "PassInfo", "Path", "Sampler"]
