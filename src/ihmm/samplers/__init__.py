"""Samplers of the trajectory: Step 1 of the sweep."""

from ihmm.samplers._base import PassInfo, Sampler, StateUpdate
from ihmm.samplers.beam import Beam
from ihmm.samplers.blocked import Blocked
from ihmm.samplers.direct_assignment import DirectAssignment
from ihmm.samplers.particle_gibbs import ParticleGibbs

__all__ = ["Beam", "Blocked", "DirectAssignment", "ParticleGibbs", "PassInfo", "Sampler", "StateUpdate"]
