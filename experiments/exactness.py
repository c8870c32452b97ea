"""The effect of exactness: the paper's literal proposal and ours, where the posterior is known, and on data."""

from functools import partial

import numpy as np
from matplotlib.figure import Figure

import ihmm
from experiments import four_state, style
from experiments.chains import CONTENDERS, SHOWN, LiteralParticleGibbs, PaperGibbs, of, recording_of, stack
from experiments.jobs import Job, Result, Results
from experiments.settings import Settings
from ihmm.gibbs import initial_draw, sweep

TITLE = "The effect of exactness: T15's proposal to the letter"
MODEL = ihmm.Model(ihmm.NormalMean(noise=0.5, mean=0.0, scale=3.0), ihmm.HDPPrior(1.0, 3.0))
SERIES = (-1.0, -0.6, 0.2, 0.7, 1.1)
SAMPLERS = {"exact": PaperGibbs, "literal": partial(LiteralParticleGibbs, resampling="multinomial")}
PARTICLES = (2, 10)
BATCHES = 50


def jobs(settings: Settings) -> list[Job]:
    tiny_jobs = [
        Job(
            f"exactness/{kind}-{n}-seed-{seed}",
            tiny,
            {"kind": kind, "n_particles": n, "seed": seed, "sweeps": settings.tiny_sweeps},
        )
        for kind in SAMPLERS
        for n in PARTICLES
        for seed in range(settings.tiny_seeds)
    ]
    return [*tiny_jobs, *four_state.jobs(settings)]


def tiny(kind: str, n_particles: int, seed: int, sweeps: int) -> Result:
    """The number of states after each sweep of a chain on five time steps."""
    rng = np.random.default_rng(seed)
    data, sampler = MODEL.observe(SERIES), SAMPLERS[kind](n_particles)
    draw = initial_draw(rng, data, MODEL, np.zeros(len(SERIES), np.int64))
    n_states = np.empty(sweeps, np.int8)
    for i in range(sweeps):
        draw, _ = sweep(rng, data, MODEL, draw, sampler)
        n_states[i] = draw.n_states
    return {"n_states": n_states}


def numbers(results: Results, settings: Settings) -> dict[str, object]:
    exact = ihmm.testing.exact_posterior(MODEL, SERIES)
    expected = sum(probability * (max(partition) + 1) for partition, probability in exact.items())
    out: dict[str, object] = {"expected": expected, "sweeps": settings.tiny_sweeps * settings.tiny_seeds}
    for kind in SAMPLERS:
        for n in PARTICLES:
            traces = stack([results[f"exactness/{kind}-{n}-seed-{s}"] for s in range(settings.tiny_seeds)], "n_states")
            means = traces[:, : traces.shape[1] // BATCHES * BATCHES].reshape(len(traces) * BATCHES, -1).mean(axis=1)
            error = means.std(ddof=1) / np.sqrt(len(means))
            mean = float(means.mean())
            out[f"{kind}_{n}"] = {"mean": mean, "error": float(error), "z": float((mean - expected) / error)}
    return out


def figures(results: Results, settings: Settings) -> dict[str, Figure]:
    found = numbers(results, settings)
    figure, axes = style.panels(1, 2, 2.8, width_ratios=[1, 1.4])
    left, right = axes[0]
    names = {"exact": "pg", "literal": "literal"}
    for shift, (kind, name) in zip((-0.08, 0.08), names.items(), strict=True):
        contender = CONTENDERS[name]
        for i, n in enumerate(PARTICLES):
            value = found[f"{kind}_{n}"]
            left.errorbar(
                i + shift,
                value["mean"],
                2 * value["error"],
                fmt="o",
                color=contender.colour,
                markersize=4,
                linewidth=1.2,
            )
    style.truth_line(left, found["expected"], "exact posterior")
    left.set(xticks=range(len(PARTICLES)), xticklabels=[f"N = {n}" for n in PARTICLES], xlim=(-0.5, 1.5))
    left.set_title("E[K], five time steps")
    ends = []
    for name in ("pg", "literal"):
        contender = CONTENDERS[name]
        traces = stack(of(results, four_state.DATA, name, four_state.INIT), "n_states")[:, :SHOWN]
        x = np.arange(1.0, traces.shape[1] + 1)
        label = "PG, exact" if name == "pg" else contender.label
        ends.append((style.band(right, x, traces, contender.colour), label, contender.colour))
    style.truth_line(right, len(recording_of(four_state.DATA).means))
    right.set(xlabel="sweep", xlim=(0, len(x)))
    right.set_title("Active states, four-state data")
    style.names_at_the_right(right, ends)
    return {"exactness": figure}
