"""The samplers that are compared, chains on the synthetic data, and the time until they find the states."""

import time
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

import ihmm
from benchmarks.convergence import arrival
from experiments.jobs import Job, Result, Results
from ihmm._typing import Array, FloatArray, IntArray
from ihmm.chain import Sweeps
from ihmm.datasets import Recording
from ihmm.kernels import sticks
from ihmm.kernels.sticks import Sticks
from ihmm.model import Draw, Model
from ihmm.samplers import Sampler
from ihmm.sticks import open_sticks

LARGE = 0.01  # minimum share of the time steps for a state to count
SHOWN = 1000  # sweeps shown in T15
# Maximum fractions of later sweeps in which the number of states is wrong, and wrong by more than one. Chosen after the
# strict rule of `arrival` had left medians undefined: the posterior itself sometimes has one more large state.
WRONG, FAR = 0.2, 0.02


@dataclass(frozen=True)
class LiteralParticleGibbs(ihmm.ParticleGibbs):
    """T15 §3.2 to the letter: the states scored explicitly are those of the reference trajectory. Not invariant."""

    def open(self, model: Model, draw: Draw, key: np.uint64) -> tuple[Sticks, IntArray]:
        theta, _ = open_sticks(draw, model.prior, key, np.inf)  # break no stick before the pass
        order = np.empty(theta.size[0], np.int64)
        sticks.arrange(theta, 0.0, order)
        return theta, order


GREEDY = (ihmm.GreedySplitMerge(sweeps=6), ihmm.GreedySplitMerge(sweeps=30, careful=True))


class Contender(NamedTuple):
    label: str
    colour: str
    sampler: Sampler
    sticky: bool = False
    moves: bool = False  # greedy split–merge moves during tuning

    @property
    def prior(self) -> ihmm.HDPPrior:
        """γ and c = α + κ are Gamma(1, 1), and ρ = κ/(α + κ) is Beta(1, 1) where it is not 0."""
        return ihmm.HDPPrior(stickiness=ihmm.BetaPrior(1, 1) if self.sticky else 0.0)

    def iterate(self, model: ihmm.Model, y: Array, seed: int, init: int, tune: int) -> Sweeps:
        """A chain; the first `tune` sweeps are tuning sweeps if there are moves."""
        tuning: dict[str, Any] = {"tune": tune, "moves": GREEDY} if self.moves else {"moves": ()}
        return ihmm.iterate(model, y, sampler=self.sampler, seed=seed, init=init, **tuning)


# The sampler of T15, up to the states that are scored explicitly
PaperGibbs = partial(ihmm.ParticleGibbs, resampling="multinomial")
CONTENDERS = {
    "pg": Contender("PG", "#0072B2", PaperGibbs(10)),
    "pg_sticky": Contender("PG-S", "#009E73", PaperGibbs(10), sticky=True),
    "beam": Contender("beam", "#D55E00", ihmm.Beam()),
    "gibbs": Contender("Gibbs", "#8A8A8A", ihmm.DirectAssignment()),
    "literal": Contender("PG to the letter", "#CC79A7", LiteralParticleGibbs(10, resampling="multinomial")),
    "moves": Contender("PG, split–merge", "#E69F00", PaperGibbs(10), moves=True),
    "moves_sticky": Contender("PG-S, split–merge", "#F0E442", PaperGibbs(10), sticky=True, moves=True),
    "pg_50": Contender("posterior, N = 50", "#56B4E9", PaperGibbs(50)),
    "prior_10": Contender("prior, N = 10", "#8A8A8A", PaperGibbs(10, "prior")),
    "prior_50": Contender("prior, N = 50", "#222222", PaperGibbs(50, "prior")),
    "systematic": Contender("PG, systematic", "#332288", ihmm.ParticleGibbs()),
}


def chain_jobs(data: str, name: str, init: int, seeds: int, sweeps: int) -> list[Job]:
    return [
        Job(
            f"{data}/{name}-from-{init}-seed-{seed}",
            chain,
            {"data": data, "name": name, "init": init, "seed": seed, "sweeps": sweeps},
        )
        for seed in range(seeds)
    ]


def chain(data: str, name: str, init: int, seed: int, sweeps: int) -> Result:
    """Traces of one chain on a data set of `ihmm.datasets`, and its transitions at the last sweep shown in T15."""
    contender, recording = CONTENDERS[name], getattr(ihmm.datasets, data)()
    model = ihmm.Model(ihmm.NormalMean(noise=recording.noise, mean=0.0, scale=2.0), contender.prior)
    draws = contender.iterate(model, recording.y, seed, init, tune=sweeps)
    n_states, n_large, seconds = np.empty(sweeps, np.int32), np.empty(sweeps, np.int32), np.empty(sweeps)
    log_joint, learned = np.empty(sweeps), {}
    begin = time.process_time()
    for i in range(sweeps):
        draw, info = next(draws)
        visits = np.bincount(draw.states)
        n_states[i], n_large[i] = draw.n_states, np.sum(visits >= LARGE * len(draw.states))
        log_joint[i], seconds[i] = info.log_joint, time.process_time() - begin
        if i + 1 == min(SHOWN, sweeps):
            order = np.argsort(draw.phi.mean)
            learned = {
                "rows": draw.transitions.rows[np.ix_(order, order)],
                "means": draw.phi.mean[order],
                "visits": visits[order],
            }
    return {"n_states": n_states, "n_large": n_large, "log_joint": log_joint, "seconds": seconds, **learned}


@cache
def recording_of(data: str) -> Recording:
    return getattr(ihmm.datasets, data)()


def true_log_joint(recording: Recording) -> float:
    """log p(s, y) of the true states under the true parameters, as a reference for traces."""
    residual = (recording.y - recording.means[recording.states]) / recording.noise
    emission = -0.5 * residual**2 - np.log(recording.noise * np.sqrt(2 * np.pi))
    steps = np.log(recording.transition[recording.states[:-1], recording.states[1:]])
    return float(emission.sum() + steps.sum() - np.log(len(recording.means)))


def of(results: Results, data: str, name: str, init: int) -> list[Result]:
    """The results of the chains of one sampler, by seed."""
    prefix = f"{data}/{name}-from-{init}-seed-"
    return [results[job] for job in sorted(results, key=_seed) if job.startswith(prefix)]


def _seed(job: str) -> tuple[str, int]:
    stem, _, seed = job.rpartition("-")
    return stem, int(seed) if seed.isdigit() else 0


def stack(chains: list[Result], name: str) -> FloatArray:
    """A trace of all chains, (chains, sweeps)."""
    return np.stack([chain[name] for chain in chains])


class Arrivals(NamedTuple):
    """When each chain first has, and from when it keeps, the true number of large states; infinite if never."""

    first: FloatArray  # sweeps
    first_seconds: FloatArray
    stay: FloatArray  # sweeps
    stay_seconds: FloatArray
    strictly: FloatArray  # sweeps, by the strict rule of `arrival`: wrong in at most 5%, and never by more than one
    limit: int


def arrivals(chains: list[Result], truth: int) -> Arrivals:
    rows = []
    for one in chains:
        first, stay = (
            (np.inf, np.inf) if sweep is None else (sweep, one["seconds"][sweep - 1])
            for sweep in arrival(one["n_large"], truth, WRONG, FAR)
        )
        rows.append([*first, *stay, arrival(one["n_large"], truth)[1] or np.inf])
    return Arrivals(*np.array(rows).T, limit=len(chains[0]["n_large"]))


def describe(chains: list[Result], truth: int) -> dict[str, object]:
    """The numbers on the page for the chains of one sampler."""
    found = arrivals(chains, truth)
    shown = min(SHOWN, found.limit)
    late_sizes = stack(chains, "n_large")[:, shown // 2 : shown].mean(axis=1)
    per_sweep = np.median([one["seconds"][-1] / found.limit for one in chains])
    return {
        "first": _median(found.first, found.limit, ".0f"),
        "first_seconds": _median(found.first_seconds, found.limit * per_sweep, ".2f"),
        "stay": _median(found.stay, found.limit, ".0f"),
        "stay_seconds": _median(found.stay_seconds, found.limit * per_sweep, ".2f"),
        "n_stay": int(np.isfinite(found.stay).sum()),
        "n_strictly": int(np.isfinite(found.strictly).sum()),
        "share_right": float(np.mean(stack(chains, "n_large")[:, found.limit // 10 :] == truth)),
        "seeds": len(chains),
        "ms": float(1e3 * per_sweep),
        "large_shown": float(np.median(late_sizes)),
        "right_shown": int(sum(one["n_large"][shown - 1] == truth for one in chains)),
        "states_shown": float(np.median(stack(chains, "n_states")[:, shown - 1])),
        "log_joint_shown": float(np.median(stack(chains, "log_joint")[:, shown // 2 : shown])),
        "log_joint_end": float(np.median(stack(chains, "log_joint")[:, -len(chains[0]["log_joint"]) // 10 :])),
    }


def _median(values: FloatArray, limit: float, spec: str) -> str:
    """The median, or a lower bound if it lies beyond the end of the chains."""
    median = np.sort(values)[(len(values) - 1) // 2 : len(values) // 2 + 1].mean()
    return format(median, spec) if np.isfinite(median) else f"> {limit:{spec}}"


def sooner(ours: list[Result], theirs: list[Result], truth: int) -> dict[str, object]:
    """Do our chains need fewer sweeps? One-sided Mann–Whitney tests; chains that never get there rank last.

    The verdict is based on the first time and on the strict rule, both of which were fixed before seeing the results.
    """
    mine, others = arrivals(ours, truth), arrivals(theirs, truth)
    p_values = {
        until: float(stats.mannwhitneyu(getattr(mine, until), getattr(others, until), alternative="less").pvalue)
        for until in ("first", "strictly", "stay")
    }
    judged = [p_values["first"], p_values["strictly"]]
    verdict = ("no", "in part", "yes")[sum(p < 0.05 for p in judged)]
    return {**p_values, "verdict": "the reverse" if min(judged) > 0.95 else verdict}
