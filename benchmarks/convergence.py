"""Sweeps and seconds until particle Gibbs finds the correct states on the paper's synthetic data (T15 §4.1).

    python benchmarks/convergence.py                                   run all measurements; half an hour
    python benchmarks/convergence.py --only "default moves" --seeds 5  run some of them
    python benchmarks/convergence.py --page                            write the page from stored measurements

A state counts if it has at least 1% of the time steps. The number of states stays correct from the first sweep after
which it is wrong in at most 5% of the sweeps, and never by more than one; tuning sweeps count. Times are processor
seconds, without compilation. The estimated state sequence is the most frequent state over the last draws, with states
matched to the truth draw by draw; it is compared with the sequence decoded with the true parameters. hmmlearn fits 1 to
15 states three times each, and the fit with the lowest BIC is selected.

Results are stored in runs/convergence.json; repeating a measurement replaces its results. The tables and figures of
docs/explanation/convergence.md are made from that file.
"""

import argparse
import json
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

import ihmm
from ihmm._typing import FloatArray, IntArray
from ihmm.chain import MOVES
from ihmm.datasets import Recording
from ihmm.moves import Move

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "runs" / "convergence.json"
PAGE = ROOT / "docs" / "explanation" / "convergence.md"
STARTS = {"four_state": [1, 10, 30], "ten_state": [1, 3, 30]}
LARGE = 0.01  # minimum share of the time steps for a state to count
SIZES, RESTARTS, FITS = range(1, 16), 3, 5  # hmmlearn: numbers of states, restarts, repetitions of the selection
OTHER = "hmmlearn"

Record = dict[str, Any]  # of one chain or fit
Results = dict[str, dict[str, list[Record]]]  # by data and part


class Setting(NamedTuple):
    moves: tuple[Move, ...]
    tune: int
    sweeps: int  # including tuning
    prior: ihmm.HDPPrior = ihmm.HDPPrior()


FEW = ihmm.HDPPrior(gamma=ihmm.GammaPrior(1.0, 1000.0))  # a prior that needs strong evidence for every state
SETTINGS = {
    "default moves": Setting(MOVES, 200, 400),
    "default moves, few states": Setting(MOVES, 200, 400, FEW),
    "no moves": Setting((), 0, 4000),
    "no moves, few states": Setting((), 0, 4000, FEW),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=(*SETTINGS, OTHER), nargs="+", default=(*SETTINGS, OTHER))
    parser.add_argument("--data", choices=tuple(STARTS), nargs="+", default=tuple(STARTS))
    parser.add_argument("--init", type=int, nargs="+", help="only chains with these initial numbers of states")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args()
    if not options.page:
        for data in options.data:
            for name in options.only:
                measure(data, name, options.init or STARTS[data], options.seeds)
    results = load()
    print(table_of_chains(results), table_of_fits(results), sep="\n\n")
    if options.page:
        write_page(results)


def measure(data: str, name: str, starts: list[int], seeds: int) -> None:
    """Measure one setting, or hmmlearn, on one recording, and store the results after each initial number of states."""
    recording = getattr(ihmm.datasets, data)()
    if name == OTHER:
        records: list[Record] = []
        for seed in range(min(seeds, FITS)):  # each takes more than a minute
            records.append(fit_record(recording, seed))
            keep(data, name, records)
        return
    setting = SETTINGS[name]
    run(recording, 10, 0, setting._replace(tune=5, sweeps=10))  # compiles
    for init in starts:
        keep(data, f"{name} from {init}", [chain_record(recording, init, seed, setting) for seed in range(seeds)])


def chain_record(recording: Recording, init: int, seed: int, setting: Setting) -> Record:
    chain = run(recording, init, seed, setting)
    return {
        "sizes": chain.sizes.tolist(),
        "seconds": chain.seconds.round(5).tolist(),
        "accuracy": accuracy(recording, chain.late),
    }


def fit_record(recording: Recording, seed: int) -> Record:
    begin = time.process_time()
    best = best_by_bic(recording.y, range(RESTARTS * seed, RESTARTS * (seed + 1)))
    seconds = time.process_time() - begin
    path = best.predict(recording.y[:, None])
    return {"size": best.n_components, "seconds": seconds, "accuracy": accuracy(recording, [path])}


def keep(data: str, name: str, records: list[Record]) -> None:
    """Store the records of one part in the results file."""
    results = load() if RESULTS.exists() else {}
    results.setdefault(data, {})[name] = records
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results), "utf-8")
    print(f"{data}, {name}: {len(records)} results", flush=True)


def load() -> Results:
    return json.loads(RESULTS.read_text("utf-8"))


class Chain(NamedTuple):
    sizes: IntArray  # number of states with at least 1% of the time steps, by sweep
    seconds: FloatArray  # cumulative processor time
    late: list[IntArray]  # trajectories of the last quarter


def run(recording: Recording, init: int | str, seed: int, setting: Setting) -> Chain:
    moves, tune, sweeps, prior = setting
    model = ihmm.Model(ihmm.NormalMean(noise=recording.noise, mean=0.0, scale=2.0), prior)
    begin = time.process_time()
    chain = ihmm.iterate(model, recording.y, seed=seed, init=init, moves=moves, tune=tune)
    sizes, seconds, late = np.empty(sweeps, np.int64), np.empty(sweeps), []
    for i in range(sweeps):
        draw, _ = next(chain)
        seconds[i] = time.process_time() - begin
        sizes[i] = n_large(draw.states)
        if i >= 0.75 * sweeps and i % 5 == 0:
            late.append(draw.states)
    return Chain(sizes, seconds, late)


def n_large(states: IntArray) -> int:
    return int(np.sum(np.bincount(states) >= LARGE * len(states)))


def arrival(sizes: IntArray, truth: int, wrong: float = 0.05, far: float = 0.0) -> tuple[int | None, int | None]:
    """The sweep at which the number of states is first correct, and the sweep from which it stays correct.

    Sweeps are counted from 1; None if there is no such sweep. The number stays correct if at most a fraction `wrong` of
    the later sweeps differs, and at most a fraction `far` by more than one, over at least a tenth of the sweeps.
    """
    later = np.arange(len(sizes), 0, -1)
    wrong_later = np.cumsum((sizes != truth)[::-1])[::-1] / later
    far_later = np.cumsum((np.abs(sizes - truth) > 1)[::-1])[::-1] / later
    settled = np.flatnonzero((sizes == truth) & (wrong_later <= wrong) & (far_later <= far))
    return _first(np.flatnonzero(sizes == truth)), _first(settled[settled < 0.9 * len(sizes)])


def _first(sweeps: IntArray) -> int | None:
    return int(sweeps[0]) + 1 if sweeps.size else None


def accuracy(recording: Recording, paths: list[IntArray]) -> float:
    """Fraction of time steps at which the most frequent matched state is the true one."""
    truth, n_states = recording.states, len(recording.means)
    votes = np.zeros((len(truth), n_states))
    for path in paths:
        confusion = np.zeros((path.max() + 1, n_states))
        np.add.at(confusion, (path, truth), 1)
        found, meaning = linear_sum_assignment(confusion, maximize=True)
        label = np.full(len(confusion), -1)
        label[found] = meaning
        matched = label[path] >= 0
        votes[np.flatnonzero(matched), label[path][matched]] += 1
    return float(np.mean(votes.argmax(axis=1) == truth))


def decode(recording: Recording) -> IntArray:
    """The most probable state at every time step given all observations and the true parameters."""
    likelihood = np.exp(-0.5 * ((recording.y[:, None] - recording.means) / recording.noise) ** 2)
    forward, backward = (_messages(likelihood[::way], recording.transition) for way in (1, -1))
    return np.argmax(forward * backward[::-1] / np.maximum(likelihood, 1e-300), axis=1)


def _messages(likelihood: FloatArray, transition: FloatArray) -> FloatArray:
    """Normalised forward messages; the transition matrix is symmetric, so the same function works backwards."""
    out = np.empty_like(likelihood)
    message = np.full(likelihood.shape[1], 1 / likelihood.shape[1])
    for t, row in enumerate(likelihood):
        message = row * (message if t == 0 else message @ transition)
        out[t] = message = message / message.sum()
    return out


def best_by_bic(y: FloatArray, seeds: range) -> Any:
    """The Gaussian HMM of hmmlearn with the lowest BIC over all numbers of states and seeds."""
    try:
        from hmmlearn.hmm import GaussianHMM
        from threadpoolctl import threadpool_limits
    except ImportError as error:
        raise SystemExit("the comparison needs hmmlearn: pip install hmmlearn, or exclude it with --only") from error
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    with threadpool_limits(1):  # a second thread does not help with matrices this small
        fits = [GaussianHMM(k, n_iter=200, random_state=seed).fit(y[:, None]) for k in SIZES for seed in seeds]
    return min(fits, key=lambda hmm: hmm.bic(y[:, None]))


def table_of_chains(results: Results) -> str:
    """One row per initial number of states and setting: median and worst case over seeds, as Markdown."""
    heads = (
        "data, initial states",
        "moves, prior",
        "first correct (sweeps)",
        "stays correct (sweeps)",
        "stays correct (seconds)",
    )
    rows = [
        (f"{data}, {init}", name, *_cells(results[data][f"{name} from {init}"], n_states(data)))
        for data, starts in STARTS.items()
        for init in starts
        for name in SETTINGS
        if f"{name} from {init}" in results.get(data, {})
    ]
    return markdown((*heads, "chains that stay", "correct in the second half", "accuracy", "ms per sweep"), rows)


def _cells(records: list[Record], truth: int) -> list[str]:
    sizes = np.array([record["sizes"] for record in records])
    arrivals = [arrival(row, truth) for row in sizes]
    stays = [sweep for _, sweep in arrivals]
    seconds = [record["seconds"][sweep - 1] if sweep else None for record, sweep in zip(records, stays, strict=True)]
    n_sweeps, total = sizes.shape[1], float(np.median([record["seconds"][-1] for record in records]))
    return [
        median_and_worst([sweep for sweep, _ in arrivals], n_sweeps, ".0f"),
        median_and_worst(stays, n_sweeps, ".0f"),
        median_and_worst(seconds, total, ".2g"),
        f"{sum(sweep is not None for sweep in stays)} of {len(stays)}",
        f"{np.mean(sizes[:, n_sweeps // 2 :] == truth):.0%}",
        f"{np.median([record['accuracy'] for record in records]):.3f}",
        f"{1e3 * total / n_sweeps:.2f}",
    ]


def median_and_worst(values: Sequence[float | None], limit: float, spec: str) -> str:
    """Such as "6 (9)"; events that did not happen lie beyond the limit."""
    ordered = np.sort([np.inf if value is None else value for value in values])
    middle = ordered[[(len(ordered) - 1) // 2, len(ordered) // 2]].mean()
    median, worst = (f"{x:{spec}}" if np.isfinite(x) else f"> {limit:{spec}}" for x in (middle, ordered[-1]))
    return f"{median} ({worst})"


def table_of_fits(results: Results) -> str:
    """hmmlearn by recording, with the accuracy reached with the true parameters."""
    rows = []
    for data in STARTS:
        if records := results.get(data, {}).get(OTHER):
            recording = getattr(ihmm.datasets, data)()
            rows.append(
                (
                    data,
                    ", ".join(str(record["size"]) for record in records),
                    median_and_worst([record["seconds"] for record in records], 0, ".1f"),
                    f"{np.median([record['accuracy'] for record in records]):.3f}",
                    f"{accuracy(recording, [decode(recording)]):.3f}",
                )
            )
    return markdown(("data", "states selected", "seconds", "accuracy", "accuracy with the true parameters"), rows)


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *rows))


def n_states(data: str) -> int:
    return len(getattr(ihmm.datasets, data)().means)


def write_page(results: Results) -> None:
    fill_page("chains", table_of_chains(results))
    fill_page("hmmlearn", table_of_fits(results))
    for data in results:
        draw_curves(results[data], data, PAGE.parent / "convergence" / f"{data}.png")


def fill_page(name: str, text: str, page: Path = PAGE) -> None:
    """Insert a text between the markers of this name on a page."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    before, found, rest = page.read_text("utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise SystemExit(f"{page} has no markers named {name}")
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", "utf-8")


def draw_curves(parts: dict[str, list[Record]], data: str, file: Path) -> None:
    """The number of states by sweep: one panel per start and setting, one slightly offset line per seed."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from ihmm.figures.plot_data import GREY, PALETTE
    from ihmm.plots._axes import OPEN, WIDTH

    starts, truth = STARTS[data], n_states(data)
    ticks = sorted({1, truth, *starts})
    with mpl.rc_context(OPEN | {"font.size": 8.5, "axes.titlesize": 8.5, "axes.titlelocation": "left"}):
        figure = Figure(figsize=(WIDTH, 1.7 * len(SETTINGS)), layout="constrained")
        axes = figure.subplots(len(SETTINGS), len(starts), sharex=True, sharey=True, squeeze=False)
        for row, (name, setting) in zip(axes, SETTINGS.items(), strict=True):
            for ax, init in zip(row, starts, strict=True):
                ax.axhline(truth, color=GREY, linewidth=0.8)
                if setting.tune:
                    ax.axvline(setting.tune, color=GREY, linewidth=0.8, linestyle=":")
                records = parts.get(f"{name} from {init}", [])
                for offset, record in zip(np.linspace(-0.02, 0.02, len(records)), records, strict=True):
                    sizes = np.append(init, record["sizes"]) * (1 + offset)
                    sweeps = np.arange(len(sizes))
                    ax.step(sweeps, sizes, color=PALETTE[0], linewidth=0.6, alpha=0.5, where="post")
                ax.set_title(f"{name}, from {init}")
                ax.set_xscale("symlog", linthresh=1)
                ax.set_yscale("log")
                ax.set_xlim(0, max(setting.sweeps for setting in SETTINGS.values()))
                ax.set_xticks([0, 1, 10, 100, 1000], ["0", "1", "10", "100", "1000"])
                ax.set_yticks(ticks, [str(tick) for tick in ticks])
                ax.minorticks_off()
            row[0].set_ylabel("states of 1%")
        for ax in axes[-1]:
            ax.set_xlabel("sweep")
        file.parent.mkdir(exist_ok=True)
        figure.savefig(file, dpi=130)


if __name__ == "__main__":
    main()
