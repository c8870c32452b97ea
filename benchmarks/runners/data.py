"""The data given to all libraries: training series, and held-out series from the same model.

python benchmarks/runners/data.py FOLDER        writes a file for each of `DATA`, and one with the truth
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import norm

import ihmm
from ihmm._typing import Array, FloatArray
from ihmm.datasets import Recording, four_state, ten_state
from ihmm.emissions.categorical import CategoricalPhi
from ihmm.emissions.normal_mean import NormalMeanPhi
from ihmm.predictions import predict

SYMBOLS = 20  # of the data set "symbols", all about equally frequent
FRESH = 1000  # first seed of the held-out series

# The simulator, and the number and length of the training and held-out series
DATA = {
    "four_state": (four_state, (1, 4000), (5, 1000)),
    "ten_state": (ten_state, (1, 4000), (5, 1000)),
    "sequences": (four_state, (20, 200), (20, 200)),
    "symbols": (four_state, (1, 4000), (5, 1000)),
}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    truths = {}
    for name, (law, to_fit, to_judge) in DATA.items():
        train, held_out = several(law, *to_fit, 0), several(law, *to_judge, FRESH)
        truth = train[0]
        edges = np.quantile(truth.y, np.linspace(0, 1, SYMBOLS + 1)[1:-1]) if name == "symbols" else None
        y, fresh = series(train, edges), series(held_out, edges)
        np.savez(folder / f"{name}.npz", train=y, held_out=fresh, n_states=len(truth.means))
        truths[name] = {
            "n_states": len(truth.means),
            "train": y.shape,
            "held_out": fresh.shape,
            "log_likelihood": [true_log_likelihood(truth, row, edges) for row in fresh],
        }
    (folder / "truth.json").write_text(json.dumps(truths), "utf-8")


def several(law: Callable[..., Recording], n_series: int, length: int, seed: int) -> list[Recording]:
    return [law(length, seed=seed + i) for i in range(n_series)]


def series(recordings: list[Recording], edges: FloatArray | None) -> Array:
    """(sequences, T): the values, or their bin indices if `edges` are given."""
    y = np.array([recording.y for recording in recordings])
    return y if edges is None else np.digitize(y, edges)


def true_log_likelihood(truth: Recording, y: Array, edges: FloatArray | None) -> float:
    """Log-likelihood of a series under the true parameters."""
    n_states = len(truth.means)
    if edges is None:
        emission, phi = ihmm.NormalMean(truth.noise), NormalMeanPhi(truth.means)
    else:
        reached = norm.cdf(edges, truth.means[:, None], truth.noise)
        emission = ihmm.Categorical(SYMBOLS)
        phi = CategoricalPhi(np.maximum(np.diff(reached, prepend=0, append=1, axis=1), 1e-300))
    model = ihmm.Model(emission, ihmm.FinitePrior(n_states))
    initial, label = np.full(n_states, 1 / n_states), np.arange(n_states)
    hmm = predict.FiniteHMM(initial, truth.transition, phi, open_ended=False, label=label)
    return float(predict.run_filter(model, model.observe(y), hmm)[1].sum())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
