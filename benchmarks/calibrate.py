"""Simulation-based calibration: do 50% and 90% intervals contain the truth as often as they say?

    python benchmarks/calibrate.py                        # every model, 200 simulations each; more than an hour
    python benchmarks/calibrate.py --only normal --simulations 50
    python benchmarks/calibrate.py --from-truth           # chains that start at the truth, however slowly they mix
    python benchmarks/calibrate.py --page                 # write the page from stored results

Parameters, states and T + 1 observations are simulated from a model, and the posterior given the first T is computed
with the default sampler and moves. If everything is right, the rank of a simulated quantity among independent posterior
draws is uniform, whatever the quantity (Talts et al. 2018). Ties, as of the number of states, are broken at random.

Ranks among correlated draws are not uniform: they are too often near 0 and 1. So the first part of a chain only serves
to measure the autocorrelation time, and is continued until its effective sample size is large enough for that. The
ranks are among 19 draws of a second part, so far apart that they are nearly independent. The ranks among all draws of
the beginning of the chain are stored as well, to show the difference.

The last part is the whole pipeline with its defaults, `ihmm.InfiniteHMM().fit(y)`, on recordings of levels in noise.
The model is chosen from the data there, so that ranks need not be uniform; coverage is what users get.

With --from-truth, chains start at the simulated parameters and states. These are a draw from the posterior of their
data, so that the draw after any number of sweeps has the same distribution, averaged over data sets: quantities before
and after must have equal means. That tests the sampler alone, and does not depend on how fast chains mix.

Results are stored in benchmarks/calibration.json, ranks in units of 1/10000; more simulations are added to those that
are there. Tables over all models are written if there are enough simulations of every model; rows of models without
stored results stay as they are.
"""

import argparse
import json
import time
import warnings
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from arviz_stats.base import array_stats
from convergence import fill_page, markdown
from scipy.stats import chisquare, norm

import ihmm
from ihmm._typing import Array, FloatArray
from ihmm.chain import MOVES
from ihmm.data import Data
from ihmm.durations import Geometric, NegativeBinomial, Poisson
from ihmm.emissions._parameters import fields
from ihmm.gibbs import sweep
from ihmm.model import Draw, Model
from ihmm.predictions.forecasts import forecast
from ihmm.predictions.predict import LabelledDraw
from ihmm.trajectory import Trajectory

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "calibration.json"
PAGE = ROOT / "docs" / "explanation" / "calibration.md"

STEPS = 30
HERE, THERE = 15, 24  # the states of these steps are asked about
TUNE = 80  # sweeps
# The first part of a chain, for its autocorrelation time: draws at least and at most, two sweeps apart
THIN, FIRST, LIMIT, GOAL_ESS = 2, 80, 320, 20
DRAWS = 19  # of the second part: 18 of the 20 possible ranks are in the 90% interval, 10 in the 50% interval
SPACING, MAX_SPACING = 2, 100  # of these draws, in autocorrelation times, and at most in sweeps
ENOUGH = 200  # simulations, for a model to be in the table of quantities
LARGEST = 1e6  # autoregressions may explode; that is seen in the data alone, so that leaving them out is no bias

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
FROM_TRUTH = {name: f"{name}, from the truth" for name in MODELS if name != "mixture"}  # its truth has no components


class Outcome(NamedTuple):
    """One simulation."""

    ranks: dict[str, float]  # in [0, 1], of every quantity
    sweeps: int  # of all chains
    ess: float  # the smallest of a quantity, of the first part
    correlated_ranks: dict[str, float] | None = None  # among all draws of the beginning of the chain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=(*MODELS, PIPELINE), nargs="+", default=(*MODELS, PIPELINE))
    parser.add_argument("--simulations", type=int, default=200)
    parser.add_argument("--from-truth", action="store_true", help="start chains at the truth")
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args()
    names = [FROM_TRUTH[name] for name in options.only if name in FROM_TRUTH] if options.from_truth else options.only
    results = stored() if RESULTS.exists() else {}
    if not options.page:
        # All models side by side, so that an interruption leaves the same number of each
        for seed in range(options.simulations):
            for name in names:
                outcomes = results.setdefault(name, [])
                if seed == len(outcomes):
                    outcomes.append(timed_outcome(name, seed))
            store(results)
    write_page(results)


def timed_outcome(name: str, seed: int) -> dict[str, Any]:
    begin = time.process_time()
    if name in FROM_TRUTH.values():
        outcome = from_truth(name, seed)
    else:
        outcome = (of_pipeline(seed) if name == PIPELINE else of_model(name, seed))._asdict()
    return outcome | {"seconds": round(time.process_time() - begin, 2)}


UNIT = 1e-4  # of stored ranks
RANKS = ("ranks", "correlated_ranks")


def store(results: dict[str, list[dict[str, Any]]]) -> None:
    """Write all results, one simulation per line, so that an interruption leaves the old file or the new one."""
    models = []
    for name, outcomes in results.items():
        lines = ",\n".join(json.dumps(compact(outcome), separators=(",", ":")) for outcome in outcomes)
        models.append(f"{json.dumps(name)}: [\n{lines}\n]")
    new = RESULTS.with_suffix(".new")
    new.write_text("{" + ",\n".join(models) + "}\n", "utf-8")
    new.replace(RESULTS)


def compact(outcome: dict[str, Any]) -> dict[str, Any]:
    """Ranks as whole numbers, other numbers with five digits."""
    found = {}
    for key, value in outcome.items():
        if isinstance(value, dict):
            number = in_units if key in RANKS else five_digits
            found[key] = {name: number(x) for name, x in value.items()}
        elif value is not None:
            found[key] = five_digits(value)
    return found


def in_units(rank: float) -> int:
    return int(np.floor(rank / UNIT))  # a rank that is inside an interval stays inside


def five_digits(x: float) -> float:
    return float(f"{x:.5g}")


def stored() -> dict[str, list[dict[str, Any]]]:
    results: dict[str, list[dict[str, Any]]] = json.loads(RESULTS.read_text("utf-8"))
    for outcomes in results.values():
        for outcome in outcomes:
            for key in RANKS:
                if key in outcome:
                    outcome[key] = {name: UNIT * (whole + 0.5) for name, whole in outcome[key].items()}
    return results


# Every model


def of_model(name: str, seed: int) -> Outcome:
    """Simulate and fit once."""
    model, rng = MODELS[name], generator(name, seed)
    truth, y = simulate(rng, model, STEPS + 1)
    data = model.observe(y[:STEPS])
    simulated = quantities(model, data, truth)
    chain = fit(rng, model, y[:STEPS])
    draws = [quantities(model, data, draw) for draw in chain.draws]
    ranks = {each: rank(rng, simulated[each], column(draws, each)) for each in simulated}
    ranks["forecast"] = rank(rng, first_number(y[STEPS]), next_values(rng, model, data, chain.draws))
    correlated = {each: rank(rng, simulated[each], column(chain.first[:FIRST], each)) for each in simulated}
    return Outcome(ranks, chain.sweeps, chain.ess, correlated)


def generator(name: str, seed: int) -> np.random.Generator:
    """Random numbers of a simulation, which no other model shares: pooled ranks have to be independent."""
    return np.random.default_rng([crc32(name.encode()), seed])


def simulate(rng: np.random.Generator, model: Model, steps: int) -> tuple[Draw, Array]:
    """A draw from the prior with the states of the first T steps, and observations of all `steps`."""
    while True:
        (y,), draw = ihmm.simulate(model, steps, rng)
        if np.abs(y).max() < LARGEST:
            return draw._replace(trajectory=Trajectory(draw.states[:STEPS])), y


class Chain(NamedTuple):
    """Draws of a chain that are nearly independent, and the quantities of those of its first part, which are not."""

    draws: list[Draw]
    first: list[dict[str, float]]
    ess: float
    sweeps: int


def fit(rng: np.random.Generator, model: Model, y: Array) -> Chain:
    """Measure the autocorrelation time, then make draws that are further apart than it.

    Draws that decide how long a chain is are not used for ranks: chains that happen to look converged would be stopped.
    """
    data, sweeps = model.observe(y), ihmm.iterate(model, y, tune=TUNE, seed=int(rng.integers(2**32)), init=5)
    draws = (draw for draw, _ in sweeps)
    first: list[dict[str, float]] = []
    next(islice(draws, TUNE - 1, None))
    ess = 0.0
    while ess < GOAL_ESS and len(first) < LIMIT:
        more = islice(draws, THIN - 1, THIN * max(FIRST, len(first)), THIN)
        first += [quantities(model, data, draw) for draw in more]
        ess = min(effective_size(column(first, name)) for name in first[0])
    spacing = min(int(np.ceil(SPACING * THIN * len(first) / ess)), MAX_SPACING)
    spaced = list(islice(draws, spacing - 1, spacing * DRAWS, spacing))
    return Chain(spaced, first, ess, TUNE + THIN * len(first) + spacing * DRAWS)


def next_values(rng: np.random.Generator, model: Model, data: Data, draws: list[Draw]) -> FloatArray:
    """A forecast of the first number of the next step from every draw."""
    seed = int(rng.integers(2**32))
    items = [LabelledDraw(draw, np.arange(draw.n_states), (seed, i)) for i, draw in enumerate(draws)]
    (future,) = forecast(model, data, items, 1, None)
    return np.array([first_number(y) for y in future.y])


def first_number(y: Array) -> float:
    return float(np.ravel(y)[0])


def column(rows: list[dict[str, float]], name: str) -> FloatArray:
    return np.array([row[name] for row in rows])


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
        values["stickiness"] = hyper.stickiness
    values["dwell"] = mean_dwell(model, draw, here)
    if model.is_mixture:  # components that are occupied later on are not part of a draw
        return values | {"parameter": float(draw.phi.sigma[here])}
    first, *others = fields(draw.phi).values()
    values["parameter"] = first_number(first[here])
    if others:
        values["second parameter"] = first_number(others[0][here])
    return values | {"log likelihood": model.log_likelihood(data, states, draw.phi)}


def mean_dwell(model: Model, draw: Draw, state: int) -> float:
    """Mean number of steps before a state is left."""
    if model.duration is not None:
        return float(model.duration.mean(draw.durations)[state])
    return 1 / max(1 - float(draw.transitions.rows[state, state]), 1e-300)


def effective_size(x: FloatArray) -> float:
    """Effective sample size of draws, (draws,) or (chains, draws)."""
    if np.ptp(x) == 0:
        return float(x.size)
    value = float(array_stats.ess(np.atleast_2d(x), chain_axis=0, draw_axis=1, method="bulk"))
    return min(value, x.size) if np.isfinite(value) else float(x.size)


def rank(rng: np.random.Generator, truth: float, draws: FloatArray) -> float:
    """Where the truth is among the draws, from 0 to 1, at random among those that are equal."""
    below, equal = np.sum(draws < truth), np.sum(draws == truth)
    return float((below + rng.random() * (equal + 1)) / (len(draws) + 1))


# Chains that start at the truth

AWAY = 20  # sweeps


def from_truth(name: str, seed: int) -> dict[str, Any]:
    """Quantities of a simulated truth, and those of the draw some sweeps after it."""
    model, rng = MODELS[name.removesuffix(", from the truth")], generator(name, seed)
    draw, y = simulate(rng, model, STEPS)
    data = model.observe(y)
    before = quantities(model, data, draw)
    moves = [move for move in MOVES if move.acts(0, 0)]
    for _ in range(AWAY):
        draw, _ = sweep(rng, data, model, draw, ihmm.ParticleGibbs(), moves)
    return {"before": before, "after": quantities(model, data, draw)}


# The whole pipeline

LEVEL_STEPS = 200
GAPS = (3.0, 8.0)  # distance of levels, in standard deviations of the noise
DWELLS = (5.0, 40.0)  # mean number of steps before the level changes
FORECASTS = 40  # draws


def of_pipeline(seed: int) -> Outcome:
    """One, two or three levels in noise, and a fit with every setting at its default."""
    rng = generator(PIPELINE, seed)
    n_levels = 1 + seed % 3
    gap, dwell = rng.uniform(*GAPS), float(np.exp(rng.uniform(*np.log(DWELLS))))
    path = np.zeros(LEVEL_STEPS + 1, np.int64)
    for t in range(1, len(path)):
        leaves = n_levels > 1 and rng.random() < 1 / dwell
        path[t] = (path[t - 1] + rng.integers(1, n_levels)) % n_levels if leaves else path[t - 1]
    y = gap * path + rng.standard_normal(len(path))
    with warnings.catch_warnings(action="ignore"):
        posterior = ihmm.InfiniteHMM(random_state=int(rng.integers(2**32))).fit(y[:-1]).posterior_
    here = LEVEL_STEPS // 2
    truth = {"states": len(np.unique(path[:-1])), "parameter": gap * path[here]}
    if n_levels > 1:
        truth["dwell"] = dwell
    draws = [pipeline_quantities(posterior.model, draw, here) for draw in posterior]
    values = {name: column(draws, name) for name in truth}
    ranks = {name: rank(rng, truth[name], values[name]) for name in truth}
    future = posterior.thin(max(1, len(draws) // FORECASTS)).forecast(1)
    ranks["forecast"] = rank(rng, y[-1], future.y[:, 0])
    shape = len(posterior.draws), -1
    ess = min(effective_size(values[name].reshape(shape)) for name in truth)
    return Outcome(ranks, len(draws), ess)


def pipeline_quantities(model: Model, draw: Draw, step: int) -> dict[str, float]:
    """The number of states, and the level and the mean dwell time of the state at a step."""
    state = draw.states[step]
    level = first_number(fields(draw.phi)["mean"][state])
    return {"states": float(draw.n_states), "parameter": level, "dwell": mean_dwell(model, draw, state)}


# The page


def write_page(results: dict[str, list[dict[str, Any]]]) -> None:
    """Tables, the summary and the figure of docs/explanation/calibration.md."""
    models = {name: results[name] for name in MODELS if results.get(name)}
    enough = {name: outcomes for name, outcomes in models.items() if len(outcomes) >= ENOUGH}
    parts = {"chains": with_earlier_rows(chains_table(models))} if models else {}
    if len(enough) == len(MODELS):
        parts |= {"coverage": coverage_table(enough), "summary": summary(enough)}
    started = {name: results[key] for name, key in FROM_TRUTH.items() if results.get(key)}
    if started:
        parts["truth"] = truth_table(started)
    if results.get(PIPELINE):
        parts["pipeline"] = pipeline_table(results[PIPELINE])
    for name, text in parts.items():
        print(text, end="\n\n")
        fill_page(name, text, PAGE)
    if len(enough) == len(MODELS):
        draw_ranks(models, PAGE.with_suffix("") / "ranks.png")


def with_earlier_rows(table: str) -> str:
    """The rows of a table of models, and those of the page for models that it does not have."""
    text = PAGE.read_text("utf-8")
    before = text[text.index("<!-- begin chains -->") : text.index("<!-- end chains -->")]
    rows = {row.split(" | ")[0].removeprefix("| "): row for part in (before, table) for row in part.splitlines()}
    heads = table.splitlines()[:2]
    return "\n".join([*heads, *(rows[name] for name in MODELS if name in rows)])


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
    """Coverage of central 50% and 90% intervals by quantity, over all models, as Markdown."""
    heads = (
        *("quantity", "simulations", "in 50%", "in 90%", "p, ranks uniform"),
        *("lowest and highest of a model, 90%", "in 90%, correlated draws"),
    )
    rows = []
    for name, title in QUANTITIES.items():
        by_model = {model: ranks_of(outcomes, name) for model, outcomes in results.items()}
        each = {model: coverage(ranks, 0.9) for model, ranks in by_model.items() if ranks.size}
        ranks = np.concatenate([*by_model.values()])
        low, high = min(each, key=each.__getitem__), max(each, key=each.__getitem__)
        correlated = [ranks_of(outcomes, name, "correlated_ranks") for outcomes in results.values()]
        rows.append(
            (
                *(title, str(len(ranks)), with_error(ranks, 0.5), with_error(ranks, 0.9), f"{uniformity(ranks):.2g}"),
                f"{each[low]:.2f} ({low}), {each[high]:.2f} ({high})",
                f"{coverage(np.concatenate(correlated), 0.9):.3f}" if any(map(len, correlated)) else "–",
            )
        )
    return markdown(heads, rows)


def summary(results: dict[str, list[dict[str, Any]]]) -> str:
    """The smallest p-value and the coverage farthest from its nominal value, with what chance would give."""
    found = {
        f"{QUANTITIES[name]} of “{model}”": uniformity(ranks_of(outcomes, name))
        for model, outcomes in results.items()
        for name in QUANTITIES
        if ranks_of(outcomes, name).size
    }
    values, smallest = np.array([*found.values()]), min(found, key=found.__getitem__)
    away = {
        f"{QUANTITIES[name]} in {probability:.0%} intervals".replace("%", " %"): deviation(ranks, probability)
        for name in QUANTITIES
        for ranks in [np.concatenate([ranks_of(outcomes, name) for outcomes in results.values()])]
        for probability in (0.5, 0.9)
    }
    farthest = max(away, key=lambda name: abs(away[name]))
    by_chance = 1 - (1 - values.min()) ** len(values), 1 - (1 - 2 * norm.sf(abs(away[farthest]))) ** len(away)
    return (
        f"Of the {len(values)} p-values of a quantity in a model, {np.sum(values < 0.05)} are below 0.05, where "
        f"{0.05 * len(values):.0f} are expected, and {np.sum(values < 0.01)} below 0.01, where "
        f"{0.01 * len(values):.1f} are. The smallest is {values.min():.2g}, of the {smallest}; if all ranks were "
        f"uniform and independent, the smallest would be below that with a probability of {by_chance[0]:.2g}. Of the "
        f"{len(away)} coverages in the table, the one farthest from its nominal value is of the {farthest}, "
        f"{away[farthest]:+.1f} standard errors; the farthest of so many exceeds that with a probability of "
        f"{by_chance[1]:.2g}."
    )


def chains_table(results: dict[str, list[dict[str, Any]]]) -> str:
    """Simulations, lengths of chains and coverage over all quantities of every model, as Markdown."""
    heads = (
        *("model", "simulations", "in 50%", "in 90%", "smallest p of a quantity", "sweeps (median)"),
        f"ESS below {GOAL_ESS}",
    )
    rows = []
    for model, outcomes in results.items():
        ranks = {name: ranks_of(outcomes, name) for name in QUANTITIES if ranks_of(outcomes, name).size}
        smallest = min(ranks, key=lambda name: uniformity(ranks[name]))
        rows.append(
            (
                *(model, str(len(outcomes))),
                f"{np.mean([coverage(each, 0.5) for each in ranks.values()]):.2f}",
                f"{np.mean([coverage(each, 0.9) for each in ranks.values()]):.2f}",
                f"{uniformity(ranks[smallest]):.2g} ({QUANTITIES[smallest]}, of {len(ranks)})",
                f"{np.median([outcome['sweeps'] for outcome in outcomes]):.0f}",
                str(sum(outcome["ess"] < GOAL_ESS for outcome in outcomes)),
            )
        )
    return markdown(heads, rows)


def truth_table(results: dict[str, list[dict[str, Any]]]) -> str:
    """Means of quantities before and after some sweeps from the truth, over all models, as Markdown."""
    rows = []
    for name in ("states", "largest share", "gamma", "concentration", "stickiness"):
        pairs = [
            (outcome["before"][name], outcome["after"][name])
            for outcomes in results.values()
            for outcome in outcomes
            if name in outcome["before"]
        ]
        before, after = np.log(np.array(pairs).T) if name in SKEWED else np.array(pairs).T
        change = after - before
        error = float(change.std() / np.sqrt(len(change)))
        title = f"log of {QUANTITIES[name]}" if name in SKEWED else QUANTITIES[name]
        numbers = (f"{x:.4f}" for x in (before.mean(), after.mean()))
        changed = (
            f"{change.mean():+.4f} ± {error:.4f}",
            f"{change.mean() / error:+.1f}",
            f"{np.mean(change != 0):.0%}",
        )
        rows.append((title, str(len(pairs)), *numbers, *changed))
    heads = ("quantity", "simulations", "mean before", "mean after", "difference", "in standard errors", "changed")
    return markdown(heads, rows)


SKEWED = ("gamma", "concentration")


def pipeline_table(outcomes: list[dict[str, Any]]) -> str:
    """Coverage of central 50% and 90% intervals of the whole pipeline, as Markdown."""
    rows = []
    for name, title in (QUANTITIES | {"parameter": "level at the middle"}).items():
        ranks = ranks_of(outcomes, name)
        if ranks.size:
            rows.append((title, str(len(ranks)), with_error(ranks, 0.5), with_error(ranks, 0.9)))
    return markdown(("quantity", "recordings", "in 50%", "in 90%"), rows)


def ranks_of(outcomes: list[dict[str, Any]], name: str, kind: str = "ranks") -> FloatArray:
    """The ranks of a quantity, or none if it is not one of this model."""
    return np.array([outcome[kind][name] for outcome in outcomes if name in outcome[kind]])


def coverage(ranks: FloatArray, probability: float) -> float:
    return float(np.mean(np.abs(ranks - 0.5) <= probability / 2))


def deviation(ranks: FloatArray, probability: float) -> float:
    """Coverage minus its nominal value, in standard errors."""
    return (coverage(ranks, probability) - probability) / standard_error(ranks, probability)


def standard_error(ranks: FloatArray, probability: float) -> float:
    """Of a coverage, if intervals are right."""
    return float(np.sqrt(probability * (1 - probability) / len(ranks)))


def with_error(ranks: FloatArray, probability: float) -> str:
    return f"{coverage(ranks, probability):.3f} ± {standard_error(ranks, probability):.3f}"


def uniformity(ranks: FloatArray) -> float:
    """p-value of the χ² test that ranks are uniform, in ten bins."""
    return float(chisquare(np.histogram(ranks, 10, (0, 1))[0]).pvalue)


def draw_ranks(results: dict[str, list[dict[str, Any]]], file: Path) -> None:
    """The distribution function of the ranks minus that of the uniform law: a panel per model, a line per quantity."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from ihmm.figures.plot_data import GREY, PALETTE
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
