"""Summaries of the draws: quantities that do not depend on state labels, and one table of matched states."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ihmm import _html
from ihmm._numbers import three_digits
from ihmm._typing import Array, FloatArray, IntArray, Phi
from ihmm.durations import Duration, Omega
from ihmm.emissions._angles import angle_fields, unwrap
from ihmm.emissions._parameters import fields, join, rebuild, take
from ihmm.emissions._protocol import Emission, provides
from ihmm.model import Draw
from ihmm.series.clock import Clock
from ihmm.summaries.labels import Match as Match
from ihmm.summaries.labels import align_labels, count_labels, evenly_spaced, match_all, segmentation
from ihmm.summaries.labels import match as match
from ihmm.trajectory import runs

if TYPE_CHECKING:
    import pandas

POOLED_DRAWS = 20  # draws whose mixtures are averaged
RATE_DRAWS = 1000  # draws whose rates are kept
QUANTILES = (0.5, 0.025, 0.975)
MIN_EXIT = 1e-12  # lower bound of the probability of leaving a state, so that dwell times are finite
MAX_SHOWN = 3  # entries of a parameter that are shown in a line of text


def change_probability(states: Array, offsets: IntArray) -> FloatArray:
    """(T,): P(s_t ≠ s_{t−1}) over the rows of `states`; 0 at the first step of a sequence."""
    changes = np.zeros(states.shape[1])
    for row in states:
        changes[1:] += row[1:] != row[:-1]
    changes[offsets[:-1]] = 0
    return np.asarray(changes / len(states))


def co_assignment(states: Array, steps: IntArray) -> FloatArray:
    """P(s_t = s_u) for all pairs of the given steps, over the rows of `states`."""
    together = np.zeros((len(steps), len(steps)))
    for row in states[:, steps]:
        together += row[:, None] == row
    return np.asarray(together / len(states))


def dwell_times(states: Array, offsets: IntArray) -> tuple[IntArray, IntArray]:
    """Lengths and states of the runs of one state sequence. Runs do not extend across sequences."""
    found = runs(states, offsets)
    return found.length, found.state


@dataclass(frozen=True, eq=False)
class Summary:
    """Posterior summary by state. States are numbered from the most to the least used, or as in another summary.

    Quantities by draw have one row per draw, chain after chain, with NaN where a draw does not have the state.

    Attributes
    ----------
    states
        (total T,): the segmentation that agrees best with the draws.
    probabilities
        (total T, n_states): share of the draws in which a step is in a state, after matching labels.
    matches
        For every draw, how its states correspond to those of the segmentation.
    sizes
        (draws,): number of states visited.
    initial, transitions
        Posterior means of π_0, (n_states,), and of the transition matrix, (n_states, n_states), without unseen states.
        If the model has durations: probabilities of the next state.
    dwell
        (draws, n_states): expected dwell time in steps, 1/(1 − π_kk), or the mean of the duration law.
    parameters
        Name of an emission parameter → (draws, n_states, …). Of mixtures: moments and the number of components. Angles
        are within ±π of their mean direction.
    phi
        Posterior mean of the emission parameters. Of mixtures: the pooled components of several draws.
    durations
        Posterior mean of the parameters of the duration laws, if the model has durations.
    dwell_law
        Name of a parameter of the duration laws → (draws, n_states). Empty if the model has no durations.
    exits
        (at most 1000 draws, n_states, n_states): probability of going from one state to another, per step spent in the
        first: the probability that the other follows, over the expected dwell time. NaN on the diagonal.
    clock
        How long a step lasts.
    names
        Names of states by number, of those that have one.
    """

    states: IntArray
    probabilities: FloatArray
    matches: list[Match]
    sizes: IntArray
    initial: FloatArray
    transitions: FloatArray
    dwell: FloatArray
    parameters: dict[str, FloatArray]
    phi: Phi
    durations: Omega | None
    dwell_law: dict[str, FloatArray]
    exits: FloatArray
    clock: Clock
    names: dict[int, str]

    @property
    def n_states(self) -> int:
        return len(self.initial)

    @property
    def labels(self) -> list[str]:
        """The name of each state, or its number."""
        return [self.names.get(k, str(k)) for k in range(self.n_states)]

    @property
    def shares(self) -> FloatArray:
        """(n_states,): expected share of the steps."""
        return np.asarray(self.probabilities.mean(axis=0))

    @property
    def support(self) -> FloatArray:
        """(n_states,): share of the draws that have the state."""
        return np.asarray(np.isfinite(self.dwell).mean(axis=0))

    @property
    def shape_of_dwell(self) -> dict[str, FloatArray]:
        """Parameters of the duration laws under their names in printed tables; none if the mean is the only one."""
        return {f"dwell {name}": values for name, values in self.dwell_law.items()} if len(self.dwell_law) > 1 else {}

    def table(self) -> "pandas.DataFrame":
        """One row per state: share, support, and medians with 95% intervals of dwell time, its law, and parameters."""
        import pandas

        columns: dict[str, Any] = {"name": self.labels} if self.names else {}
        columns |= {"share": self.shares, "support": self.support}
        law = {f"dwell_{name}": values for name, values in self.dwell_law.items()}
        for name, values in {"dwell": self.dwell, **law, **self.parameters}.items():
            for index in np.ndindex(values.shape[2:]):
                full = name + "".join(f"[{i}]" for i in index)
                quantiles = np.nanquantile(values[:, :, *index], QUANTILES, axis=0)
                columns |= dict(zip((full, f"{full}_low", f"{full}_high"), quantiles, strict=True))
                if name == "dwell" and self.clock.is_known:
                    seconds = self.clock.duration(quantiles)
                    columns |= dict(zip(("dwell_s", "dwell_s_low", "dwell_s_high"), seconds, strict=True))
        return pandas.DataFrame(columns, index=pandas.RangeIndex(self.n_states, name="state"))

    @property
    def rates(self) -> FloatArray:
        """(draws, n_states, n_states): k_ij, transitions from state i to state j per second spent in i.

        Per step if the time between steps is not known. NaN on the diagonal and where a draw does not have both states;
        at most 1000 draws. Visits of less than a step are not seen, so that rates near one per step are too low.
        """
        return np.asarray(self.exits / self.clock.duration(1.0))

    def rate_table(self) -> "pandas.DataFrame":
        """One row for each transition: median rate per second, or per step, with its 95% interval, fastest first."""
        import pandas

        rates = self.rates
        pairs = [(i, j) for i, j in np.argwhere(np.isfinite(rates).any(axis=0)).tolist()]
        found = np.array([np.nanquantile(rates[:, i, j], QUANTILES) for i, j in pairs]).reshape(-1, 3)
        columns: dict[str, Any] = {"from": [i for i, _ in pairs], "to": [j for _, j in pairs]}
        if self.names:
            columns |= {f"{end}_name": [self.labels[k] for k in states] for end, states in list(columns.items())}
        per = f"rate_per_{self.clock.unit}"
        table = pandas.DataFrame(columns | dict(zip((per, f"{per}_low", f"{per}_high"), found.T, strict=True)))
        return table.sort_values(per, ascending=False, kind="stable", ignore_index=True)

    @property
    def _heading(self) -> str:
        low, high = np.quantile(self.sizes, QUANTILES[1:], method="inverted_cdf")
        share = f"at least 95% of the draws have {low}" if low == high else f"95% of the draws have {low} to {high}"
        return f"{self.n_states} state{'s' * (self.n_states > 1)}; {share}. Medians and 95% intervals:"

    def _rows(self) -> tuple[list[list[str]], str]:
        """Header and cells of the table that is printed, and in words the parameters that all states share."""
        shown = self.shape_of_dwell | {
            name: values for name, values in self.parameters.items() if values[0, 0].size <= MAX_SHOWN
        }
        scale = self.clock.scale(float(np.nanmedian(self.dwell)))
        rows = [["state", "share", f"dwell ({scale.unit})", *shown]]
        for k in range(self.n_states):
            cells = [_interval(values[:, k]) for values in (scale.factor * self.dwell, *shown.values())]
            rows.append([self.labels[k], f"{self.shares[k]:.1%}", *cells])
        columns = list(zip(*rows, strict=True))
        shared = [c for c in columns[3:] if self.n_states > 1 and len(set(c[1:])) == 1]
        own = [list(row) for row in zip(*(c for c in columns if c not in shared), strict=True)]
        return own, f"In all states: {', '.join(f'{c[0]} {c[1]}' for c in shared)}." if shared else ""

    def __repr__(self) -> str:
        rows, shared = self._rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        return "\n  ".join([self._heading, *lines, *filter(None, [shared])])

    def _repr_html_(self) -> str:
        (header, *rows), shared = self._rows()
        return _html.paragraph(self._heading) + _html.table(header, rows) + (_html.paragraph(shared) if shared else "")


def summarise(
    draws: Iterable[Draw],
    states: Array,
    like: "Summary | None" = None,
    emission: Emission | None = None,
    duration: Duration | None = None,
    clock: Clock | None = None,
) -> Summary:
    """Summarise `draws`, whose state sequences are the rows of `states`.

    States are numbered as in `like`, if given. The emission is needed if its summary is more than its parameters φ, the
    duration if the model has one.
    """
    reference = segmentation(states)
    if like is not None:
        reference = align_labels(reference, like.states)
    matches = match_all(states, reference)
    n_draws, n_labels = len(matches), int(reference.max()) + 1
    describe = emission.describe if provides(emission, "describe") else fields  # type: ignore[union-attr]
    pooled_draws = set(evenly_spaced(n_draws, POOLED_DRAWS).tolist())

    initial, transitions = np.zeros(n_labels), np.zeros((n_labels, n_labels))
    dwell = np.full((n_draws, n_labels), np.nan)
    rate_draws = {d: i for i, d in enumerate(evenly_spaced(n_draws, RATE_DRAWS).tolist())}
    exits = np.full((len(rate_draws), n_labels, n_labels), np.nan)
    omega: dict[str, FloatArray] = {}
    parameters: dict[str, FloatArray] = {}
    pooled: list[list[Phi]] = [[] for _ in range(n_labels)]
    for d, (draw, found) in enumerate(zip(draws, matches, strict=True)):
        present = np.flatnonzero(found.state >= 0)
        first, rows = _label_transitions(draw, found, present, n_labels)
        initial += first
        if duration is None:
            dwell[d, present] = 1 / np.maximum(1 - rows[np.arange(len(present)), present], MIN_EXIT)
        else:
            dwell[d, present] = duration.mean(take(draw.durations, found.state[present]))
            for name, values in fields(draw.durations).items():
                own = omega.setdefault(name, np.full((n_draws, n_labels, *values.shape[1:]), np.nan))
                own[d, present] = values[found.state[present]]
        if d in rate_draws:
            exits[rate_draws[d]] = _exits(rows, present, dwell[d])
        if duration is not None:
            rows[np.arange(len(present)), present] = 0.0
        transitions[present] += rows
        for name, values in describe(draw.phi).items():
            if d == 0:
                parameters[name] = np.full((n_draws, n_labels, *values.shape[1:]), np.nan)
            parameters[name][d, present] = values[found.state[present]]
        for j in present:
            if d in pooled_draws or not pooled[j]:
                pooled[j].append(take(draw.phi, found.state[[j]]))

    for name in angle_fields(draw.phi):
        parameters[name] = unwrap(parameters[name])
    if provides(emission, "pool"):
        phi = join(*(emission.pool(join(*parts)) for parts in pooled))  # type: ignore[union-attr]
    else:
        phi = rebuild(draw.phi, (np.nanmean(values, axis=0) for values in parameters.values()))
    return Summary(
        states=reference,
        probabilities=count_labels(states, matches, n_labels) / n_draws,
        matches=matches,
        sizes=np.array([len(found.label) for found in matches]),
        initial=initial / initial.sum(),
        transitions=transitions / np.maximum(transitions.sum(axis=1, keepdims=True), MIN_EXIT),
        dwell=dwell,
        parameters=parameters,
        phi=phi,
        durations=rebuild(draw.durations, (np.nanmean(own, axis=0) for own in omega.values())) if omega else None,
        dwell_law=omega,
        exits=exits,
        clock=clock or Clock(),
        names={},
    )


def _exits(rows: FloatArray, present: IntArray, dwell: FloatArray) -> FloatArray:
    """(labels, labels): P(j follows i) / E[dwell time of i] for labels `present`, whose transitions are `rows`."""
    exits = np.full((len(dwell), len(dwell)), np.nan)
    leave = np.maximum(1 - rows[np.arange(len(present)), present], MIN_EXIT)
    exits[np.ix_(present, present)] = rows[:, present] / (leave * dwell[present])[:, None]
    np.fill_diagonal(exits, np.nan)
    return exits


def _label_transitions(draw: Draw, found: Match, present: IntArray, n_labels: int) -> tuple[FloatArray, FloatArray]:
    """Initial probabilities of the labels and rows of the labels `present`, states with the same label merged."""
    _, initial, rows = draw.transitions
    merged = np.empty((len(present), n_labels))
    for i, row in enumerate(rows[found.state[present]]):
        merged[i] = np.bincount(found.label, row[:-1], n_labels)
    return np.asarray(np.bincount(found.label, initial[:-1], n_labels), np.float64), merged


def _interval(values: FloatArray) -> str:
    """'1.2 [1.1, 1.31]', or several of these for a vector."""
    quantiles = np.nanquantile(values, QUANTILES, axis=0).reshape(3, -1).T
    cells = ["{} [{}, {}]".format(*map(three_digits, three)) for three in quantiles]
    return ", ".join(cells).replace("-", "−")
