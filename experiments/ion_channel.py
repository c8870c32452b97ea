"""T15 Fig. 6: an ion channel, particle Gibbs and beam. The recording is simulated, or provided by the user."""

import hashlib
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import ihmm
from experiments import style
from experiments.chains import CONTENDERS, LARGE, of, stack
from experiments.jobs import Job, Result, Results
from experiments.settings import Settings
from ihmm import tables
from ihmm._typing import FloatArray, IntArray
from ihmm.figures.plot_data import colours

TITLE = "Fig. 6: an ion channel"
NAMES, INIT = ("pg", "beam"), 10
EMISSION = ihmm.Normal(mean=0.0, strength=0.1, shape=2.0, rate=0.1)  # for standardised values


def jobs(settings: Settings) -> list[Job]:
    file = settings.recording
    version = "" if file is None else hashlib.sha256(Path(file).read_bytes()).hexdigest()[:12]
    return [
        Job(
            f"ion_channel/{name}-from-{INIT}-seed-{seed}",
            chain,
            {
                "name": name,
                "seed": seed,
                "sweeps": settings.ion_sweeps,
                "file": None if file is None else str(file),
                "version": version,
            },
        )
        for name in NAMES
        for seed in range(settings.ion_seeds)
    ]


def series(file: str | Path | None) -> tuple[FloatArray, IntArray | None]:
    """The series, and the true states if known."""
    if file is None:
        recording = ihmm.datasets.alamethicin()
        return recording.y, recording.states
    return ihmm.datasets.prepare_current(tables.read([file]).values[:, 0]), None


def chain(name: str, seed: int, sweeps: int, file: str | None, version: str) -> Result:
    """Traces of one chain, how often it switches, and its last trajectory."""
    y, truth = series(file)
    contender = CONTENDERS[name]
    draws = contender.iterate(ihmm.Model(EMISSION, contender.prior), y, seed, INIT, tune=sweeps)
    dwelling = _dwelling(truth, len(y))
    n_states, n_large, log_joint, switches, inside = (np.empty(sweeps) for _ in range(5))
    for i in range(sweeps):
        draw, info = next(draws)
        changes = np.diff(draw.states) != 0
        n_states[i], log_joint[i] = draw.n_states, info.log_joint
        n_large[i] = np.sum(np.bincount(draw.states) >= LARGE * len(y))
        switches[i], inside[i] = 1000 * changes.mean(), 1000 * changes[dwelling].mean()
    rank = np.argsort(np.argsort(draw.phi.mean))
    return {
        "n_states": n_states,
        "n_large": n_large,
        "log_joint": log_joint,
        "switches": switches,
        "inside": inside,
        "path": rank[draw.states],
        "means": np.sort(draw.phi.mean),
    }


def _dwelling(truth: IntArray | None, n: int) -> np.ndarray:
    """Pairs of consecutive time steps without a true change at or next to them; all if the truth is unknown."""
    if truth is None:
        return np.ones(n - 1, bool)
    changes = np.diff(truth) != 0
    return ~(changes | np.roll(changes, 1) | np.roll(changes, -1))


def numbers(results: Results, settings: Settings) -> dict[str, object]:
    y, truth = series(settings.recording)
    out: dict[str, object] = {
        "simulated": truth is not None,
        "length": len(y),
        "levels": len(np.unique(truth)) if truth is not None else "unknown",
        "sweeps": settings.ion_sweeps,
        "seeds": settings.ion_seeds,
        "true_switches": float(1000 * np.mean(np.diff(truth) != 0)) if truth is not None else "unknown",
    }
    half = settings.ion_sweeps // 2
    for name in NAMES:
        chains = of(results, "ion_channel", name, INIT)
        late = {
            quantity: stack(chains, quantity)[:, half:] for quantity in chains[0] if quantity not in ("path", "means")
        }
        out[name] = {
            "states": float(np.median(late["n_states"])),
            "large": float(np.median(late["n_large"])),
            "switches": float(np.mean(late["switches"])),
            "inside": float(np.mean(late["inside"])),
            "inside_error": float(np.std(late["inside"].mean(axis=1), ddof=1) / np.sqrt(len(chains))),
            "log_joint": float(np.median(late["log_joint"])),
        }
    pg, beam = out["pg"], out["beam"]
    out["fewer"] = pg["states"] < beam["states"]
    error = float(np.hypot(pg["inside_error"], beam["inside_error"]))
    out["beam_oscillates"] = beam["inside"] - pg["inside"] > 2 * error
    return out


def _hues(path: IntArray) -> list[str]:
    """Colours of the states by increasing level; small states are grey."""
    large = np.bincount(path) >= LARGE * len(path)
    of_large = iter(colours(int(large.sum())))
    return [next(of_large) if is_large else style.INK for is_large in large]


def figures(results: Results, settings: Settings) -> dict[str, Figure]:
    y, truth = series(settings.recording)
    figure, axes = style.panels(3, 1, 5.4, height_ratios=[1, 1, 0.8])
    for ax, name in zip(axes[:2, 0], NAMES, strict=True):
        last = of(results, "ion_channel", name, INIT)[0]
        path, hues = last["path"], _hues(last["path"])
        if truth is not None:
            level = np.array([y[truth == k].mean() for k in range(truth.max() + 1)])[truth]
            ax.plot(level, color=style.INK, linewidth=0.5, zorder=1)
        for k, hue in enumerate(hues):
            here = np.flatnonzero(path == k)
            ax.scatter(here, y[here], s=5, color=hue, linewidths=0, zorder=2 if hue != style.INK else 3)
        ax.set(xlim=(0, len(y)), ylabel="log current,\nnormalised")
        ax.set_title(f"{CONTENDERS[name].label}: {len(hues)} states after {settings.ion_sweeps} sweeps")
    ax = axes[2, 0]
    ends = []
    for name in NAMES:
        traces = stack(of(results, "ion_channel", name, INIT), "n_states")
        colour, x = CONTENDERS[name].colour, np.arange(1.0, traces.shape[1] + 1)
        ends.append((style.band(ax, x, traces, colour), CONTENDERS[name].label, colour))
    ax.set(xlabel="sweep", ylabel="active states", xlim=(0, len(x)))
    ax.set_ylim(bottom=0)
    if truth is not None:
        style.truth_line(ax, len(np.unique(truth)))
    axes[1, 0].set_xlabel("time step")
    axes[0, 0].tick_params(labelbottom=False)
    style.names_at_the_right(ax, ends, gap=0.14)
    return {"ion_channel": figure}
