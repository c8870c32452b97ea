"""Posterior: the draws of a run, stored compactly, with summaries and predictions."""

import os
import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, final

import numpy as np
from scipy.special import logsumexp

from ihmm import _checks, diagnostics, predict, store, summaries
from ihmm._typing import Array, ArrayLike, FloatArray, IntArray
from ihmm.data import Data
from ihmm.draw_storage import HYPER, Draws, PackedDraws, StoredDraws
from ihmm.evidence import collect
from ihmm.levels import Levels, find_levels
from ihmm.model import Draw, Model
from ihmm.remedies import RunFacts
from ihmm.samplers import Sampler

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
        What was sampled and how. `data` has the fields `y`, `offsets` and `lengths`.
    traces
        Name → (chains, draws): n_states, log_joint, the hyperparameters, and diagnostics of the sampler.
    warmup
        The tuning sweeps as a `Posterior`, or None if they were not saved.
    resolution
        Differences between means that do not matter, in the units of the data, as in `levels`; None by default.
    settings
        All settings of the run, None if they are not known.
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
        self.resolution: float | tuple[float, ...] | None = None
        self.settings = settings
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
        return summaries.summarise(self, self._trajectories, like, self.model.emission, self.model.duration)

    def check(self) -> diagnostics.Check:
        """Can the answer be trusted? Convergence, agreement of the chains and fit of the model. Print it to read it.

        The verdict rests on the levels: see `levels`. Requires the extra `arviz`.
        """
        key = self.resolution
        if key not in self._checks:
            settings = self.settings
            run = RunFacts(
                draws=self.n_states.shape[1],
                tune=None if settings is None else settings.tune,
                init=None if settings is None else settings.init,
                chains=len(self._records),
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
        by_draw = predict.log_likelihood(self.model, self._observe(y), self._labelled)
        return np.asarray(logsumexp(by_draw, axis=0) - np.log(len(by_draw)))

    def smooth(self, y: Any) -> FloatArray:
        """P(s_t | y), (total T, n_states + 1): the states of `summary`; the last column is all other states."""
        return self._state_probabilities(y, causal=False)

    def filter(self, y: Any) -> FloatArray:
        """P(s_t | y_1 … y_t): like `smooth`, but causal. The parameters are those of the fit."""
        return self._state_probabilities(y, causal=True)

    def decode(self, y: Any) -> IntArray:
        """Most probable trajectory (Viterbi) under each draw: (all draws, total T), −1 for states not in `summary`."""
        return predict.decode(self.model, self._observe(y), self._labelled)

    def forecast(self, steps: int, y: Any = None) -> "predict.Forecast | list[predict.Forecast]":
        """Simulate the future of the fitted series, or of `y`, once per draw; a list for several sequences."""
        _checks.count("steps (to forecast)", steps)
        data = self._observe(y) if y is not None else None
        futures = predict.forecast(self.model, self.data, self._labelled, steps, data)
        return futures[0] if len(futures) == 1 else futures

    def impute(self) -> predict.Imputed:
        """Draw the missing values of the fitted series, once per draw."""
        return predict.impute(self.model, self.data, self._labelled)

    def _state_probabilities(self, y: Any, *, causal: bool) -> FloatArray:
        n_labels = self.summary().n_states
        return predict.state_probabilities(self.model, self._observe(y), self._labelled, n_labels, causal=causal)

    def _observe(self, y: Any) -> Data:
        return self.model.observe(y, shortest=1, columns=self.data.columns)

    @cached_property
    def _labelled(self) -> "list[predict.LabelledDraw]":
        """All draws with the labels of the summary, each with its own random stream for predictions."""
        seed = self.seed or 0
        return [
            predict.LabelledDraw(draw, found.label, (seed, i))
            for i, (draw, found) in enumerate(zip(self, self.summary().matches, strict=True))
        ]

    @cached_property
    def _summary(self) -> summaries.Summary:
        return summaries.summarise(self, self._trajectories, emission=self.model.emission, duration=self.model.duration)

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
        return Posterior(self.model, self.data, states, records, sampler=self.sampler, seed=self.seed)

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
        )
        warmup = StoredDraws(self.warmup._states, self.warmup._records) if self.warmup is not None else None
        return store.RunContents(settings, self.data, StoredDraws(self._states, self._records), warmup)

    def to_datatree(self) -> "xarray.DataTree":
        """Convert to the format of ArviZ: groups posterior, sample_stats, observed_data, and ``warmup_…`` if saved."""
        import xarray

        seed = self.seed if self.seed is None or self.seed < 2**63 else str(self.seed)  # netCDF has no wider integers
        attrs = {"inference_library": "ihmm", "inference_library_version": store.version(), "seed": seed}
        groups = {name: xarray.Dataset(*group) for name, group in self._groups().items()}
        tree = xarray.DataTree.from_dict(groups)
        tree.attrs = {name: value for name, value in attrs.items() if value is not None}
        return tree

    def _groups(self) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
        """Variables and coordinates of each group."""
        sweep = {"chain": [record.chain for record in self._records], "draw": np.arange(self.n_states.shape[1])}
        time = _time(self.lengths)
        names = [name for name in (*HYPER, "sigma", "n_states") if name in self.traces]
        unknown = {name: (("chain", "draw"), self.traces[name]) for name in names}
        stats = {name: trace for name, trace in self.traces.items() if name not in unknown}
        stats["lp"] = stats.pop("log_joint")
        y_dims = ("time", "column")[: self.data.y.ndim]
        groups: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
            "posterior": ({**unknown, "states": (("chain", "draw", "time"), self.states)}, {**sweep, **time}),
            "sample_stats": ({name: (("chain", "draw"), trace) for name, trace in stats.items()}, sweep),
            "observed_data": ({"y": (y_dims, self.data.values)}, time),
        }
        if self.warmup is not None:
            warmup = self.warmup._groups()
            groups |= {f"warmup_{name}": warmup[name] for name in ("posterior", "sample_stats")}
        return groups

    def __repr__(self) -> str:
        chains, draws = self.n_states.shape
        n_sequences, log_joint = len(self.lengths), self.traces["log_joint"]
        longer = [len(record) for record in self._records if len(record) > draws]
        lines = [
            f"Posterior of {chains} chain{'s' * (chains > 1)} × {draws} draw{'s' * (draws > 1)}, "
            f"T = {self.lengths.sum()}" + (f" in {n_sequences} sequences" if n_sequences > 1 else ""),
            f"  states     {_shares(self.n_states_probabilities())}",
            f"  log_joint  {log_joint.min():.1f} to {log_joint.max():.1f}",
        ]
        if longer:
            lines.append(f"  chains have {', '.join(str(len(record)) for record in self._records)} draws, see .draws")
        return "\n".join(lines)


def _time(lengths: IntArray) -> dict[str, Any]:
    """Coordinates of the time axis: the position; for several sequences also the sequence and the step within it."""
    time: dict[str, Any] = {"time": np.arange(lengths.sum())}
    if len(lengths) > 1:
        time["sequence"] = ("time", np.repeat(np.arange(len(lengths)), lengths))
        time["step"] = ("time", np.concatenate([np.arange(length) for length in lengths]))
    return time


def _shares(probabilities: dict[int, float], most: int = 4) -> str:
    """'4 (93 %), 5 (6 %), …', most probable numbers of states first."""
    commonest = sorted(probabilities.items(), key=lambda item: -item[1])
    shown = [f"{size} ({100 * share:.0f} %)" for size, share in commonest[:most]]
    return ", ".join(shown) + (", …" if len(commonest) > most else "")
