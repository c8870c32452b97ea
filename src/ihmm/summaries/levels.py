"""Levels: states that emit the same, told apart only by their dynamics, are kinetic states of one level."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ihmm import _html
from ihmm._numbers import three_digits
from ihmm._typing import BoolArray, FloatArray, IntArray
from ihmm.data import Data
from ihmm.model import Draw, Model, on_additive_scale
from ihmm.summaries.grouping import absorb_brief, brief_states, center_of_states, draw_levels, shortest_visit
from ihmm.summaries.labels import evenly_spaced
from ihmm.summaries.state_order import CENTERS
from ihmm.summaries.summary import Summary, dwell_times

if TYPE_CHECKING:
    import pandas

MAX_DRAWS = 600  # draws whose states are grouped
MAX_PAIRS = 60_000  # pairs of states compared in all of them
MIN_DRAWS = 25  # of each chain
DWELL_DRAWS = 100  # draws whose visits are measured
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


class DrawLevels(NamedTuple):
    """The levels of one draw."""

    draw: int  # index of the draw, chain after chain
    level: IntArray  # (states of the draw,)
    brief: BoolArray  # (states of the draw,)
    n_coarse: int  # number of levels if somewhat larger differences are ignored
    n_lasting: int  # number of states that are not brief, be their level as it may

    @property
    def n_levels(self) -> int:
        return int(self.level.max()) + 1


@dataclass(frozen=True, eq=False)
class Levels:
    """States grouped into levels by the overlap of their emission laws.

    Levels of one column are numbered by their mean, from the lowest; otherwise from the most to the least used.

    Attributes
    ----------
    level_of_state
        (n_states,): level of each state of `posterior.summary()`.
    segmentation
        (total T,): level of every step.
    probabilities
        (total T, n_levels): share of the draws in which a step is on a level.
    n_levels_probabilities
        Number of levels → share of the draws that have so many.
    together
        (n_states, n_states): share of the draws in which two states are on the same level.
    support
        (n_levels,): share of the draws that have the level.
    dwell
        (n_levels,): mean time spent on a level before it is left, in steps.
    state_dwell
        (n_states,): mean length of the visits to each state of the summary, in steps.
    brief
        States with too few steps to count as a level of their own; they are on the level that surrounds them.
    centers
        (n_levels,): mean of each level, or its median in a model of logarithms; None if it has no single one.
    resolution
        Differences in the mean below this, or these in every column, were ignored; None if none were. In a model of
        logarithms: differences in their mean.
    by_draw
        Levels of each draw that was examined.
    """

    level_of_state: IntArray
    segmentation: IntArray
    probabilities: FloatArray
    n_levels_probabilities: dict[int, float]
    together: FloatArray
    support: FloatArray
    dwell: FloatArray
    state_dwell: FloatArray
    brief: IntArray
    centers: FloatArray | None
    resolution: float | tuple[float, ...] | None
    by_draw: Sequence[DrawLevels]
    summary: Summary

    @property
    def n_levels(self) -> int:
        return int(self.level_of_state.max()) + 1

    @property
    def shares(self) -> FloatArray:
        """(n_levels,): expected share of the steps."""
        return np.asarray(self.probabilities.mean(axis=0))

    @property
    def labels(self) -> list[str]:
        """The names of the states of each level, or its number."""
        names = self.summary.names
        own = [[names[k] for k in self.states_of(j).tolist() if k in names] for j in range(self.n_levels)]
        return [" / ".join(found) if found else str(j) for j, found in enumerate(own)]

    @property
    def center_name(self) -> str:
        """What the `centers` are: "median" if the model is one of logarithms."""
        return "median" if self._of_logarithms else "mean"

    @property
    def _of_logarithms(self) -> bool:
        return "median" in self.summary.parameters

    def states_of(self, level: int) -> IntArray:
        """The kinetic states of a level, longest dwell time first, without brief ones."""
        states = np.setdiff1d(np.flatnonzero(self.level_of_state == level), self.brief)
        return states[np.argsort(-self.state_dwell[states], kind="stable")]

    def table(self) -> "pandas.DataFrame":
        """One row per level: share, support, mean, dwell time, its kinetic states and their dwell times."""
        import pandas

        clock, kinetic = self.summary.clock, [self.states_of(j) for j in range(self.n_levels)]
        dwell = [[f"{clock.duration(self.state_dwell[k]):.3g}" for k in states] for states in kinetic]
        columns: dict[str, Any] = {"share": self.shares, "support": self.support}
        if self.centers is not None:
            columns[self.center_name] = self.centers
        columns |= {
            "dwell": self.dwell,
            **({"dwell_s": clock.duration(self.dwell)} if clock.is_known else {}),
            "states": [", ".join(map(str, states)) for states in kinetic],
            f"state dwell{'_s' * clock.is_known}": [", ".join(texts) for texts in dwell],
        }
        return pandas.DataFrame(columns, index=pandas.RangeIndex(self.n_levels, name="level"))

    @property
    def headline(self) -> str:
        """'2 levels; the lower one has two kinetic states with dwell times 2400 and 3 steps.'"""
        parts = []
        for level in range(self.n_levels):
            states = self.states_of(level)
            if len(states) > 1:
                dwell = _list(self._dwell_texts(states))
                number = NUMBERS[len(states)] if len(states) < len(NUMBERS) else str(len(states))
                parts.append(f"{self._name(level)} has {number} kinetic states with dwell times {dwell}")
        return "; ".join([f"{self.n_levels} level{'s' * (self.n_levels > 1)}", *parts]) + "."

    def _dwell_texts(self, states: IntArray) -> list[str]:
        """['2.4 s', '3 ms'], or ['2400', '3 steps']."""
        if self.summary.clock.is_known:
            return [self.summary.clock.text(self.state_dwell[k]) for k in states]
        *others, last = [three_digits(self.state_dwell[k]) for k in states]
        return [*others, f"{last} steps"]

    def _name(self, level: int) -> str:
        if self.n_levels == 1:
            return "it"
        if self.labels[level] != str(level):
            return self.labels[level]
        if self.n_levels == 2 and self.centers is not None:
            return f"the {('lower', 'upper')[level]} one"
        return f"level {level}"

    @property
    def certainty(self) -> str:
        """'93% of the draws have 3 levels, 7% have 4.'"""
        commonest = sorted(self.n_levels_probabilities.items(), key=lambda item: -item[1])[:4]
        (n, share), *others = [(n, f"{100 * share:.0f}%") for n, share in commonest if share >= 0.01]
        text = f"{share} of the draws have {n} level{'s' * (n > 1)}"
        return ", ".join([text, *(f"{share} have {n}" for n, share in others)]) + "."

    def _rows(self) -> list[list[str]]:
        """Header and cells of the table that is printed."""
        clock = self.summary.clock
        scale = clock.scale(float(np.median(self.dwell)))
        mean_of = [self.center_name] if self.centers is not None else []
        rows = [["level", "share", *mean_of, f"dwell ({scale.unit})", "kinetic states"]]
        for level in range(self.n_levels):
            mean = [three_digits(self.centers[level])] if self.centers is not None else []
            labels = self.summary.labels
            states = ", ".join(f"{labels[k]} ({clock.text(self.state_dwell[k])})" for k in self.states_of(level))
            dwell = three_digits(scale.factor * self.dwell[level])
            rows.append([self.labels[level], f"{self.shares[level]:.1%}", *mean, dwell, states])
        return rows

    def _notes(self) -> Iterator[str]:
        if self.resolution is not None and self._of_logarithms:
            least = ", ".join(f"{np.exp(value):.3g}" for value in np.atleast_1d(self.resolution))
            yield f"Medians that differ by a factor of less than {least} count as one level."
        elif self.resolution is not None:
            least = ", ".join(f"{value:.3g}" for value in np.atleast_1d(self.resolution))
            yield f"Means that differ by less than {least} count as one level."
        if len(self.brief):
            yield f"Too brief to count, and put with the level around: {_named_states(self.brief)}."

    def __repr__(self) -> str:
        rows = self._rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        return "\n  ".join([f"{self.headline} {self.certainty}", *lines, *self._notes()])

    def _repr_html_(self) -> str:
        header, *rows = self._rows()
        notes = [_html.paragraph(note) for note in self._notes()]
        return "".join([_html.paragraph(f"{self.headline} {self.certainty}"), _html.table(header, rows), *notes])


def find_levels(
    model: Model,
    data: Data,
    draws: Sequence[Sequence[Draw]],
    summary: Summary,
    *,
    resolution: float | tuple[float, ...] | None = None,
    overlap: float | None = None,
    seed: int = 0,
) -> Levels:
    """Group the states of every draw, and match the groups to the states of the summary.

    Two states of the summary are on one level if they are in most draws that have both.
    """
    model, data = on_additive_scale(model, data)  # overlap, resolution and spread are about noise that is added
    by_draw = []
    for index, draw in _some(draws):
        rng = np.random.default_rng([seed, index])
        level, brief, coarse = draw_levels(rng, model, data, draw, overlap, resolution)
        n_lasting = int(np.count_nonzero(~brief_states(draw, data.offsets)))
        by_draw.append(DrawLevels(index, level, brief, int(coarse.max()) + 1, n_lasting))
    together = _share_together([(summary.matches[d].state, level) for d, level, *_ in by_draw], summary.n_states)
    center = center_of_states({name: np.nanmean(x, axis=0) for name, x in summary.parameters.items()})
    number = Counter(found.n_levels for found in by_draw)
    label, brief = _usual_number(
        [
            absorb_brief(each, summary.states, data.offsets, center, shortest_visit(model))
            for each in _groupings(together)
        ],
        number,
    )
    centers = _centers(summary, label, data.y.ndim)
    order = np.argsort(centers if centers is not None else -np.bincount(label, summary.shares), kind="stable")
    label = np.argsort(order)[label]

    n_levels = len(order)
    visits_of = [(summary.matches[index], draw.states) for index, draw in _some(draws, DWELL_DRAWS)]
    dwell = _mean_visits([label[found.label[states]] for found, states in visits_of], n_levels, data.offsets)
    state_dwell = _mean_visits([found.label[states] for found, states in visits_of], summary.n_states, data.offsets)
    present = [[np.any(found.state[label == j] >= 0) for j in range(n_levels)] for found in summary.matches]
    return Levels(
        level_of_state=label,
        segmentation=label[summary.states],
        probabilities=summary.probabilities @ (label[:, None] == np.arange(n_levels)),
        n_levels_probabilities={n: number[n] / len(by_draw) for n in sorted(number)},
        together=together,
        support=np.mean(present, axis=0),
        dwell=dwell,
        state_dwell=state_dwell,
        brief=np.flatnonzero(brief | _usually_brief(summary, by_draw)),
        centers=None if centers is None else centers[order],
        resolution=resolution,
        by_draw=by_draw,
        summary=summary,
    )


def _some(draws: Sequence[Sequence[Draw]], most: int = MAX_DRAWS) -> Iterator[tuple[int, Draw]]:
    """Evenly spaced draws of every chain, with their index over all chains; fewer if they have many states."""
    n_states = float(np.mean([chain[len(chain) // 2].n_states for chain in draws]))
    each = max(int(min(most, MAX_PAIRS / n_states**2) / len(draws)), MIN_DRAWS)
    begin = 0
    for chain in draws:
        for d in evenly_spaced(len(chain), each):
            yield begin + int(d), chain[int(d)]
        begin += len(chain)


# Over all draws


def _share_together(found: Sequence[tuple[IntArray, IntArray]], n_states: int) -> FloatArray:
    """(n_states, n_states): of the draws that have two states of the summary, the share that has them on one level."""
    together, both = np.zeros((2, n_states, n_states))
    for state, level in found:
        present = np.flatnonzero(state >= 0)
        own = level[state[present]]
        together[np.ix_(present, present)] += own[:, None] == own
        both[np.ix_(present, present)] += 1
    share = np.asarray(together / np.maximum(both, 1))
    np.fill_diagonal(share, 1.0)
    return share


def _mean_visits(paths: Sequence[IntArray], n_labels: int, offsets: IntArray) -> FloatArray:
    """(n_labels,): mean length of the visits to each label, over all paths."""
    steps, visits = np.zeros((2, n_labels))
    for path in paths:
        lengths, label = dwell_times(path, offsets)
        steps += np.bincount(label, lengths, n_labels)
        visits += np.bincount(label, minlength=n_labels)
    return np.asarray(steps / np.maximum(visits, 1))


def _usually_brief(summary: Summary, by_draw: Sequence[DrawLevels]) -> BoolArray:
    """(n_states,): states of the summary that are brief in most draws that have them."""
    brief, present = np.zeros((2, summary.n_states))
    for found in by_draw:
        state = summary.matches[found.draw].state
        here = np.flatnonzero(state >= 0)
        present[here] += 1
        brief[here] += found.brief[state[here]]
    return np.asarray(brief > 0.5 * np.maximum(present, 1))


def _groupings(together: FloatArray) -> Iterator[IntArray]:
    """Groups of states that are together in most draws, on average over the pairs of two groups; then those of every
    other number of groups, from few to many."""
    if len(together) == 1:
        yield np.zeros(1, np.int64)
        return
    distance = 1 - 0.5 * (together + together.T)
    from scipy.cluster.hierarchy import fcluster, linkage  # slow to import

    tree = linkage(distance[np.triu_indices(len(distance), 1)], "average")
    yield np.unique(fcluster(tree, 0.5, "distance"), return_inverse=True)[1]
    for n in range(1, len(together) + 1):
        yield np.unique(fcluster(tree, n, "maxclust"), return_inverse=True)[1]


def _usual_number(found: Sequence[tuple[IntArray, BoolArray]], number: Counter[int]) -> tuple[IntArray, BoolArray]:
    """The first grouping with as many levels as most draws have; the first one if there is none, or no such number.

    As in `absorb_brief`, brief states do not count.
    """
    usual, times = number.most_common(1)[0]
    right = [each for each in found if int(each[0].max()) + 1 == usual and 2 * times > number.total()]
    return right[0] if right else found[0]


def _centers(summary: Summary, label: IntArray, n_dimensions: int) -> FloatArray | None:
    """(n_levels,): mean of each level, if the states of one column have one."""
    name = next((name for name in CENTERS if name in summary.parameters), None)
    if name is None or n_dimensions > 1 or summary.parameters[name][0, 0].size > 1:
        return None
    by_state = np.nanmean(summary.parameters[name].reshape(-1, summary.n_states), axis=0)
    return np.asarray(np.bincount(label, by_state * summary.shares) / np.bincount(label, summary.shares))


# Words


def _list(items: Sequence[str]) -> str:
    return ", ".join(items[:-1]) + " and " + items[-1]


def _named_states(states: IntArray) -> str:
    if len(states) == 1:
        return f"state {states[0]}"
    return f"states {_list([str(k) for k in states])}"
