"""Result files of a run: summary.json and tables as CSV, report.html, and predictions for new data."""

import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ihmm._typing import Array, ArrayLike, IntArray
from ihmm.cli import fit_options, provenance
from ihmm.diagnostics.check import Check
from ihmm.posterior import Posterior
from ihmm.series.clock import Clock
from ihmm.store.archive import write_atomically
from ihmm.tables import Table

if TYPE_CHECKING:
    import pandas

SUMMARY, STATES, RATES = "summary.json", "states.csv", "rates.csv"
SEGMENTATION, REPORT = "segmentation.csv", "report.html"
FIGURE = "figure.png"
FILES = (SEGMENTATION, STATES, RATES, SUMMARY, fit_options.FILE_NAME, provenance.FILE_NAME)  # beside the report
MAX_SYMBOLS = 5  # most frequent symbols listed per state
MAX_RATES = 12  # fastest transitions listed
DIGITS = 4  # of probabilities


def write_results(posterior: Posterior, folder: Path, *, report: bool) -> dict[str, Any]:
    """Write all result files, with the report on request, and return the contents of summary.json."""
    record = provenance.read(folder)
    found, table = posterior.summary(), _state_table(posterior, record)
    summary = _summary(posterior, table)
    write_atomically(folder / SUMMARY, (json.dumps(summary, indent=2, ensure_ascii=False) + "\n").encode())
    write_atomically(folder / STATES, table.rename(columns=as_text).to_csv(lineterminator="\n").encode())
    write_atomically(folder / RATES, found.rate_table().to_csv(index=False, lineterminator="\n").encode())
    levels, steps = posterior.levels(), np.arange(len(found.states))
    best = {
        "level": levels.segmentation,
        "level_probability": levels.probabilities[steps, levels.segmentation].round(DIGITS),
        "state": found.states,
        "probability": found.probabilities[steps, found.states].round(DIGITS),
    }
    if found.names:
        best["state_name"] = np.array(found.labels, object)[found.states]
    values = _values(posterior.data.values, record.get("columns"), record.get("symbols"), reserved=best)
    segmentation = io.StringIO()
    _write_rows(segmentation, record.get("sequences"), posterior.lengths, posterior.clock, values | best)
    write_atomically(folder / SEGMENTATION, segmentation.getvalue().encode())
    if report:
        write_report(posterior, folder)
    return summary


def _state_table(posterior: Posterior, record: Mapping[str, Any]) -> "pandas.DataFrame":
    """`summary().table()` with the names of symbols or columns in place of their numbers."""
    table = posterior.summary().table()
    columns: Sequence[str] = record.get("columns", ())
    names = record.get("symbols") or (columns if len(columns) > 1 else ())
    return table.rename(columns=lambda column: re.sub(r"\d+(?=\])", lambda i: _name(names, int(i[0])), column))


def _name(names: Sequence[str], i: int) -> str:
    return names[i] if i < len(names) else str(i)


def _summary(posterior: Posterior, table: "pandas.DataFrame") -> dict[str, Any]:
    """The contents of summary.json."""
    found, levels, checked = posterior.summary(), posterior.levels(), posterior.check()
    summary = {
        "n_levels": levels.n_levels,
        "n_levels_probabilities": {str(n): p for n, p in levels.n_levels_probabilities.items()},
        "levels": levels.table().reset_index().to_dict("records"),
        "level_of_state": levels.level_of_state.tolist(),
        "resolution": levels.resolution,
        "n_states": found.n_states,
        "n_states_probabilities": {str(n): p for n, p in posterior.n_states_probabilities().items()},
        "states": table.reset_index().to_dict("records"),
        "initial": found.initial.tolist(),
        "transitions": found.transitions.tolist(),
        "seconds_per_step": posterior.clock.step,
        "rates": found.rate_table().to_dict("records"),
        "check": _check_as_dict(checked),
        "model": repr(posterior.model),
        "sampler": repr(posterior.sampler),
        "seed": posterior.seed,
        "chains": len(posterior.draws),
        "draws": [len(draws) for draws in posterior.draws],
        "lengths": posterior.lengths.tolist(),
    }
    return {name: _without_nan(value) for name, value in summary.items()}


def _check_as_dict(checked: Check) -> dict[str, Any]:
    findings = [finding._asdict() for finding in checked.findings]
    return {
        "fine": bool(checked),
        "verdict": checked.verdict,
        "converged": checked.converged,
        "stable": checked.stable,
        "findings": findings,
        "rhat": checked.rhat,
    }


def _without_nan(value: Any) -> Any:
    """Replace NaN and infinity, which JSON does not have, by None."""
    if isinstance(value, dict):
        return {name: _without_nan(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def describe(posterior: Posterior, folder: Path) -> str:
    """Levels and states as text, with the most frequent symbols of each state if the data are symbols."""
    found = posterior.summary()
    lines = [repr(posterior.levels()), "", repr(found)]
    names: Sequence[str] = provenance.read(folder).get("symbols", ())
    for k, probs in enumerate(getattr(found.phi, "probs", ()) if names else ()):
        frequent = [f"{names[i]} {probs[i]:.0%}" for i in np.argsort(-probs)[:MAX_SYMBOLS] if i < len(names)]
        lines.append(f"  symbols of state {found.labels[k]}: {', '.join(frequent)}{', …' * (len(names) > MAX_SYMBOLS)}")
    if posterior.clock.is_known:
        lines += ["", *_rate_lines(posterior)]
    return "\n".join(lines)


def _rate_lines(posterior: Posterior) -> list[str]:
    """Rates of the transitions that the data are expected to have at least once, fastest first."""
    found = posterior.summary()
    seconds = posterior.clock.duration(found.shares * len(found.states))
    table, label = found.rate_table(), found.labels
    columns = ["from", "to", *(name for name in table if str(name).startswith("rate_per_s"))]
    rates = [row for row in table[columns].itertuples(index=False) if row[2] * seconds[row[0]] >= 1]
    lines = [
        f"  {label[i]} → {label[j]}  {rate:.3g} [{low:.3g}, {high:.3g}]" for i, j, rate, low, high in rates[:MAX_RATES]
    ]
    return [f"Transition rates per second, medians and 95% intervals; all are in {RATES}:", *lines] if lines else []


def write_predictions(file: Any, posterior: Posterior, table: Table, *, causal: bool) -> None:
    """Write the most probable level and state of each row, and the probabilities of all states and of a new one."""
    probabilities = posterior.filter(table.series) if causal else posterior.smooth(table.series)
    names = [f"p{k}" for k in range(probabilities.shape[1] - 1)] + ["p_new"]
    found, levels = posterior.summary(), posterior.levels()
    known, of_level = probabilities[:, :-1], levels.level_of_state[:, None] == np.arange(levels.n_levels)
    best: dict[str, Array] = {"level": (known @ of_level).argmax(axis=1), "state": known.argmax(axis=1)}
    if found.names:
        best["state_name"] = np.array(found.labels, object)[best["state"]]
    columns = best | dict(zip(names, probabilities.round(DIGITS).T, strict=True))
    lengths = [len(part) for part in table.series]
    _write_rows(file, table.names, lengths, table.clock or Clock(), columns)


def _values(
    values: Array, columns: Sequence[str] | None, symbols: Sequence[str] | None, reserved: Iterable[str]
) -> dict[str, Array]:
    """The observations by the name of their column, symbols as their letters."""
    table = values.reshape(len(values), -1)
    names = columns or (["value"] if table.shape[1] == 1 else [f"value {c}" for c in range(table.shape[1])])
    if symbols:
        letters = np.array([*symbols, ""], object)
        table = letters[np.where(np.isnan(table), len(symbols), table).astype(np.int64)]
    taken = {"sequence", "row", "time", "time_s", *reserved}
    return {name if name not in taken else f"{name} (data)": c for name, c in zip(names, table.T, strict=True)}


def _write_rows(
    file: Any, names: ArrayLike | None, lengths: ArrayLike, clock: Clock, columns: Mapping[str, Array]
) -> None:
    """Write a CSV file with one row per time step: its sequence, its number in it from 1, its time, the columns."""
    import pandas

    each = np.asarray(lengths)
    names = np.arange(len(each)) if names is None else np.array([as_text(name) for name in np.asarray(names).tolist()])
    rows = np.concatenate([np.arange(1, length + 1) for length in each])
    place = {"sequence": np.repeat(names, each), "row": rows, **_times(clock, each)}
    frame = pandas.DataFrame(place | {as_text(name): column for name, column in columns.items()})
    frame.to_csv(file, index=False)


def _times(clock: Clock, lengths: IntArray) -> dict[str, Array]:
    if (dates := clock.dates()) is not None:
        return {"time": dates}
    if not clock.is_known:
        return {}
    elapsed = clock.elapsed(lengths)
    digits = 12 - int(np.ceil(np.log10(np.abs(elapsed).max() or 1.0)))  # without the errors of binary fractions
    return {"time_s": elapsed.round(digits)}


def as_text(name: Any) -> Any:
    """A name that no spreadsheet takes for a formula: an apostrophe is put before the characters that begin one."""
    if not isinstance(name, str) or not name.startswith(("=", "+", "-", "@", "\t", "\r")):
        return name
    return name if re.fullmatch(r"[+-]?[\d.]+(e[+-]?\d+)?", name, re.IGNORECASE) else f"'{name}"


def can_report() -> bool:
    return all(map(find_spec, ("bokeh", "jinja2")))


def write_report(posterior: Posterior, folder: Path) -> Path:
    from ihmm import report

    record = provenance.read(folder)
    about: dict[str, Any] = {name: record[name] for name in ("command", "date") if name in record}
    about |= {f"why this model, {i}": reason for i, reason in enumerate(record.get("reasons", ()), 1)}
    about |= {file["path"]: f"SHA-256 {file['sha256']}" for file in record.get("files", ())}
    names = record.get("columns")
    return report.write(posterior, folder / REPORT, title=folder.resolve().name, settings=about, names=names)


def can_plot() -> bool:
    return bool(find_spec("matplotlib"))


def write_figure(posterior: Posterior, folder: Path) -> Path:
    from ihmm import plots

    plots.overview(posterior).savefig(folder / FIGURE, dpi=200)
    return folder / FIGURE
