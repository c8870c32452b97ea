"""Comparison of models by how well they predict: leave-future-out, or on data that were held out.

Steps of a time series are not exchangeable, so that leaving out single steps tests interpolation: their neighbours
remain. Here the end of every sequence is left out and predicted from what comes before it, block after block. The draws
given all data are weighted by 1/p(left out | before, θ), smoothed as in Pareto-smoothed importance sampling, so that no
model is fitted again (Bürkner, Gabry and Vehtari, Journal of Statistical Computation and Simulation 90, 2020).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp

from ihmm import _html
from ihmm._typing import BoolArray, FloatArray, IntArray
from ihmm.data import Data
from ihmm.datatree import some_draws
from ihmm.posterior import Posterior
from ihmm.predictions import averages

if TYPE_CHECKING:
    import pandas

LEFT_OUT = 0.2  # share of every sequence that is left out, at its end
BLOCKS = 20  # into which left-out steps are divided
MIN_BLOCKS = 5  # that a standard error needs
MAX_KHAT = 0.7  # of weights that can be relied on


@dataclass(frozen=True, eq=False)
class Comparison:
    """How well models predict the same steps, best first.

    Attributes
    ----------
    names
        The models.
    by_block
        (models, blocks): log predictive density of each block of steps given those before it.
    n_steps
        Number of steps that are predicted.
    held_out
        Whether these are new data, rather than the ends of the fitted sequences.
    """

    names: tuple[str, ...]
    by_block: FloatArray
    n_steps: int
    held_out: bool

    @property
    def log_score(self) -> FloatArray:
        """(models,): log predictive density of all steps."""
        return np.asarray(self.by_block.sum(axis=1))

    @property
    def difference(self) -> FloatArray:
        """(models,): log score below that of the best model."""
        return np.asarray(self.log_score - self.log_score[0])

    @property
    def standard_error(self) -> FloatArray:
        """(models,): standard error of `difference`, from the variation between blocks."""
        differences = self.by_block - self.by_block[0]
        return np.asarray(np.sqrt(differences.shape[1]) * differences.std(axis=1, ddof=1))

    @property
    def verdict(self) -> str:
        """Which model predicts best, and how sure that is."""
        if len(self.names) == 1:
            return f"{self.names[0]} is the only model."
        gain, error = -self.difference[1], self.standard_error[1]
        text = f"by {gain:.1f} ± {error:.1f} in log score"
        if gain > 2 * error:
            return f"{self.names[0]} predicts best, better than {self.names[1]} {text}."
        return f"The data do not say whether {self.names[0]} or {self.names[1]} predicts better: they differ {text}."

    def table(self) -> "pandas.DataFrame":
        """One row per model, best first: log score, in all and per step, and its difference from the best."""
        import pandas

        columns = {
            "log_score": self.log_score,
            "per_step": self.log_score / self.n_steps,
            "difference": self.difference,
            "standard_error": self.standard_error,
        }
        return pandas.DataFrame(columns, index=pandas.Index(self.names, name="model"))

    @property
    def _what(self) -> str:
        where = "held-out steps" if self.held_out else "last steps, each block predicted from what comes before it"
        errors = f"standard errors from {self.by_block.shape[1]} blocks"
        return f"Log predictive density of the {self.n_steps} {where}; {errors}."

    def _rows(self) -> list[list[str]]:
        rows = zip(self.names, self.log_score, self.difference, self.standard_error, strict=True)
        shown = [[name, *(f"{x:.1f}".replace("-", "−") for x in values)] for name, *values in rows]
        return [["model", "log score", "difference", "standard error"], *shown]

    def __repr__(self) -> str:
        rows = self._rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        return "\n  ".join([self.verdict, *lines, self._what])

    def _repr_html_(self) -> str:
        header, *rows = self._rows()
        return _html.paragraph(self.verdict, bold=True) + _html.table(header, rows) + _html.paragraph(self._what)


def compare(posteriors: Mapping[str, Posterior], y: Any = None) -> Comparison:
    """Which model predicts best? Log predictive densities with standard errors, without fitting any model again.

    By default the last fifth of every sequence is predicted from what comes before it, in 20 blocks, as far back as the
    draws given all data can be reweighted reliably (Pareto k̂). States are summed out. All models must have been fitted
    to the same data, in the same units: a density per volt is not comparable with one per millivolt, nor with the
    probability of a count. Needs the extra `arviz`.

    Parameters
    ----------
    posteriors
        Name → posterior.
    y
        Held-out sequences, as for `sample`: the models are compared on these, and weights are not needed.
    """
    _check(posteriors)
    items = list(posteriors.values())
    if y is None:
        data = [posterior.data for posterior in items]
        scored, block = _in_common(data), _last_blocks(data[0].offsets)
        sums = [_sums(posterior, own, scored, block) for posterior, own in zip(items, data, strict=True)]
        scores = [_leave_future_out(name, own) for name, own in zip(posteriors, sums, strict=True)]
        n_blocks = min(map(len, scores))
        by_block = np.array([score[:n_blocks] for score in scores])
        scored &= (block >= 0) & (block < n_blocks)
    else:
        data = [posterior.observe(y) for posterior in items]
        scored, (block, sequence) = _in_common(data), _all_blocks(data[0].offsets)
        sums = [_sums(posterior, own, scored, block) for posterior, own in zip(items, data, strict=True)]
        by_block = np.array([_held_out(own, sequence) for own in sums])
    order = np.argsort(-by_block.sum(axis=1), kind="stable")
    names = list(posteriors)
    return Comparison(tuple(names[i] for i in order), by_block[order], int(scored.sum()), y is not None)


def _check(posteriors: Mapping[str, Posterior]) -> None:
    given: Any = posteriors  # whatever its annotation says
    if not isinstance(given, Mapping) or not given:
        raise TypeError('expected posteriors by name, such as {"normal": first, "student": second}')
    for name, posterior in posteriors.items():
        if not isinstance(posterior, Posterior):
            raise TypeError(f"expected posteriors, got {type(posterior).__name__} for {name!r}")
    names = list(posteriors)
    first = posteriors[names[0]].data
    for name in names[1:]:
        other = posteriors[name].data
        if not (
            np.array_equal(first.offsets, other.offsets)
            and np.array_equal(_numbers(first), _numbers(other), equal_nan=True)
        ):
            raise ValueError(f"{name!r} was not fitted to the same data as {names[0]!r}")


def _numbers(data: Data) -> FloatArray:
    return np.asarray(data.values, np.float64).reshape(len(data.y), -1)


def _in_common(data: Sequence[Data]) -> BoolArray:
    """(T,): steps that every model can predict."""
    return np.asarray(np.all([own.informative for own in data], axis=0))


def _sums(posterior: Posterior, data: Data, scored: BoolArray, block: IntArray) -> FloatArray:
    """(draws, blocks): log density of the scored steps of each block under each draw; −1 stands for no block."""
    _, items = some_draws(posterior, len(data.y))
    scores = averages.log_scores(posterior.model, data, items)
    chosen = scored & (block >= 0)
    n_blocks = int(block.max()) + 1
    return np.array([np.bincount(block[chosen], row[chosen], n_blocks) for row in scores])


# Leave-future-out


def _last_blocks(offsets: IntArray) -> IntArray:
    """(T,): block of each step that is left out, 0 for the last ones of every sequence; −1 for the others."""
    block = np.full(offsets[-1], -1)
    for begin, end in pairwise(offsets):
        left_out = int(np.ceil(LEFT_OUT * (end - begin)))
        block[end - left_out : end] = (BLOCKS * np.arange(left_out) // left_out)[::-1]
    return block


def _leave_future_out(name: str, sums: FloatArray) -> FloatArray:
    """(reliable blocks,): log p(block | all before it), from the last block backwards."""
    psis = _pareto_smoothing()
    most = min(1 - 1 / np.log10(len(sums)), MAX_KHAT)
    found: list[float] = []
    left_out = np.zeros(len(sums))
    for own in sums.T:
        left_out += own
        weights, khat = (left_out * 0.0, 0.0) if np.ptp(left_out) == 0 else psis(left_out)
        if khat > most:
            break
        found.append(float(logsumexp(weights + own) - logsumexp(weights)))
    if len(found) < MIN_BLOCKS:
        raise ValueError(
            f"{name!r} cannot be compared without fitting it again: its draws depend too much on the last steps "
            f"(Pareto k̂ {khat:.2f} after {len(found)} of {BLOCKS} blocks). Fit the models to the first part of the "
            "data and pass the rest as y, or make more draws"
        )
    return np.array(found)


# Held-out data


def _pareto_smoothing() -> Any:
    try:
        return import_module("arviz_stats.base").array_stats.psislw
    except ImportError as error:
        raise ImportError("comparing models on their own data needs ArviZ: pip install 'ihmm[arviz]'") from error


def _all_blocks(offsets: IntArray) -> tuple[IntArray, IntArray]:
    """(T,): block of each step, none across sequences; and the sequence of each block."""
    lengths = np.diff(offsets)
    number = np.clip((BLOCKS * lengths / lengths.sum()).round().astype(np.int64), 1, lengths)
    if number.sum() < MIN_BLOCKS:
        number = np.minimum(lengths, -(-MIN_BLOCKS // len(lengths)))
    first = np.cumsum(np.append(0, number))
    block = [first[i] + np.arange(n) * number[i] // n for i, n in enumerate(lengths)]
    return np.concatenate(block), np.repeat(np.arange(len(lengths)), number)


def _held_out(sums: FloatArray, sequence: IntArray) -> FloatArray:
    """(blocks,): log p(block | fit, the blocks before it in its sequence)."""
    out = np.empty(sums.shape[1])
    for i in np.unique(sequence):
        own = np.flatnonzero(sequence == i)
        so_far = logsumexp(np.cumsum(sums[:, own], axis=1), axis=0) - np.log(len(sums))
        out[own] = np.diff(so_far, prepend=0.0)
    return out
