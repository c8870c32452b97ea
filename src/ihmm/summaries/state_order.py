"""The order and the names of the states of a summary."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ihmm import _checks
from ihmm._typing import IntArray
from ihmm.emissions._parameters import take
from ihmm.summaries.labels import Match
from ihmm.summaries.summary import Summary

ORDERS = ("use", "mean")
CENTERS = ("mean", "rate", "location", "median")  # parameters that say where a state lies


def reorder(summary: Summary, order_by: str) -> Summary:
    """The same summary with its states ordered by use, the most used first, or by the mean of the first column."""
    if _checks.one_of("order_by", order_by, ORDERS) == "use":
        return summary
    name = next((name for name in CENTERS if name in summary.parameters), None)
    if name is None:
        raise ValueError(
            f'order_by="mean" needs states with a mean, but these have {", ".join(summary.parameters)}; use "use"'
        )
    values = summary.parameters[name]
    first = np.nanmean(values.reshape(*values.shape[:2], -1)[:, :, 0], axis=0)
    return _permuted(summary, np.argsort(first, kind="stable"))


def _permuted(summary: Summary, order: IntArray) -> Summary:
    """State order[i] becomes state i."""
    rank = np.argsort(order)
    durations = summary.durations
    return replace(
        summary,
        states=rank[summary.states],
        probabilities=summary.probabilities[:, order],
        matches=[Match(rank[found.label], found.state[order]) for found in summary.matches],
        initial=summary.initial[order],
        transitions=summary.transitions[np.ix_(order, order)],
        dwell=summary.dwell[:, order],
        parameters={name: values[:, order] for name, values in summary.parameters.items()},
        phi=take(summary.phi, order),
        durations=None if durations is None else take(durations, order),
        dwell_law={name: values[:, order] for name, values in summary.dwell_law.items()},
        exits=summary.exits[:, order][:, :, order],
    )


def check_names(names: Any) -> dict[int, str]:
    """Names of states by number."""
    if not isinstance(names, Mapping):
        raise TypeError(f'names must be a mapping such as {{0: "closed", 1: "open"}}, got {names!r}')
    checked = {_checks.count("names (number of a state)", k, least=0): str(name) for k, name in names.items()}
    repeated = next((name for name in checked.values() if list(checked.values()).count(name) > 1), None)
    if repeated is not None or "" in checked.values():
        raise ValueError(f"names of states must differ and not be empty, got {dict(names)!r}")
    return checked
