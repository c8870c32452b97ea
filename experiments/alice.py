"""T15 Fig. 7 and §4.3: letters of *Alice in Wonderland*: the number of states, and the prediction of the next 4000.

Two very different quantities are called predictive log-likelihood:

* the marginal log-likelihood, log p(y_test | draw) with the states summed out: the measure of predictive performance;
* the emission term, Σ log f(y_t | s_t) along a state sequence s drawn given y_test, which uses each letter beforehand.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import logsumexp

import ihmm
from experiments import style
from experiments.chains import CONTENDERS, stack
from experiments.jobs import Job, Result, Results
from experiments.settings import Settings
from ihmm._typing import FloatArray, IntArray
from ihmm.data import Data
from ihmm.datasets import SYMBOLS, Text
from ihmm.kernels.forward_backward import sample_backward
from ihmm.model import Draw, Model
from ihmm.predictions import predict
from ihmm.samplers._base import sequence_starts

TITLE = "Fig. 7: Alice in Wonderland"
NAMES = ("pg", "pg_sticky", "beam")
SPARSE, FLAT = 0.3, 1.0  # α_φ: the value used in the figures, and the value T15 may have used
FLAT_NAMES, FLAT_INITS = ("pg", "beam"), (3, 10, 30)
PAPER = {"pg": (-5918.4, 123.8), "beam": (-6099.0, 106.0)}
MASS = 10.0  # prior mass of each row of the bigram model
POINTS = 400  # plotted points of a trace


def jobs(settings: Settings) -> list[Job]:
    ihmm.datasets.alice(settings.text)  # fail early if the text is not available
    common = {
        "sweeps": settings.alice_sweeps,
        "keep": settings.alice_draws,
        "text": None if settings.text is None else str(settings.text),
    }
    cases = [
        (name, SPARSE, init, seed)
        for name in NAMES
        for init in settings.alice_inits
        for seed in range(settings.alice_seeds)
    ]
    cases += [(name, FLAT, init, 0) for name in FLAT_NAMES for init in FLAT_INITS if init in settings.alice_inits]
    cases += [("moves", SPARSE, 10, seed) for seed in range(settings.alice_seeds)]
    return [
        Job(
            _name(name, spread, init, seed),
            chain,
            {"name": name, "spread": spread, "init": init, "seed": seed, **common},
        )
        for name, spread, init, seed in cases
    ]


def _name(name: str, spread: float, init: int, seed: int) -> str:
    return f"alice/{name}-spread-{spread:g}-from-{init}-seed-{seed}"


def chain(name: str, spread: float, init: int, seed: int, sweeps: int, keep: int, text: str | None) -> Result:
    """Traces of one chain, and the held-out log-likelihood of evenly spaced draws of its second half."""
    letters: Text = ihmm.datasets.alice(text)
    contender = CONTENDERS[name]
    model = ihmm.Model(ihmm.Categorical(len(SYMBOLS), spread), contender.prior)
    draws = contender.iterate(model, letters.train, seed, init, tune=sweeps // 2)
    test = model.observe(letters.test)
    kept_at = np.linspace(sweeps - 1, sweeps // 2, keep, dtype=np.int64)
    n_states, log_joint, kept = np.empty(sweeps, np.int32), np.empty(sweeps), []
    for i in range(sweeps):
        draw, info = next(draws)
        n_states[i], log_joint[i] = draw.n_states, info.log_joint
        if i in kept_at:
            kept.append(held_out(model, test, draw, (seed, i)))
    marginal, emission = np.array(kept).T
    return {"n_states": n_states, "log_joint": log_joint, "marginal": marginal, "emission": emission}


def held_out(model: Model, test: Data, draw: Draw, seed: tuple[int, int]) -> tuple[float, float]:
    """log p(y | draw), and Σ log f(y_t | s_t) along one state sequence drawn given y and the draw."""
    hmm = predict.finite_hmm(model, predict.LabelledDraw(draw, np.arange(draw.n_states), seed))
    filtered, log_predictive = predict.run_filter(model, test, hmm)
    path = np.empty(len(test.y), np.int64)
    key = np.random.default_rng([*seed, 3]).integers(0, 2**63, dtype=np.uint64)
    sample_backward(filtered, sequence_starts(test.offsets), np.ascontiguousarray(hmm.rows.T), key, path)
    emission = predict.log_densities(model, test, hmm)[np.arange(len(path)), path]
    return float(log_predictive.sum()), float(emission.sum())


def numbers(results: Results, settings: Settings) -> dict[str, object]:
    inits, seeds = settings.alice_inits, settings.alice_seeds
    out: dict[str, object] = {
        "sweeps": settings.alice_sweeps,
        "paper_per_letter": PAPER["pg"][0] / 4000,
        "bigram": bigram(ihmm.datasets.alice(settings.text)),
        "bigram_mass": MASS,
        "inits": ", ".join(map(str, inits)),
        "flat": {
            name: _describe([results[_name(name, FLAT, init, 0)] for init in FLAT_INITS if init in inits])
            for name in FLAT_NAMES
        },
        "moves": _describe([results[_name("moves", SPARSE, 10, seed)] for seed in range(seeds)]),
    }
    for name in NAMES:
        by_init = {init: [results[_name(name, SPARSE, init, seed)] for seed in range(seeds)] for init in inits}
        every = [one for chains in by_init.values() for one in chains]
        half = settings.alice_sweeps // 2
        sizes = {init: float(np.mean(stack(chains, "n_states")[:, half:])) for init, chains in by_init.items()}
        out[name] = {
            **_describe(every),
            "by_init": ", ".join(f"{size:.1f}" for size in sizes.values()),
            "range": max(sizes.values()) - min(sizes.values()),
        }
    pg, beam = out["pg"], out["beam"]
    gap, error = pg["marginal"] - beam["marginal"], np.hypot(pg["marginal_error"], beam["marginal_error"])
    out["pg_minus_beam"], out["pg_minus_beam_error"] = float(gap), float(error)
    out["pg_at_least_beam"] = bool(gap > -2 * error)
    out["reached"] = pg["log_mean"] >= -9800
    return out


def bigram(letters: Text) -> dict[str, float]:
    """A bigram model: rows of counts, smoothed towards the letter frequencies."""
    n_symbols = len(SYMBOLS)
    frequency = np.bincount(letters.train, minlength=n_symbols) + 0.5
    counts = np.zeros((n_symbols, n_symbols))
    np.add.at(counts, (letters.train[:-1], letters.train[1:]), 1)
    rows = counts + MASS * frequency / frequency.sum()
    before = np.append(letters.train[-1], letters.test[:-1])
    log_likelihood = float(np.log(rows / rows.sum(axis=1, keepdims=True))[before, letters.test].sum())
    return {"log_likelihood": log_likelihood, "per_letter": log_likelihood / len(letters.test)}


def _describe(chains: list[Result]) -> dict[str, float]:
    """For all kept draws: mean and sd over draws, standard error over chains, and the log of the mean."""
    marginal, emission = (np.stack([one[name] for one in chains]) for name in ("marginal", "emission"))
    late = np.stack([one["n_states"][len(one["n_states"]) // 2 :] for one in chains])
    return {
        "draws": marginal.size,
        "marginal": float(marginal.mean()),
        "marginal_sd": float(marginal.std()),
        "marginal_error": float(_error(marginal)),
        "log_mean": float(logsumexp(marginal) - np.log(marginal.size)),
        "effective": float(
            np.exp(2 * logsumexp(marginal) - logsumexp(2 * marginal))
        ),  # effective number of draws in the log of the mean
        "per_letter": float(marginal.mean() / 4000),
        "emission": float(emission.mean()),
        "emission_sd": float(emission.std()),
        "emission_error": float(_error(emission)),
        "states": float(late.mean()),
        "states_within": float(late.std(axis=1).mean()),
        "states_between": float(late.mean(axis=1).std()),
    }


def _error(values: FloatArray) -> float:
    """Standard error of the mean; chains are independent, the draws of a chain are not."""
    return values.mean(axis=1).std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan


def figures(results: Results, settings: Settings) -> dict[str, Figure]:
    return {"alice": _traces(results, settings), "alice_held_out": _held_out(results, settings)}


def _traces(results: Results, settings: Settings) -> Figure:
    inits, seeds, sweeps = settings.alice_inits, range(settings.alice_seeds), settings.alice_sweeps
    figure, axes = style.panels(2, 3, 4.9)
    shown = np.unique(np.linspace(0, sweeps - 1, POINTS).round().astype(np.int64))
    step = max(sweeps // POINTS, 1)
    for ax, quantity in zip(axes[0], ("log_joint", "n_states"), strict=False):
        ends = []
        for name in (*NAMES, "moves"):
            starts = (10,) if name == "moves" else inits
            chains = [results[_name(name, SPARSE, init, seed)] for init in starts for seed in seeds]
            traces = _smooth(stack(chains, quantity), step)[:, shown]
            contender = CONTENDERS[name]
            ends.append((style.band(ax, shown + 1.0, traces, contender.colour), contender.label, contender.colour))
        ax.set_title("Joint log-likelihood" if quantity == "log_joint" else "Active states")
        if quantity == "log_joint":  # there is space below the curves
            ax.set_ylim(bottom=-2850)
            for i, (_, label, colour) in enumerate(sorted(ends)):
                ax.annotate(
                    label, (0.98, 0.05 + 0.08 * i), xycoords="axes fraction", ha="right", color=colour, fontsize=7.5
                )
    for ax, name in zip(axes[1], NAMES, strict=True):
        for init, alpha in zip(inits, np.linspace(0.3, 1.0, len(inits)), strict=True):
            for seed in seeds:
                trace = results[_name(name, SPARSE, init, seed)]["n_states"]
                _draw_size(
                    ax,
                    shown,
                    _smooth(trace[None], step)[0],
                    CONTENDERS[name].colour,
                    alpha,
                    init if seed == 0 else None,
                )
        ax.set_title(f"{CONTENDERS[name].label}, from each K")
        ax.set(xlabel="sweep", ylim=(0, 1.15 * max(inits)))
    for name in FLAT_NAMES:
        for init in set(FLAT_INITS) & set(inits):
            trace = results[_name(name, FLAT, init, 0)]["n_states"]
            _draw_size(axes[0, 2], shown, _smooth(trace[None], step)[0], CONTENDERS[name].colour, 0.8, init)
    axes[0, 2].set_title(f"The same with α_φ = {FLAT:g}")
    axes[0, 2].set_ylim(0, 1.15 * max(inits))
    for ax in axes.ravel():
        ax.set_xscale("log")
        ax.set_xlim(step, sweeps)
    return figure


def _draw_size(ax: Axes, at: IntArray, trace: FloatArray, colour: str, alpha: float, init: int | None) -> None:
    """The number of states by sweep, labelled with the initial number."""
    ax.plot(at + 1, trace[at], color=colour, alpha=alpha, linewidth=0.8)
    if init is not None:
        ax.annotate(
            str(init), (0.03, init), xycoords=("axes fraction", "data"), fontsize=6.5, color=colour, va="bottom"
        )


def _smooth(traces: FloatArray, width: int) -> FloatArray:
    """Averages over the last `width` sweeps."""
    total = np.cumsum(traces, axis=1, dtype=float)
    lagged = np.zeros_like(total)
    lagged[:, width:] = total[:, :-width]
    return (total - lagged) / np.minimum(np.arange(1, traces.shape[1] + 1), width)


def _held_out(results: Results, settings: Settings) -> Figure:
    figure, axes = style.panels(1, 2, 2.4)
    titles = {"marginal": "Marginal log-likelihood", "emission": "Emission term along a sampled path"}
    for ax, (quantity, title) in zip(axes[0], titles.items(), strict=True):
        for i, name in enumerate(reversed(NAMES)):
            contender = CONTENDERS[name]
            values = np.concatenate(
                [
                    results[_name(name, SPARSE, init, seed)][quantity]
                    for init in settings.alice_inits
                    for seed in range(settings.alice_seeds)
                ]
            )
            parts = ax.violinplot(values, [i], orientation="horizontal", widths=0.8, showextrema=False)
            parts["bodies"][0].set(facecolor=contender.colour, alpha=0.35)
            ax.plot(values.mean(), i, "o", color=contender.colour, markersize=4)
            if quantity == "emission" and name in PAPER:
                mean, sd = PAPER[name]
                ax.errorbar(mean, i - 0.28, xerr=sd, fmt="D", color=style.INK, markersize=3.5, linewidth=0.9)
                if name == "pg":
                    ax.annotate("T15", (mean - sd, i - 0.28), xytext=(-3, 0), textcoords="offset points", ha="right",
                                va="center", fontsize=7)  # fmt: skip
        ax.set_title(title)
        ax.set(yticks=range(len(NAMES)), yticklabels=[CONTENDERS[name].label for name in reversed(NAMES)])
        ax.set_xlabel("4000 test letters, one value per draw")
        ax.locator_params(axis="x", nbins=5)
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        for tick, name in zip(ax.get_yticklabels(), reversed(NAMES), strict=True):
            tick.set_color(CONTENDERS[name].colour)
    return figure
