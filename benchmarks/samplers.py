"""Comparison of the samplers: cost of a sweep as the number of states grows, and effective samples per second.

    python benchmarks/samplers.py [--sweeps 1500] [--most 256]

The growth tables use data with K true states, T = 4000, and start every sampler at the truth. Exponents are slopes of
log time in log K, over all sizes and over the larger ones. The forward filters of beam and blocked are timed
separately.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np

import ihmm
from ihmm.data import Data
from ihmm.gibbs import initial_draw, resample_globals
from ihmm.kernels.forward_backward import filter_beam, filter_forward, filter_wide_beam
from ihmm.model import Model
from ihmm.samplers import Sampler
from ihmm.samplers._base import sequence_starts
from ihmm.samplers._densities import log_densities, relative_densities
from ihmm.samplers.beam import Messages, draw_slices, empty_messages, is_wide

FROM = (4, 32, 64)  # smallest K of each fit of an exponent
SAMPLERS: dict[str, Sampler] = {
    "particle Gibbs": ihmm.ParticleGibbs(),
    "particle Gibbs, prior": ihmm.ParticleGibbs(proposal="prior"),
    "particle Gibbs of T15": ihmm.ParticleGibbs(10, resampling="multinomial"),
    "particle Gibbs of T15, prior": ihmm.ParticleGibbs(10, "prior", resampling="multinomial"),
    "beam": ihmm.Beam(),
    "direct assignment": ihmm.DirectAssignment(),
    "blocked": ihmm.Blocked(),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sweeps", type=int, default=1500)
    parser.add_argument("--most", type=int, default=256, help="the largest K")
    options = parser.parse_args()
    sizes = [k for k in (4, 8, 16, 32, 64, 128, 256) if k <= options.most]
    growth(sizes)
    filters(sizes)
    effective_samples(options.sweeps)


def growth(sizes: list[int]) -> None:
    print("ms per sweep, T = 4000, K true states")
    print(f"{'':<24}" + "".join(f"{k:>9}" for k in sizes))
    exponents = []
    for name, sampler in SAMPLERS.items():
        times = []
        for k in sizes:
            model, data, states = known_states(k, sampler)
            times.append(median_ms(sampler, model, data, states, repeats=5 if name == "direct assignment" else 25))
        sweep, step = np.transpose(times)
        print(f"{name:<24}" + "".join(f"{ms:9.2f}" for ms in sweep))
        exponents += [(name, sweep), (f"{name}: trajectory only", step)]
    print_exponents(sizes, exponents)


def print_exponents(sizes: list[int], times: list[tuple[str, np.ndarray]]) -> None:
    """Slopes of log time in log K. Those over the larger sizes are closer to the asymptotic cost."""
    print(f"\n{'exponent in K':<36}" + "".join(f"{f'K ≥ {least}':>9}" for least in FROM))
    for name, values in times:
        slopes = [slope(sizes, values, least) for least in FROM]
        print(f"{name:<36}" + "".join(f"{value:9.2f}" for value in slopes))


def slope(sizes: list[int], values: np.ndarray, least: int) -> float:
    used = np.array(sizes) >= least
    return float(np.polyfit(np.log(sizes)[used], np.log(values)[used], 1)[0]) if used.sum() > 1 else np.nan


def filters(sizes: list[int]) -> None:
    """The forward filters alone, on the same states, rows and densities."""
    print("\nForward filters, T = 4000: µs per pass, and ns per transition (beam: per allowed transition)")
    print("    K   blocked      beam   beam / blocked      blocked, ns     beam, ns   allowed")
    blocked, beam = [], []
    for k in sizes:
        blocked_pass, beam_pass, n_allowed, n_all = filter_times(k)
        blocked.append(blocked_pass)
        beam.append(beam_pass)
        print(
            f"{k:5d} {1e6 * blocked_pass:9.0f} {1e6 * beam_pass:9.0f} {beam_pass / blocked_pass:16.3f} "
            f"{1e9 * blocked_pass / n_all:15.2f} {1e9 * beam_pass / n_allowed:12.2f} {n_allowed / n_all:9.2%}"
        )
    print_exponents(sizes, [("blocked: filter only", np.array(blocked)), ("beam: filter only", np.array(beam))])


def filter_times(n_states: int, repeats: int = 15) -> tuple[float, float, int, int]:
    """Seconds per pass of the blocked and the beam filter, and the number of transitions they sum over."""
    model, data, states = known_states(n_states, ihmm.Beam())
    rng = np.random.default_rng(0)
    draw = initial_draw(rng, data, model, states)
    sequence = sequence_starts(data.offsets)
    slices = draw_slices(rng, draw, sequence)
    rows = np.vstack([draw.transitions.rows[:, :-1], draw.transitions.initial[:-1]])
    density = relative_densities(model, data, draw.phi)
    filtered, log_predictive = np.empty_like(density), np.empty(len(density))
    messages = empty_messages(*density.shape)
    blocked = partial(filter_forward, density, sequence, rows[-1], rows[:-1], filtered, log_predictive)
    if is_wide(rows, slices, draw.states, sequence):
        beam = partial(filter_wide_beam, density, sequence, rows, slices, *messages)
    else:
        order = np.argsort(-rows, axis=1)
        falling = np.take_along_axis(rows, order, axis=1)
        log_density = log_densities(model, data, draw.phi)
        beam = partial(filter_beam, log_density, sequence, falling, order, slices, *messages)
    # one after the other, so that both are compiled and cached
    blocked_pass, beam_pass = (float(np.median([seconds(run) for _ in range(repeats)])) for run in (blocked, beam))
    return blocked_pass, beam_pass, count_allowed(rows, slices, messages), rows[:-1].size * (len(slices) - 1)


def count_allowed(rows: np.ndarray, slices: np.ndarray, messages: Messages) -> int:
    """Transitions above their slice out of the states kept at the previous time step."""
    first, state, _ = messages
    step = np.repeat(np.arange(len(slices)), np.diff(first))
    leaving = step < len(slices) - 1
    return int((rows[state[: first[-1]][leaving]] > slices[step[leaving] + 1, None]).sum())


def seconds(function: Callable[[], None]) -> float:
    begin = time.process_time()
    function()
    return time.process_time() - begin


def effective_samples(sweeps: int) -> None:
    """On the paper's data, started at the truth, the first tenth dropped."""
    from arviz_stats.base import array_stats  # not needed by the experiments, which import this file

    print(f"\nEffective samples per second over {sweeps} sweeps (2 chains)")
    print(f"{'':<24}{'data':<12}{'K':>9}{'log joint':>12}{'ms per sweep':>14}")
    for data_name in ("four_state", "ten_state"):
        recording = getattr(ihmm.datasets, data_name)()
        for name, sampler in SAMPLERS.items():
            prior = ihmm.FinitePrior(20) if isinstance(sampler, ihmm.Blocked) else ihmm.HDPPrior()
            model = ihmm.Model(ihmm.NormalMean(noise=recording.noise, scale=2.0), prior)
            n_sweeps = sweeps // 5 if name == "direct assignment" else sweeps
            begin = time.perf_counter()
            chains = [trace(model, recording.y, sampler, recording.states, seed, n_sweeps) for seed in range(2)]
            seconds = time.perf_counter() - begin
            values = np.array(chains)[:, n_sweeps // 10 :]
            each = [array_stats.ess(values[:, :, i], chain_axis=0, draw_axis=1) / seconds for i in range(2)]
            print(f"{name:<24}{data_name:<12}{each[0]:9.2f}{each[1]:12.2f}{1e3 * seconds / (2 * n_sweeps):14.2f}")


def trace(model: Model, y: np.ndarray, sampler: Sampler, states: np.ndarray, seed: int, sweeps: int) -> np.ndarray:
    chain = ihmm.iterate(model, y, sampler=sampler, seed=seed, init=states)
    steps = (next(chain) for _ in range(sweeps))
    return np.array([(draw.n_states, info.log_joint) for draw, info in steps])


def known_states(n_states: int, sampler: Sampler, length: int = 4000) -> tuple[Model, Data, np.ndarray]:
    """States 2 apart with noise 0.5 and self-transition probability 0.75, all of them visited."""
    rng = np.random.default_rng(1)
    jumps = np.where(rng.random(length) < 0.75, 0, rng.integers(1, n_states, length))
    states = np.cumsum(jumps) % n_states
    y = 2.0 * states + 0.5 * rng.standard_normal(length)
    prior = ihmm.FinitePrior(n_states) if isinstance(sampler, ihmm.Blocked) else ihmm.HDPPrior()
    model = ihmm.Model(ihmm.NormalMean(noise=0.5, mean=n_states, scale=n_states), prior)
    return model, model.observe(y), states


def median_ms(sampler: Sampler, model: Model, data: Data, states: np.ndarray, repeats: int) -> np.ndarray:
    """Processor time of a whole sweep, and of the update of the trajectory alone."""
    rng = np.random.default_rng(0)
    draw = initial_draw(rng, data, model, states)
    times = []
    for _ in range(repeats + 2):
        begin = time.process_time()
        path, _ = sampler.resample_states(rng, data, model, draw)
        middle = time.process_time()
        draw, _ = resample_globals(rng, data, model, path, draw.hyper)
        times.append((time.process_time() - begin, middle - begin))
    return 1e3 * np.median(times[2:], axis=0)


if __name__ == "__main__":
    main()
