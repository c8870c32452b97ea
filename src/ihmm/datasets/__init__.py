"""Data with a known truth: the series of the paper, and realistic recordings of several fields."""

from ihmm.datasets._paper import ALICE as ALICE
from ihmm.datasets._paper import SAMPLING_RATE as SAMPLING_RATE
from ihmm.datasets._paper import SYMBOLS as SYMBOLS
from ihmm.datasets._paper import Recording as Recording
from ihmm.datasets._paper import Text as Text
from ihmm.datasets._paper import alamethicin as alamethicin
from ihmm.datasets._paper import alice as alice
from ihmm.datasets._paper import four_state as four_state
from ihmm.datasets._paper import ion_channel as ion_channel
from ihmm.datasets._paper import prepare_current as prepare_current
from ihmm.datasets._paper import ten_state as ten_state
from ihmm.datasets._realistic import Realistic as Realistic
from ihmm.datasets._realistic import copy_numbers as copy_numbers
from ihmm.datasets._realistic import dance as dance
from ihmm.datasets._realistic import fret as fret
from ihmm.datasets._realistic import oscillators as oscillators
from ihmm.datasets._realistic import patch_clamp as patch_clamp
from ihmm.datasets._realistic import pump as pump
from ihmm.datasets._realistic import sequence_composition as sequence_composition
from ihmm.datasets._realistic import spike_counts as spike_counts
from ihmm.datasets._realistic import steady as steady
from ihmm.datasets._regimes import eruptions as eruptions
from ihmm.datasets._regimes import paces as paces
from ihmm.datasets._regimes import returns as returns
from ihmm.datasets._regimes import rhythms as rhythms
from ihmm.datasets.panel import PANEL as PANEL
