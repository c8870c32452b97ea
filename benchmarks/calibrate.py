"""Simulation-based calibration: do 50 % and 90 % intervals contain the truth as often as they say?

    python benchmarks/calibrate.py                        # every model, 200 simulations each; more than an hour
    python benchmarks/calibrate.py --only normal --simulations 50
    python benchmarks/calibrate.py --page                 # write the page from stored results

Parameters, states and T + 1 observations are simulated from a model, and the posterior given the first T is computed
with the default sampler and moves. If everything is right, the rank of a simulated quantity among its posterior draws
is uniform, whatever the quantity (Talts et al. 2018). Ties, as of the number of states, are broken at random. Chains
are continued until every quantity has an effective sample size of 25, or they reach the limit; how many did is
reported.

The last part is the whole pipeline with its defaults, `ihmm.InfiniteHMM().fit(y)`, on recordings of levels in noise.
The model is chosen from the data there, so that ranks need not be uniform; coverage is what users get.

Results are stored in runs/calibration.json; more simulations are added to those that are there.
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from arviz_stats.base import array_stats
from convergence import fill_page, markdown
from scipy.stats import chisquare

import ihmm
from ihmm._typing import Array, FloatArray
from ihmm.arguments import check_sampler
from ihmm.chain import MOVES
from ihmm.data import Data
from ihmm.durations import Geometric, NegativeBinomial, Poisson
from ihmm.emissions._parameters import fields
from ihmm.model import Draw, Model
from ihmm.posterior import Posterior
from ihmm.running import Resources, run_chains
from ihmm.store import MemoryBackend, RunSettings

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "runs" / "calibration.json"
PAGE = ROOT / "docs" / "explanation" / "calibration.md"

STEPS = 30
HERE, THERE = 15, 24  # the states of these steps are asked about
FIRST, LIMIT = 80, 320  # draws per chain
CHAINS, TUNE, THIN = 1, 80, 2
GOAL_ESS = 25
LARGEST = 1e6  # autoregressions may explode; that is seen in the data alone, so that leaving them out is no bias
FORECASTS = 40
ENOUGH = 200  # simulations, for a model to be in the table of quantities

STICKY = ihmm.HDPPrior(ihmm.GammaPrior(), ihmm.GammaPrior(), ihmm.BetaPrior())
PLAIN = ihmm.HDPPrior(ihmm.GammaPrior(), ihmm.GammaPrior())
NORMAL = ihmm.Normal(0.0, 0.05, 3.0, 2.0)
MODELS = {
    "normal": Model(NORMAL, STICKY),
    "normal, known noise": Model(ihmm.NormalMean(0.5, 0.0, 2.0), STICKY),
    "categorical": Model(ihmm.Categorical(4, 0.5), STICKY),
    "poisson": Model(ihmm.Poisson(1.0, 0.1), STICKY),
    "multivariate normal": Model(ihmm.MultivariateNormal(2, 0.0, 0.05, 6.0, 3.0), STICKY),
    "bernoulli": Model(ihmm.Bernoulli(3, 0.5, 0.5), STICKY),
    "multinomial": Model(ihmm.Multinomial(3, 0.5, total=5), STICKY),
    "autoregressive": Model(ihmm.Autoregressive(1), STICKY),
    "student-t": Model(ihmm.StudentT(4.0, 0.0, 0.05, 3.0, 2.0), STICKY),
    "von-mises": Model(ihmm.VonMises(2.0, 0.2), STICKY),
    "mixture": Model(ihmm.DPMixture(NORMAL), STICKY),
    "independent": Model(ihmm.Independent(ihmm.Poisson(1.0, 0.1), ihmm.Normal(0.0, 0.05, 3.0, 2.0)), STICKY),
    "levels": Model(ihmm.NoisyLevels(spread=4.0), STICKY),
    "levels, AR(1) noise": Model(ihmm.NoisyLevels(1, spread=4.0), PLAIN, Geometric()),
    "normal, negative binomial": Model(NORMAL, PLAIN, NegativeBinomial()),
    "normal, Poisson": Model(NORMAL, PLAIN, Poisson()),
}
PIPELINE = "InfiniteHMM()"


class Outcome(NamedTuple):
    """One simulation."""

    ranks: dict[str, float]  # in [0, 1], of every quantity
    draws: int  # per chain
    ess: float  # the smallest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=(*MODELS, PIPELINE), nargs="+", default=(*MODELS, PIPELINE))
    parser.add_argument("--simulations", type=int, default=200)
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args()
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    if not options.page:
        for seed in range(
            options.simulations
        ):  # all models side by side, so that an interruption leaves the same of each
            for name in options.only:
                outcomes = results.setdefault(name, [])
                if seed < len(outcomes):
                    continue
                begin = time.process_time()
                outcome = of_pipeline(seed) if name == PIPELINE else of_model(name, seed)
                outcomes.append(outcome._asdict() | {"seconds": round(time.process_time() - begin, 2)})
            store(results)
    write_page(results)


def store(results: dict[str, list[dict[str, Any]]]) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results), "utf-8")


# Every model


def of_model(name: str, seed: int) -> Outcome:
    """Simulate and fit once. Models with the same prior must not share their random numbers."""
    model, rng = MODELS[name], np.random.default_rng([seed, [*MODELS].index(name)])
    truth, y = simulate(rng, model)
    data = model.observe(y[:STEPS])
    posterior, values, ess = fit(model, data, seed)
    simulated = quantities(model, data, truth)
    ranks = {name: rank(rng, simulated[name], values[name].ravel()) for name in simulated}
    every = max(1, values["states"].size // FORECASTS)
    forecast = posterior.thin(every).forecast(1)
    ranks["forecast"] = rank(rng, np.ravel(y[STEPS])[0], forecast.y.reshape(len(forecast.y), -1)[:, 0])
    return Outcome(ranks, values["states"].shape[1], ess)


def simulate(rng: np.random.Generator, model: Model) -> tuple[Draw, Array]:
    """A draw from the prior with the states of the first T steps, and T + 1 observations."""
    while True:
        (y,), draw = ihmm.simulate(model, STEPS + 1, rng)
        if np.abs(y).max() < LARGEST:
            return draw._replace(trajectory=ihmm.trajectory.Trajectory(draw.states[:STEPS])), y


def fit(model: Model, data: Data, seed: int) -> tuple[Posterior, dict[str, FloatArray], float]:
    """The posterior, the quantities of its draws, (chains, draws), and the smallest effective sample size."""
    sampler = check_sampler(None, model, data)
    backend = MemoryBackend(RunSettings(model, sampler, MOVES, seed, FIRST, TUNE, THIN, CHAINS, 5, False), data, None)
    while True:
        posterior = run_chains(backend, Resources(1), progress=False)
        rows = [[quantities(model, data, draw) for draw in chain] for chain in posterior.draws]
        values = {name: np.array([[each[name] for each in row] for row in rows]) for name in rows[0][0]}
        ess = min(map(effective_size, values.values()))
        if ess >= GOAL_ESS or backend.settings.draws >= LIMIT:
            return posterior, values, ess
        backend.extend(2 * backend.settings.draws)


def quantities(model: Model, data: Data, draw: Draw) -> dict[str, float]:
    """Quantities that do not depend on how states are numbered."""
    states, rows, hyper = draw.states, draw.transitions.rows, draw.hyper
    counts = np.bincount(states)
    here, there = states[HERE], states[THERE]
    values = {
        "states": float(np.count_nonzero(counts)),
        "largest share": counts.max() / len(states),
        "gamma": hyper.gamma,
        "concentration": hyper.concentration,
        "transition": rows[here, there] if here != there else 0.0,
    }
    if model.duration is None:
        values |= {"stickiness": hyper.stickiness, "dwell": 1 / max(1 - rows[here, here], 1e-300)}
    else:
        values["dwell"] = float(model.duration.mean(draw.durations)[here])
    if model.is_mixture:  # components that are occupied later on are not part of a draw
        return values | {"parameter": float(draw.phi.sigma[here])}
    first, *others = fields(draw.phi).values()
    values["parameter"] = np.ravel(first[here])[0]
    if others:
        values["second parameter"] = np.ravel(others[0][here])[0]
    return values | {"log likelihood": model.log_likelihood(data, states, draw.phi)}


def effective_size(x: FloatArray) -> float:
    if np.ptp(x) == 0:
        return float(x.size)
    value = float(array_stats.ess(x, chain_axis=0, draw_axis=1, method="bulk"))
    return value if np.isfinite(value) else float(x.size)


def rank(rng: np.random.Generator, truth: float, draws: FloatArray) -> float:
    """Where the truth is among the draws, from 0 to 1, at random among those that are equal."""
    below, equal = np.sum(draws < truth), np.sum(draws == truth)
    return float((below + rng.random() * (equal + 1)) / (len(draws) + 1))


# The whole pipeline

LEVEL_STEPS, STAY, GAP = 200, 0.95, 4.0  # of the recordings; the distance of levels in standard deviations of the noise


def of_pipeline(seed: int) -> Outcome:
    """Levels in noise, and a fit with every setting at its default."""
    rng = np.random.default_rng([seed, len(MODELS)])
    n_levels = 1 + seed % 3
    path = np.zeros(LEVEL_STEPS + 1, np.int64)
    for t in range(1, len(path)):
        path[t] = path[t - 1] if rng.random() < STAY else rng.integers(n_levels)
    y = GAP * path + rng.standard_normal(len(path))
    with warnings.catch_warnings(action="ignore"):
        posterior = ihmm.InfiniteHMM(random_state=seed).fit(y[:-1]).posterior_
    here = LEVEL_STEPS // 2
    stay = STAY + (1 - STAY) / n_levels
    truth = {"states": len(np.unique(path[:-1])), "parameter": GAP * path[here], "dwell": 1 / (1 - stay + 1e-300)}
    rows = [pipeline_quantities(posterior.model, draw, here) for draw in posterior]
    values = {name: np.array([row[name] for row in rows]) for name in truth}
    ranks = {name: rank(rng, truth[name], values[name]) for name in truth if n_levels > 1 or name != "dwell"}
    forecast = posterior.thin(max(1, len(rows) // FORECASTS)).forecast(1)
    ranks["forecast"] = rank(rng, y[-1], forecast.y[:, 0])
    ess = min(effective_size(values[name].reshape(len(posterior.draws), -1)) for name in truth)
    return Outcome(ranks, len(posterior.draws[0]), ess)


def pipeline_quantities(model: Model, draw: Draw, step: int) -> dict[str, float]:
    state, rows = draw.states[step], draw.transitions.rows
    if model.duration is None:
        dwell = 1 / max(1 - rows[state, state], 1e-300)
    else:
        dwell = float(model.duration.mean(draw.durations)[state])
    level = np.ravel(fields(draw.phi)["mean"][state])[0]
    return {"states": float(len(np.unique(draw.states))), "parameter": level, "dwell": dwell}


# The page


def write_page(results: dict[str, list[dict[str, Any]]]) -> None:
    """Tables and the figure of docs/explanation/calibration.md."""
    models = {name: results[name] for name in MODELS if name in results}
    enough = {name: outcomes for name, outcomes in models.items() if len(outcomes) >= ENOUGH}
    for name, table in {"coverage": coverage_table(enough), "chains": chains_table(models)}.items():
        print(table, end="\n\n")
        fill_page(name, table, PAGE)
    if PIPELINE in results:
        table = coverage_table({PIPELINE: results[PIPELINE]})
        print(table)
        fill_page("pipeline", table, PAGE)
    draw_ranks(models, PAGE.with_suffix("") / "ranks.png")


QUANTITIES = {
    "states": "number of states",
    "largest share": "share of the largest state",
    "parameter": "first parameter of a state",
    "second parameter": "second parameter",
    "dwell": "mean dwell time of a state",
    "transition": "transition probability",
    "stickiness": "stickiness ρ",
    "gamma": "γ",
    "concentration": "concentration c",
    "log likelihood": "log likelihood",
    "forecast": "forecast of the next value",
}


def coverage_table(results: dict[str, list[dict[str, Any]]]) -> str:
    """Coverage of central 50 % and 90 % intervals by quantity, over all models and in each, as Markdown."""
    heads = ("quantity", "simulations", "in 50 %", "in 90 %", "p, ranks uniform", "lowest and highest of a model, 90 %")
    rows = []
    for name, title in QUANTITIES.items():
        by_model = {model: ranks_of(outcomes, name) for model, outcomes in results.items()}
        by_model = {model: ranks for model, ranks in by_model.items() if ranks.size}
        if not by_model:
            continue
        ranks = np.concatenate([*by_model.values()])
        each = {model: coverage(ranks, 0.9) for model, ranks in by_model.items()}
        low, high = min(each, key=each.__getitem__), max(each, key=each.__getitem__)
        extremes = f"{each[low]:.2f} ({low}), {each[high]:.2f} ({high})" if len(each) > 1 else "–"
        rows.append(
            (
                title,
                str(len(ranks)),
                with_error(ranks, 0.5),
                with_error(ranks, 0.9),
                f"{uniformity(ranks):.2g}",
                extremes,
            )
        )
    return markdown(heads, rows)


def chains_table(results: dict[str, list[dict[str, Any]]]) -> str:
    """Simulations, lengths of chains and coverage over all quantities of every model, as Markdown."""
    heads = (
        "model",
        "simulations",
        "in 50 %",
        "in 90 %",
        "smallest p of a quantity",
        "draws (median)",
        "below the ESS",
    )
    rows = []
    for model, outcomes in results.items():
        ranks = {name: ranks_of(outcomes, name) for name in QUANTITIES if ranks_of(outcomes, name).size}
        smallest = min(ranks, key=lambda name: uniformity(ranks[name]))
        rows.append(
            (
                model,
                str(len(outcomes)),
                f"{np.mean([coverage(each, 0.5) for each in ranks.values()]):.2f}",
                f"{np.mean([coverage(each, 0.9) for each in ranks.values()]):.2f}",
                f"{uniformity(ranks[smallest]):.2g} ({QUANTITIES[smallest]}, of {len(ranks)})",
                f"{np.median([outcome['draws'] for outcome in outcomes]):.0f}",
                str(sum(outcome["ess"] < GOAL_ESS for outcome in outcomes)),
            )
        )
    return markdown(heads, rows)


def ranks_of(outcomes: list[dict[str, Any]], name: str) -> FloatArray:
    return np.array([outcome["ranks"][name] for outcome in outcomes if name in outcome["ranks"]])


def coverage(ranks: FloatArray, probability: float) -> float:
    return float(np.mean(np.abs(ranks - 0.5) <= probability / 2))


def with_error(ranks: FloatArray, probability: float) -> str:
    """Coverage with its standard error if intervals are right."""
    error = np.sqrt(probability * (1 - probability) / len(ranks))
    return f"{coverage(ranks, probability):.3f} ± {error:.3f}"


def uniformity(ranks: FloatArray) -> float:
    """p-value of the χ² test that ranks are uniform, in ten bins."""
    return float(chisquare(np.histogram(ranks, 10, (0, 1))[0]).pvalue)


def draw_ranks(results: dict[str, list[dict[str, Any]]], file: Path) -> None:
    """The distribution function of the ranks minus that of the uniform law: a panel per model, a line per quantity."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from ihmm._plot_data import GREY, PALETTE
    from ihmm.plots._axes import OPEN, WIDTH

    with mpl.rc_context(OPEN | {"font.size": 8, "axes.titlesize": 8, "axes.titlelocation": "left"}):
        figure = Figure(figsize=(WIDTH, 1.5 * np.ceil(len(results) / 4)), layout="constrained")
        axes = figure.subplots(-(-len(results) // 4), 4, sharex=True, sharey=True, squeeze=False)
        grid = np.linspace(0, 1, 101)
        for ax, (model, outcomes) in zip(axes.flat, results.items(), strict=False):
            band = 1.96 * np.sqrt(grid * (1 - grid) / len(outcomes))
            ax.fill_between(grid, -band, band, color=GREY, alpha=0.3, linewidth=0)
            for name in QUANTITIES:
                ranks = np.sort(ranks_of(outcomes, name))
                if ranks.size:
                    below = np.searchsorted(ranks, grid, side="right") / len(ranks)
                    ax.plot(grid, below - grid, color=PALETTE[0], linewidth=0.6, alpha=0.7)
            ax.set_title(model)
        for ax in axes[-1]:
            ax.set_xlabel("rank of the truth")
        file.parent.mkdir(exist_ok=True)
        figure.savefig(file, dpi=130)


if __name__ == "__main__":
    main()
