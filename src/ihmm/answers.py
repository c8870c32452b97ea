"""What a run found, as files that other programs read: summary.json, states.csv, segmentation.csv, report.html."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ihmm._typing import Array, ArrayLike
from ihmm.diagnostics import Check
from ihmm.posterior import Posterior
from ihmm.settings import read_provenance

if TYPE_CHECKING:
    import pandas

SUMMARY, STATES, SEGMENTATION, REPORT = "summary.json", "states.csv", "segmentation.csv", "report.html"
FIGURE = "figure.png"
MOST_SYMBOLS = 5  # shown of each state


def write(posterior: Posterior, folder: Path, *, report: bool) -> dict[str, Any]:
    """Write all of them, the report if wanted; returns what is in summary.json."""
    origin = read_provenance(folder)
    found, table = posterior.summary(), states(posterior, origin)
    answer = summary(posterior, table)
    (folder / SUMMARY).write_text(json.dumps(answer, indent=2, ensure_ascii=False) + "\n", "utf-8")
    table.to_csv(folder / STATES)
    best = {"state": found.states, "probability": found.probabilities[np.arange(len(found.states)), found.states]}
    write_steps(folder / SEGMENTATION, origin.get("sequences"), posterior.lengths, best)
    if report:
        write_report(posterior, folder)
    return answer


def summary(posterior: Posterior, table: "pandas.DataFrame") -> dict[str, Any]:
    """The answer as one object of JSON."""
    found, judged = posterior.summary(), check(posterior)
    answer = {
        "n_states": found.n_states,
        "n_states_probabilities": {str(n): p for n, p in posterior.n_states_probabilities().items()},
        "states": table.reset_index().to_dict("records"),
        "initial": found.initial.tolist(),
        "transitions": found.transitions.tolist(),
        "check": None if judged is None else _judgement(judged),
        "model": repr(posterior.model),
        "sampler": repr(posterior.sampler),
        "seed": posterior.seed,
        "chains": len(posterior.draws),
        "draws": [len(draws) for draws in posterior.draws],
        "lengths": posterior.lengths.tolist(),
    }
    return {name: _finite(value) for name, value in answer.items()}


def states(posterior: Posterior, origin: Mapping[str, Any]) -> "pandas.DataFrame":
    """`summary().table()`, its columns named after the symbols or columns of the data."""
    table = posterior.summary().table()
    columns: Sequence[str] = origin.get("columns", ())
    names = origin.get("symbols") or (columns if len(columns) > 1 else ())
    return table.rename(columns=lambda column: re.sub(r"\d+(?=\])", lambda i: _name(names, int(i[0])), column))


def _name(names: Sequence[str], i: int) -> str:
    return names[i] if i < len(names) else str(i)


def describe(posterior: Posterior, origin: Mapping[str, Any]) -> str:
    """The summary as people read it; of symbols, those that each state shows most."""
    found = posterior.summary()
    lines = [repr(found)]
    names: Sequence[str] = origin.get("symbols", ())
    for k, probs in enumerate(getattr(found.phi, "probs", ()) if names else ()):
        shown = [f"{names[i]} {probs[i]:.0%}" for i in np.argsort(-probs)[:MOST_SYMBOLS] if i < len(names)]
        lines.append(f"  state {k} shows {', '.join(shown)}{', …' * (len(names) > MOST_SYMBOLS)}")
    return "\n".join(lines)


def check(posterior: Posterior) -> Check | None:
    """The verdict, or None without the extra `arviz`."""
    return posterior.check() if find_spec("arviz_stats") else None


def can_report() -> bool:
    return all(map(find_spec, ("bokeh", "jinja2")))


def write_report(posterior: Posterior, folder: Path) -> Path:
    from ihmm import report

    origin = read_provenance(folder)
    about: dict[str, Any] = {name: origin[name] for name in ("command", "date") if name in origin}
    about |= {file["path"]: f"SHA-256 {file['sha256']}" for file in origin.get("files", ())}
    names = origin.get("columns")
    return report.write(posterior, folder / REPORT, title=folder.resolve().name, settings=about, names=names)


def can_draw() -> bool:
    return bool(find_spec("matplotlib"))


def draw(posterior: Posterior, folder: Path) -> Path:
    """One page of figures, for those without the report."""
    from ihmm import plots

    plots.overview(posterior).savefig(folder / FIGURE, dpi=200)
    return folder / FIGURE


def write_steps(file: Any, names: ArrayLike | None, lengths: ArrayLike, columns: Mapping[str, Array]) -> None:
    """A CSV with a row for every step: its sequence, its row there counted from 1, and the columns given."""
    import pandas

    each = np.asarray(lengths)
    names = np.arange(len(each)) if names is None else np.asarray(names)
    rows = np.concatenate([np.arange(1, length + 1) for length in each])
    frame = pandas.DataFrame({"sequence": np.repeat(names, each), "row": rows, **columns})
    frame.to_csv(file, index=False, float_format="%.4f")


def _judgement(judged: Check) -> dict[str, Any]:
    findings = [finding._asdict() for finding in judged.findings]
    return {"fine": bool(judged), "stable": judged.stable, "findings": findings, "rhat": judged.rhat}


def _finite(value: Any) -> Any:
    """The same with null in place of NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
