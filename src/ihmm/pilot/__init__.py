"""The pilot fit: which structure of the model fits a recording, and a path to start from.

Maximum likelihood, not a posterior: the exact sampler has the last word about everything but the structure.
"""

from ihmm.pilot._counts import CountFit as CountFit
from ihmm.pilot._counts import are_measurements as are_measurements
from ihmm.pilot._counts import fit_counts as fit_counts
from ihmm.pilot._fit import MAX_ORDER as MAX_ORDER
from ihmm.pilot._logarithms import pilot_of_logarithms as pilot_of_logarithms
from ihmm.pilot._pilot import Pilot as Pilot
from ihmm.pilot._pilot import pilot as pilot
