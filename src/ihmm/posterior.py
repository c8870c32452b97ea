"""Posterior: the draws of a run, stored compactly, with summaries and predictions."""

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, final

import numpy as np
from scipy.special import logsumexp

from ihmm import _checks, _html, datatree, store
from ihmm._typing import Array, ArrayLike, FloatArray, IntArray
from ihmm.data import Data
from ihmm.diagnostics import check as diagnostics
from ihmm.diagnostics.evidence import collect
from ihmm.diagnostics.remedies import RunFacts
from ihmm.model import Draw, Model
from ihmm.predictions import averages, forecasts, predict
from ihmm.samplers import Sampler
from ihmm.series.clock import Clock
from ihmm.series.sequences import Sequences, numbers
from ihmm.store.draw_storage import Draws, PackedDraws, StoredDraws
from ihmm.summaries import summary as summaries
from ihmm.summaries.levels import Levels, find_levels
from ihmm.summaries.state_order import check_names, reorder

if TYPE_CHECKING:
    import xarray


@final
class Posterior:
    """Draws from the posterior, with the model, data and settings of the run.

    Interrupted chains may differ in length. `states` and `traces` are rectangular: they are truncated to the shortest
    chain. `draws` holds all draws of each chain.

    Attributes
    ----------
    model, data, sampler, seed
        What was sampled and how. `data` has the fields `y`, `offsets` and `lengths`, and `baseline`: what was
        subtracted from the values, None if nothing was.
    traces
        Name → (chains, draws): n_states, log_joint, the hyperparameters, and diagnostics of the sampler.
    warmup
        The tuning sweeps as a `Posterior`, or None if they were not saved.
    resolution
        Differences between means that do not matter, in the units of the data, as in `levels`; None by default.
    settings
        All settings of the run, None if they are not known.
    order_by, names
        How states are numbered, and their names, as in `relabel`.
    """

    def __init__(
        self,
        model: Model,
        data: Data,
        states: Array,
        records: Sequence[PackedDraws],
        *,
        sampler: Sampler | None = None,
        seed: int | None = None,
        warmup: "Posterior | None" = None,
        settings: store.RunSettings | None = None,
    ) -> None:
        self.model, self.data, self.sampler, self.seed, self.warmup = model, data, sampler, seed, warmup
        self._states, self._records = states, tuple(records)
        self.settings = settings
        self.resolution = None if settings is None else settings.resolution
        self.order_by = "use" if settings is None else settings.order_by
        self.names = {} if settings is None else dict(settings.names)
        self._levels: dict[tuple[float | tuple[float, ...] | None, float | None], Levels] = {}
        self._checks: dict[float | tuple[float, ...] | None, diagnostics.Check] = {}
        shortest = min(len(record) for record in records)
        names = records[0].traces
        self.traces: dict[str, Array] = {
            name: np.stack([record.traces[name][:shortest] for record in records]) for name in names
        }

    @property
    def states(self) -> Array:
        """(chains, draws, total T), of the smallest unsigned integer type that fits."""
        return self._states[:, : self.n_states.shape[1]]

    @property
    def lengths(self) -> IntArray:
        """Length of each sequence; they sum to total T."""
        return self.data.lengths

    @property
    def clock(self) -> Clock:
        """How long a step lasts and when each was taken; it counts steps if that is not known."""
        return self.data.clock or Clock()

    @property
    def n_states(self) -> IntArray:
        """(chains, draws): number of states visited."""
        return self.traces["n_states"]

    @property
    def draws(self) -> tuple[Draws, ...]:
        """All draws: `draws[c][d]` is a `Draw`."""
        return tuple(Draws(states, record) for states, record in zip(self._states, self._records, strict=True))

    def __iter__(self) -> Iterator[Draw]:
        """All draws, chain after chain."""
        return chain.from_iterable(self.draws)

    def summary(self, like: summaries.Summary | None = None) -> summaries.Summary:
        """Match states across draws: one segmentation, parameters with intervals, dwell times.

        States are numbered by frequency, most frequent first. The order of states with similar frequencies may differ
        between runs: pass `like`, a summary of another run on the same data, to give matching states its numbers.
        """
        if like is None:
            return self._summary
        if len(like.states) != self._trajectories.shape[1]:
            n_steps = self._trajectories.shape[1]
            raise ValueError(f"like must be a summary of the same data, {n_steps} steps, got {len(like.states)}")
        return self._summarise(like)

    def relabel(self, *, order_by: str | None = None, names: Mapping[int, str] | None = None) -> "Posterior":
        """The same posterior with other numbers or names of its states, in tables, plots and reports.

        Parameters
        ----------
        order_by
            ``"use"``: the most used state is state 0; ``"mean"``: the state with the lowest mean is, of the first
            column if there are several.
        names
            Names of states by their number in this order, such as ``{0: "closed", 1: "open"}``.
        """
        relabelled = copy(self)
        for cached in ("_summary", "labelled_draws"):
            relabelled.__dict__.pop(cached, None)
        relabelled._levels, relabelled._checks = {}, {}
        relabelled.order_by = self.order_by if order_by is None else order_by
        relabelled.names = self.names if names is None else check_names(names)
        n_states = relabelled.summary().n_states
        unknown = [k for k in relabelled.names if k >= n_states]
        if unknown:
            raise ValueError(f"names has state {unknown[0]}, but there are states 0 to {n_states - 1}")
        return relabelled

    def check(self) -> diagnostics.Check:
        """Can the answer be trusted? Convergence, agreement of the chains and fit of the model. Print it to read it.

        The verdict rests on the levels: see `levels`.
        """
        key = self.resolution
        if key not in self._checks:
            settings = self.settings
            run = RunFacts(
                draws=self.n_states.shape[1],
                tune=None if settings is None else settings.tune,
                init=None if settings is None else settings.init,
                thin=1 if settings is None else settings.thin,
                noise_order=int(getattr(self.model.emission, "order", 0)),
            )
            found = collect(self.model, self.data, self.draws, self.states, self.traces, self.levels(), run)
            self._checks[key] = diagnostics.check(found)
        return self._checks[key]

    def levels(self, resolution: float | None = None, *, overlap: float | None = None) -> Levels:
        """Group states that emit the same into levels: how many there are, and the kinetic states of each.

        Parameters
        ----------
        resolution
            States whose means differ by less than this, in every column, are on one level.
        overlap
            States are on one level if their emission laws overlap by at least this much: ∫ min(f, g), 1 for equal laws
            and 0 for laws without a value in common. By default 0.5 for measurements with the same spread (means less
            than 1.35 standard deviations apart), 0.7 for other measurements, and 0.9 for symbols and counts.
        """
        least = self.resolution if resolution is None else _checks.positive("resolution", resolution)
        if overlap is not None and not 0 < overlap <= 1:
            raise ValueError(f"overlap must be above 0 and at most 1, got {overlap!r}")
        key = (least, overlap)
        if key not in self._levels:
            self._levels[key] = find_levels(
                self.model, self.data, self.draws, self.summary(), resolution=least, overlap=overlap
            )
        return self._levels[key]

    # Without matching states

    def n_states_probabilities(self) -> dict[int, float]:
        """Number of states visited → its posterior probability."""
        values, count = np.unique(self.n_states, return_counts=True)
        return dict(zip(values.tolist(), (count / count.sum()).tolist(), strict=True))

    def change_probability(self) -> FloatArray:
        """(total T,): P(s_t ≠ s_{t−1}), 0 at the start of a sequence."""
        return summaries.change_probability(self._trajectories, self.data.offsets)

    def co_assignment(self, steps: ArrayLike | None = None) -> FloatArray:
        """P(s_t = s_u) for all pairs of time `steps`, by default at most 500 evenly spaced ones."""
        total = self._trajectories.shape[1]
        if steps is None:
            steps = np.linspace(0, total - 1, min(total, 500)).round()
        return summaries.co_assignment(self._trajectories, _checks.steps(steps, total))

    # New observations

    def log_likelihood(self, y: Any) -> FloatArray:
        """Held-out log-likelihood of each sequence: log of p(y_i | θ) averaged over the draws.

        States that were never visited are included. `y` is one series or a list of them, as for `sample`; missing
        values do not contribute.
        """
        by_draw = averages.log_likelihood(self.model, self.observe(y), self.labelled_draws)
        return np.asarray(logsumexp(by_draw, axis=0) - np.log(len(by_draw)))

    def smooth(self, y: Any, *, error: float = 0.01) -> FloatArray:
        """P(s_t | y), (total T, n_states + 1): the states of `summary`; the last column is all other states.

        Only as many of the draws are averaged as it takes for the standard error of every probability, compared with
        the average over all draws, to be at most `error`. With ``error=0`` all are.
        """
        return self._state_probabilities(y, error, causal=False)

    def filter(self, y: Any, *, error: float = 0.01) -> FloatArray:
        """P(s_t | y_1 … y_t): like `smooth`, but causal. The parameters are those of the fit."""
        return self._state_probabilities(y, error, causal=True)

    def decode(self, y: Any) -> IntArray:
        """Most probable trajectory (Viterbi) under each draw: (all draws, total T), −1 for states not in `summary`."""
        return predict.decode(self.model, self.observe(y), self.labelled_draws)

    def forecast(self, steps: int, y: Any = None) -> "forecasts.Forecast | list[forecasts.Forecast]":
        """Simulate the future of the fitted series, or of `y`, once per draw; a list for several sequences."""
        _checks.count("steps (to forecast)", steps)
        data = self.observe(y) if y is not None else None
        self.warn_of_baseline()
        futures = forecasts.forecast(self.model, self.data, self.labelled_draws, steps, data)
        return futures[0] if len(futures) == 1 else futures

    def impute(self) -> forecasts.Imputed:
        """Draw the missing values of the fitted series, once per draw."""
        return forecasts.impute(self.model, self.data, self.labelled_draws)

    def _state_probabilities(self, y: Any, error: float, *, causal: bool) -> FloatArray:
        if not error >= 0:
            raise ValueError(f"error must be a standard error, or 0 to average over all draws, got {error!r}")
        labelled, n_labels = self.labelled_draws, self.summary().n_states
        return averages.state_probabilities(self.model, self.observe(y), labelled, n_labels, causal=causal, error=error)

    def observe(self, y: Any) -> Data:
        """Validate new series, whose columns and symbols are matched by name to those of the fit."""
        columns = self.data.columns or numbers(self.data.y[0].size)
        series = Sequences.of(y, shortest=1, columns=columns, symbols=self.data.symbols)
        return self.model.observe(self._without_baseline(series), shortest=1, columns=columns)

    def _without_baseline(self, series: Sequences) -> Sequences:
        """Series without the slow baseline of the fit, which is known for the fitted series only."""
        baseline, fitted = self.data.baseline, self.data.values
        if baseline is None:
            return series
        baseline = baseline.reshape(fitted.shape)
        if np.array_equal(series.lengths, self.lengths) and series.values.shape == fitted.shape:
            known = ~np.isnan(fitted)
            if np.allclose(series.values[known], (fitted + baseline)[known]):
                return replace(series, values=series.values - baseline)
            if np.allclose(series.values[known], fitted[known]):
                return series
        raise ValueError(
            "the levels of this fit are around a slow baseline of its data, data.baseline; that of other series is not "
            "known: subtract it from both and fit again, so that none is found, or fit both together"
        )

    def warn_of_baseline(self) -> None:
        """Say that simulated values are without the slow baseline of the fit, if there is one."""
        if self.data.baseline is not None:
            warnings.warn(
                "simulated values are without the slow baseline of the fit, data.baseline; its future is not known",
                UserWarning,
                stacklevel=3,
            )

    @cached_property
    def labelled_draws(self) -> "list[predict.LabelledDraw]":
        """All draws with the labels of the summary, each with its own random stream for predictions."""
        seed = self.seed or 0
        return [
            predict.LabelledDraw(draw, found.label, (seed, i))
            for i, (draw, found) in enumerate(zip(self, self.summary().matches, strict=True))
        ]

    @cached_property
    def _summary(self) -> summaries.Summary:
        return replace(reorder(self._summarise(), self.order_by), names=self.names)

    def _summarise(self, like: summaries.Summary | None = None) -> summaries.Summary:
        emission, duration = self.model.emission, self.model.duration
        return summaries.summarise(self, self._trajectories, like, emission, duration, self.clock)

    @cached_property
    def _trajectories(self) -> Array:
        """The trajectories of all draws, (all draws, total T)."""
        whole = all(len(record) == self._states.shape[1] for record in self._records)
        if whole:
            return self._states.reshape(-1, self._states.shape[2])
        return np.concatenate(
            [states[: len(record)] for states, record in zip(self._states, self._records, strict=True)]
        )

    def thin(self, every: int) -> "Posterior":
        """Keep one draw in `every`, starting with the first, to save memory and time."""
        every = _checks.count("every (keep one draw in so many)", every)
        records = [
            PackedDraws.of(
                record.chain, draws[::every], {name: trace[::every] for name, trace in record.traces.items()}
            )
            for record, draws in zip(self._records, self.draws, strict=True)
        ]
        states = self._states[:, ::every].copy()
        thinned = Posterior(self.model, self.data, states, records, sampler=self.sampler, seed=self.seed)
        thinned.order_by, thinned.names, thinned.resolution = self.order_by, self.names, self.resolution
        return thinned

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a folder of JSON and NumPy arrays. An existing folder is replaced only if it is a saved posterior.

        The folder is written under a temporary name and then renamed, so a crash never leaves half a posterior.
        """
        store.save(path, self._contents())

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, model: Model | None = None) -> "Posterior":
        """Read a folder written by `save` or ``sample(…, store=…)``. An unfinished run has the draws made so far.

        The `model` is needed if its emission is not part of ihmm.
        """
        contents = store.load(path, model)
        if contents.kept is None:
            raise ValueError(f"the run in {path} has no draws yet")
        posterior = cls.of(contents)
        if contents.unfinished:
            warnings.warn(
                f'the run in {path} is not finished: {contents.unfinished}; continue it with ihmm.resume("{path}")',
                UserWarning,
                stacklevel=2,
            )
        return posterior

    @classmethod
    def of(cls, contents: store.RunContents) -> "Posterior":
        """The posterior of a run."""
        settings, data, kept, tuned, _ = contents
        assert kept is not None  # see `load`
        sampler, seed = settings.sampler, settings.seed
        warmup = cls(settings.model, data, *tuned, sampler=sampler, seed=seed) if tuned is not None else None
        return cls(settings.model, data, *kept, sampler=sampler, seed=seed, warmup=warmup, settings=settings)

    def _contents(self) -> store.RunContents:
        settings = store.RunSettings(
            model=self.model,
            sampler=self.sampler,
            moves=(),
            seed=self.seed,
            draws=self._states.shape[1],
            tune=0 if self.warmup is None else self.warmup._states.shape[1],
            thin=1,
            chains=1 + max(record.chain for record in self._records),
            init=None,
            save_warmup=self.warmup is not None,
            order_by=self.order_by,
            names=tuple(self.names.items()),
            resolution=self.resolution,
        )
        warmup = StoredDraws(self.warmup._states, self.warmup._records) if self.warmup is not None else None
        return store.RunContents(settings, self.data, StoredDraws(self._states, self._records), warmup)

    def to_datatree(
        self, *, states: bool = False, log_likelihood: bool = True, posterior_predictive: bool = True
    ) -> "xarray.DataTree":
        """Convert to the format of ArviZ.

        The group `posterior` has what is unknown and not constant: the hyperparameters and, by name or number of the
        states of `summary`, the dwell time (in seconds if the time between steps is known), the transitions of one step
        and the emission parameters. In a draw that does not have one of these states, the values are those of the state
        with most of its steps. `sample_stats` has what is counted in each draw: the number of states, the share of the
        steps in each of them, and statistics of the sampler. Other groups: `observed_data` and, if tuning sweeps were
        saved, ``warmup_…``. Chains are truncated to the shortest.

        Parameters
        ----------
        states
            Add the states of each draw, whose numbers mean something else in every draw.
        log_likelihood
            Add log p(y_t | all other values, θ) for every informative step, with the states summed out, as
            leave-one-out cross-validation needs it. If values depend on past values, or with negative binomial or
            Poisson durations, it is log p(y_t | y_1 … y_{t−1}, θ) instead; the attribute `given` of the group says so.
        posterior_predictive
            Add series as long as the data, simulated from the draws.

        The last two have fewer, evenly spaced draws if they would need more than 160 MB.
        """
        import xarray

        seed = self.seed if self.seed is None or self.seed < 2**63 else str(self.seed)  # netCDF has no wider integers
        attrs = {"inference_library": "ihmm", "inference_library_version": store.version(), "seed": seed}
        found = datatree.groups(
            self, states=states, log_likelihood=log_likelihood, posterior_predictive=posterior_predictive
        )
        tree = xarray.DataTree.from_dict({name: xarray.Dataset(*group) for name, group in found.items()})
        tree.attrs = {name: value for name, value in attrs.items() if value is not None}
        return tree

    def __repr__(self) -> str:
        chains, draws = self.n_states.shape
        n_sequences, log_joint = len(self.lengths), self.traces["log_joint"]
        longer = [len(record) for record in self._records if len(record) > draws]
        lines = [
            f"Posterior of {chains} chain{'s' * (chains > 1)} × {draws} draw{'s' * (draws > 1)}, "
            f"T = {self.lengths.sum()}" + (f" in {n_sequences} sequences" if n_sequences > 1 else ""),
            f"  n_states   {_shares(self.n_states_probabilities())}",
            f"  log_joint  {log_joint.min():.1f} to {log_joint.max():.1f}".replace("-", "−"),
        ]
        if longer:
            lines.append(f"  chains have {', '.join(str(len(record)) for record in self._records)} draws, see .draws")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        heading, *facts = (line.strip() for line in repr(self).splitlines())
        levels = self.levels()
        text = [_html.paragraph(heading, bold=True), *(_html.paragraph(fact) for fact in facts)]
        return "".join([*text, levels._repr_html_()])


def _shares(probabilities: dict[int, float], most: int = 4) -> str:
    """'4 (93%), 5 (6%), …', most probable numbers of states first."""
    commonest = sorted(probabilities.items(), key=lambda item: -item[1])
    shown = [f"{size} ({100 * share:.0f}%)" for size, share in commonest[:most]]
    return ", ".join(shown) + (", …" if len(commonest) > most else "")
