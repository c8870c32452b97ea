"""What a verdict on a posterior rests on, collected from its draws."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ihmm._typing import Array, FloatArray, IntArray
from ihmm.data import Data
from ihmm.diagnostics import agreement
from ihmm.diagnostics.check import DETAILS, Evidence
from ihmm.diagnostics.criticism import criticise, is_number_given
from ihmm.diagnostics.remedies import RunFacts
from ihmm.model import Draw, Model
from ihmm.predictions import averages, predict
from ihmm.summaries.labels import evenly_spaced
from ihmm.summaries.levels import Levels
from ihmm.summaries.state_order import CENTERS

LIKELIHOOD_DRAWS, LIKELIHOOD_STEPS = 24, 4_000_000  # draws of each chain with log p(y | θ), and steps of all of them
MIN_LIKELIHOOD_DRAWS = 8
CRITICISED_DRAWS = 12  # of all chains
SETTLED_SHARE, SETTLED_PART = 0.005, 0.1  # of the steps, and of the share of a rare level
SETTLED_CHANGES, SETTLED_RATE = 0.01, 0.25  # of their number, and of its square root: the uncertainty of any rate
SETTLED_MEAN = 0.05  # of what separates a mean from the next one, or of the spread of the values around it
MAX_COLUMNS = 6  # whose means are compared


class Quantity(NamedTuple):
    """Something that is used of the answer."""

    draws: FloatArray  # (chains, draws)
    tolerance: float  # spread over nearly all draws below which it is settled, however the chains differ


def collect(
    model: Model,
    data: Data,
    draws: Sequence[Sequence[Draw]],
    states: Array,
    traces: Mapping[str, Array],
    levels: Levels,
    run: RunFacts,
) -> Evidence:
    """Collect the evidence. `states` are the trajectories, (chains, draws, T)."""
    begins = np.cumsum([0, *(len(chain) for chain in draws)])[:-1]
    number, n_states = _numbers(levels, begins)
    likelihood = log_likelihoods(model, data, draws, levels, begins)
    found = agreement.compare(_paths(levels, draws, begins), number, likelihood.mean(axis=1))
    chosen = [
        (int(begins[c] + d), chain[int(d)])
        for c, chain in enumerate(draws)
        for d in evenly_spaced(len(chain), max(CRITICISED_DRAWS // len(draws), 1))
    ]
    matches = levels.summary.matches
    quantities = _by_level(states, levels, begins, data)
    return Evidence(
        n_levels=levels.n_levels,
        n_levels_by_draw=number,
        n_states_by_draw=n_states,
        quantities={name: quantity.draws for name, quantity in quantities.items()},
        tolerances={name: quantity.tolerance for name, quantity in quantities.items()},
        log_likelihood=likelihood,
        agreement=found,
        details={name: traces[name] for name in DETAILS if name in traces},
        criticisms=criticise(
            model, data, [draw for _, draw in chosen], levels, [matches[index].label for index, _ in chosen]
        ),
        run=run,
        n_steps=len(data.y),
        number_given=is_number_given(model, levels),
    )


def log_likelihoods(
    model: Model, data: Data, draws: Sequence[Sequence[Draw]], levels: Levels, begins: IntArray
) -> FloatArray:
    """(chains, some draws): log p(y | θ), with the states summed out."""
    shortest = min(len(chain) for chain in draws)
    most = LIKELIHOOD_STEPS // (len(data.y) * len(draws))
    chosen = evenly_spaced(shortest, int(np.clip(most, MIN_LIKELIHOOD_DRAWS, LIKELIHOOD_DRAWS)))
    matches = levels.summary.matches
    items = [
        predict.LabelledDraw(chain[int(d)], matches[begin + d].label, (0, int(begin + d)))
        for begin, chain in zip(begins, draws, strict=True)
        for d in chosen
    ]
    by_draw = averages.log_likelihood(model, data, items).sum(axis=1)
    return np.asarray(by_draw.reshape(len(draws), len(chosen)))


def _numbers(levels: Levels, begins: IntArray) -> tuple[IntArray, IntArray]:
    """(chains, draws that were grouped): numbers of levels, and of states that are not too brief to count."""
    chain = np.searchsorted(begins, [found.draw for found in levels.by_draw], "right") - 1
    number = np.array([(found.n_levels, found.n_lasting) for found in levels.by_draw])
    shortest = np.bincount(chain).min()
    n_levels, n_states = (np.stack([own[chain == c][:shortest] for c in range(len(begins))]) for own in number.T)
    return n_levels, n_states


def _paths(levels: Levels, draws: Sequence[Sequence[Draw]], begins: IntArray) -> list[Array]:
    """For each chain, the paths of some of its draws by their own levels."""
    chain = np.searchsorted(begins, [found.draw for found in levels.by_draw], "right") - 1
    paths = []
    for c, begin in enumerate(begins):
        own = [found for found, which in zip(levels.by_draw, chain, strict=True) if which == c]
        some = [own[i] for i in evenly_spaced(len(own), agreement.MAX_PATHS)]
        paths.append(np.stack([found.level[draws[c][int(found.draw - begin)].states] for found in some]))
    return paths


def _by_level(states: Array, levels: Levels, begins: IntArray, data: Data) -> dict[str, Quantity]:
    """Changes of level, and the share and mean of each level.

    A few changes more or less matter to no rate, whose own uncertainty is at least that of counting them.
    """
    n_chains, n_draws, n_steps = states.shape
    shares, changes = np.zeros((n_levels := levels.n_levels, n_chains, n_draws)), np.zeros((n_chains, n_draws))
    inside = np.ones(n_steps - 1, bool)
    inside[data.offsets[1:-1] - 1] = False
    matches = levels.summary.matches
    for c, begin in enumerate(begins):
        for d in range(n_draws):
            label = levels.level_of_state[matches[begin + d].label]
            path = label.astype(np.uint8 if n_levels < 256 else np.int64)[states[c, d]]
            shares[:, c, d] = np.bincount(path, minlength=n_levels) / n_steps
            changes[c, d] = np.count_nonzero((path[1:] != path[:-1]) & inside)
    number = float(changes.mean())
    found = {"changes of level": Quantity(changes, max(SETTLED_CHANGES * number, SETTLED_RATE * number**0.5))}
    if n_levels > 1:
        small = [min(SETTLED_SHARE, SETTLED_PART * float(share.mean())) for share in shares]
        found |= {f"share of level {j}": Quantity(shares[j], small[j]) for j in range(n_levels)}
    return found | _means(levels, begins, n_draws, data)


def _means(levels: Levels, begins: IntArray, n_draws: int, data: Data) -> dict[str, Quantity]:
    """Mean of each level that nearly all draws have; settled if known to a small part of what makes it a level."""
    by_level = _mean_by_draw(levels)
    center = {j: mean.mean(axis=0) for j, mean in by_level.items()}
    observed = np.asarray(data.values, np.float64).reshape(len(data.y), -1)
    found = {}
    for j, mean in by_level.items():
        here = observed[levels.segmentation == j]
        for d in range(mean.shape[1]):
            known = here[np.isfinite(here[:, d]), d] if d < here.shape[1] else np.empty(0)
            gap = min((abs(float(other[d] - center[j][d])) for i, other in center.items() if i != j), default=0.0)
            column = f", column {d}" if mean.shape[1] > 1 else ""
            found[f"mean of level {j}{column}"] = Quantity(
                np.stack([mean[begin : begin + n_draws, d] for begin in begins]),
                SETTLED_MEAN * max(gap, float(known.std()) if known.size else 0.0),
            )
    return found


def _mean_by_draw(levels: Levels) -> dict[int, FloatArray]:
    """Level → (draws of all chains, columns): its mean, that of all draws where a draw does not have the level."""
    summary = levels.summary
    name = next((name for name in CENTERS if name in summary.parameters), None)
    if name is None:
        return {}
    values = summary.parameters[name].reshape(*summary.parameters[name].shape[:2], -1)[:, :, :MAX_COLUMNS]
    found = {}
    for j in range(levels.n_levels):
        states = np.flatnonzero(levels.level_of_state == j)
        weight = np.isfinite(values[:, states, 0]) * summary.shares[states]
        present = weight.sum(axis=1)
        if np.mean(present > 0) < 0.95:
            continue
        mean = np.einsum("nkd,nk->nd", np.nan_to_num(values[:, states]), weight) / np.maximum(present, 1e-300)[:, None]
        mean[present == 0] = mean[present > 0].mean(axis=0)
        found[j] = mean
    return found
