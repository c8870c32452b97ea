"""The text and tables of a report, as plain values for the template."""

import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ihmm._numbers import three_digits
from ihmm._typing import FloatArray
from ihmm.figures.plot_data import colours, column_names, letters
from ihmm.posterior import Posterior
from ihmm.summaries.summary import QUANTILES

MARKS = ("●", "■", "▲", "◆", "▼", "⬢", "★")  # by state, beside its colour; the same as in the figure of the series


def columns(posterior: Posterior, names: Sequence[str] | None) -> list[str]:
    """Names of the columns; numbers if none are given."""
    n_columns = posterior.data.y[0].size
    if names is None:
        return column_names(posterior)
    given = [names] if isinstance(names, str) else [str(name) for name in names]
    if len(given) != n_columns:
        raise ValueError(f"names must have one entry per column of the series ({n_columns}), got {len(given)}: {given}")
    return given


def headline(posterior: Posterior) -> str:
    """'2 levels; the lower one has two kinetic states with dwell times 2400 and 3 steps. 95% of the draws have 2 …'"""
    levels = posterior.levels()
    return f"{levels.headline} {levels.certainty}"


class Level(NamedTuple):
    """One row of the table of levels."""

    name: str
    cells: list[str]


class LevelTable(NamedTuple):
    header: list[str]
    rows: list[Level]


def levels(posterior: Posterior) -> LevelTable:
    """Share, mean and dwell time of each level, and its kinetic states."""
    found = posterior.levels()
    clock, (factor, unit) = posterior.clock, posterior.clock.scale(float(np.median(found.dwell)))
    mean_of = [found.center_name] if found.centers is not None else []
    header = ["share", "support", *mean_of, f"dwell ({unit})", "kinetic states"]
    rows = []
    for j in range(found.n_levels):
        mean = [three_digits(float(found.centers[j]))] if found.centers is not None else []
        names = posterior.summary().labels
        kinetic = ", ".join(f"{names[k]} ({clock.text(float(found.state_dwell[k]))})" for k in found.states_of(j))
        share, support = f"{found.shares[j]:.1%}", f"{found.support[j]:.0%}"
        rows.append(
            Level(found.labels[j], [share, support, *mean, three_digits(factor * float(found.dwell[j])), kinetic])
        )
    return LevelTable(header, rows)


def facts(posterior: Posterior) -> dict[str, str]:
    """Size of the data and of the run, by name."""
    values, lengths = posterior.data.values, posterior.lengths
    chains = [len(draws) for draws in posterior.draws]
    facts = {"steps": _count(len(values))}
    if len(lengths) > 1:
        shortest, longest = _count(lengths.min()), _count(lengths.max())
        each = f"{shortest} to {longest} steps" if shortest != longest else f"{longest} steps each"
        facts["sequences"] = f"{_count(len(lengths))} ({each})"
    if values.ndim == 2:
        facts["columns"] = str(values.shape[1])
    missing = int(np.isnan(values).sum()) if values.dtype.kind == "f" else 0
    facts["missing values"] = f"{_count(missing)} ({missing / values.size:.2%})" if missing else "none"
    facts["chains"] = str(len(chains))
    same = len(set(chains)) == 1
    facts["draws"] = f"{_count(chains[0])} per chain" if same else " + ".join(map(_count, chains))
    return facts


def _count(n: int) -> str:
    return f"{n:,}".replace(",", "\u202f")


def versions(bokeh: str) -> str:
    ihmm = import_module("ihmm").__version__
    return f"ihmm {ihmm}, Python {platform.python_version()}, NumPy {np.__version__}, Bokeh {bokeh}"


class State(NamedTuple):
    """One row of the table of states."""

    name: str
    colour: str
    mark: str
    cells: list[str]


class Table(NamedTuple):
    header: list[str]
    rows: list[State]


def states(posterior: Posterior, names: Sequence[str]) -> Table:
    """`summary.table()` with the median and the interval of a parameter in one cell."""
    summary = posterior.summary()
    cells = [[f"{share:.1%}", f"{support:.0%}"] for share, support in zip(summary.shares, summary.support, strict=True)]
    header = ["share", "support"]
    factor, unit = posterior.clock.scale(float(np.nanmedian(summary.dwell)))
    dwell = {f"dwell ({unit})": factor * summary.dwell}
    for name, values in {**dwell, **summary.shape_of_dwell, **summary.parameters}.items():
        for index in np.ndindex(values.shape[2:]):
            header.append(_parameter(name, index if values[0, 0].size > 1 else (), names, letters(posterior)))
            for k, row in enumerate(cells):
                row.append(_interval(values[:, k, *index]))
    marked = zip(colours(len(cells)), cells, strict=True)
    labels = summary.labels
    return Table(header, [State(labels[k], hue, MARKS[k % len(MARKS)], row) for k, (hue, row) in enumerate(marked)])


def _parameter(name: str, index: tuple[int, ...], names: Sequence[str], symbols: Sequence[str]) -> str:
    """'mean of current', 'probs of A'; an index that does not refer to a column remains a number."""
    if not index:
        return name
    by_column = name in ("mean", "variance", "covariance") or (name == "probs" and len(names) > 1)
    named = [names[i] for i in index] if by_column else map(str, index)
    if name == "probs" and symbols and len(names) == 1:
        named = [symbols[i] for i in index]
    return f"{name} of {' and '.join(dict.fromkeys(named))}"


def _interval(values: FloatArray) -> str:
    median, low, high = (three_digits(x) for x in np.nanquantile(values, QUANTILES))
    return f"{median} [{low}, {high}]"


def transitions(posterior: Posterior) -> list[list[str]]:
    return [[f"{p:.4f}" for p in row] for row in posterior.summary().transitions]


def settings(posterior: Posterior, others: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(name, value) of all settings."""
    duration = posterior.model.duration
    all_settings = {
        "emission": posterior.model.emission,
        **({"duration": duration} if duration is not None else {}),
        "prior": posterior.model.prior,
        "sampler": posterior.sampler,
        "seed": posterior.seed,
        **others,
    }
    return [row for name, value in all_settings.items() for row in _rows(str(name), value)]


def _rows(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Nested settings get dotted names."""
    if is_dataclass(value) and not isinstance(value, type):
        yield name, type(value).__name__
        for field in fields(value):
            yield f"{name}.{field.name}", _value(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _rows(f"{name}.{key}", part)
    else:
        yield name, value if isinstance(value, str) else _value(value)


def _value(value: Any) -> str:
    """Numbers with six digits, in tuples, too; one number alone needs no brackets."""
    if isinstance(value, tuple):
        return ", ".join(map(_value, value))
    return f"{value:.6g}" if isinstance(value, float) else repr(value)
