"""Posterior: what sampling returns. It keeps the draws small in memory, and answers questions about them."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np

from ihmm import store
from ihmm._typing import Array, IntArray
from ihmm.model import Data, Model
from ihmm.records import HYPER, Draws, Record
from ihmm.samplers import Sampler

if TYPE_CHECKING:
    import xarray


@final
class Posterior:
    """Draws from the posterior, with the model, the data and the settings that made them.

    Chains that were interrupted may differ in length. `states` and `traces` are rectangular: they hold the first draws
    of every chain, as many as the shortest one has. `draws` holds all draws of each chain.

    Attributes
    ----------
    model, data, sampler, seed
        What was sampled, from what, and how. `data` has the fields `y`, `offsets` and `lengths`.
    traces
        Name → (chains, draws): n_states, log_joint, the hyperparameters, and the sampler's diagnostics.
    warmup
        The tuning sweeps as a `Posterior`, or None if they were not saved.
    """

    def __init__(
        self,
        model: Model,
        data: Data,
        states: Array,
        records: Sequence[Record],
        *,
        sampler: Sampler | None = None,
        seed: int | None = None,
        warmup: "Posterior | None" = None,
    ) -> None:
        self.model, self.data, self.sampler, self.seed, self.warmup = model, data, sampler, seed, warmup
        self._states, self._records = states, tuple(records)
        shortest = min(len(record) for record in records)
        names = records[0].traces
        self.traces: dict[str, Array] = {
            name: np.stack([record.traces[name][:shortest] for record in records]) for name in names
        }

    @property
    def states(self) -> Array:
        """(chains, draws, total T), in the smallest unsigned integers that hold them."""
        return self._states[:, : self.n_states.shape[1]]

    @property
    def lengths(self) -> IntArray:
        """Steps of each sequence; they sum to total T."""
        return self.data.lengths

    @property
    def n_states(self) -> IntArray:
        """(chains, draws): states visited."""
        return self.traces["n_states"]

    @property
    def draws(self) -> tuple[Draws, ...]:
        """`draws[c][d]` is a `Draw`; every draw of every chain is here."""
        return tuple(Draws(states, record) for states, record in zip(self._states, self._records, strict=True))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a folder of JSON and NumPy arrays. One that holds a saved posterior is replaced, no other is.

        The folder is written under another name and renamed at the end, so a crash never leaves half a posterior.
        """
        store.save(path, self._contents())

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, model: Model | None = None) -> "Posterior":
        """Read what `save` wrote. Emissions that are not part of ihmm cannot be named in a file: pass the `model`."""
        model, data, kept, tuned, sampler, seed = store.load(path, model)
        warmup = cls(model, data, *tuned, sampler=sampler, seed=seed) if tuned is not None else None
        return cls(model, data, *kept, sampler=sampler, seed=seed, warmup=warmup)

    def _contents(self) -> store.Contents:
        warmup = store.Kept(self.warmup._states, self.warmup._records) if self.warmup is not None else None
        return store.Contents(
            self.model, self.data, store.Kept(self._states, self._records), warmup, self.sampler, self.seed
        )

    def to_datatree(self) -> "xarray.DataTree":
        """The posterior as ArviZ reads it: groups posterior, sample_stats, observed_data, and warmup_… if saved."""
        import xarray

        seed = self.seed if self.seed is None or self.seed < 2**63 else str(self.seed)  # netCDF has no larger integers
        attrs = {"inference_library": "ihmm", "inference_library_version": store.version(), "seed": seed}
        groups = {name: xarray.Dataset(*group) for name, group in self._groups().items()}
        tree = xarray.DataTree.from_dict(groups)
        tree.attrs = {name: value for name, value in attrs.items() if value is not None}
        return tree

    def _groups(self) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
        """Variables and coordinates of each group."""
        sweep = {"chain": [record.chain for record in self._records], "draw": np.arange(self.n_states.shape[1])}
        time = _time(self.lengths)
        unknown = {name: (("chain", "draw"), self.traces[name]) for name in (*HYPER, "n_states")}
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
            f"  states     {_shares(self.n_states)}",
            f"  log_joint  {log_joint.min():.1f} to {log_joint.max():.1f}",
        ]
        if longer:
            lines.append(f"  chains have {', '.join(str(len(record)) for record in self._records)} draws, see .draws")
        return "\n".join(lines)


def _time(lengths: IntArray) -> dict[str, Any]:
    """Coordinates of the time axis: the position, and with several sequences which one and the step within it."""
    time: dict[str, Any] = {"time": np.arange(lengths.sum())}
    if len(lengths) > 1:
        time["sequence"] = ("time", np.repeat(np.arange(len(lengths)), lengths))
        time["step"] = ("time", np.concatenate([np.arange(length) for length in lengths]))
    return time


def _shares(n_states: IntArray, most: int = 4) -> str:
    """'4 (93 %), 5 (6 %), …', the commonest numbers of states first."""
    values, count = np.unique(n_states, return_counts=True)
    order = np.argsort(-count, kind="stable")[:most]
    shown = [f"{values[i]} ({100 * count[i] / n_states.size:.0f} %)" for i in order]
    return ", ".join(shown) + (", …" if len(values) > most else "")
