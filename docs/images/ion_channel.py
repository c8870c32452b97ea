"""Draws ion_channel.png, the picture at the top of the README: `python docs/images/ion_channel.py`."""

from pathlib import Path

import matplotlib.pyplot as plt

import ihmm
from ihmm import plots

y = ihmm.datasets.ion_channel(length=2000).y
hmm = ihmm.InfiniteHMM(sample_rate="10kHz", order_by="mean", random_state=1).fit(y)
print(hmm.posterior_.levels(), hmm.posterior_.check(), sep="\n")

plt.rcParams |= {"axes.spines.top": False, "axes.spines.right": False}
figure, (trace, histogram) = plt.subplots(1, 2, figsize=(9, 2.7), width_ratios=[2.4, 1], layout="constrained")
plots.idealised(hmm.posterior_, trace)
plots.emissions(hmm.posterior_, histogram)
trace.set_ylabel("current (pA)")
histogram.set_xlabel("current (pA)")
trace.get_legend().remove()
figure.savefig(Path(__file__).with_suffix(".png"), dpi=100)
