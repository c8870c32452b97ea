"""The samplers side by side: cost of a sweep as the number of states grows, and effective samples a second.

    python benchmarks/samplers.py [--sweeps 1500] [--most 256]

The growth table uses data with K true states, T = 4000, and starts every sampler at the truth; the exponent is the
slope of log time in log K over the larger half of the sizes. The second table times the two forward filters.
"""

import argparse
import time

import numpy as np

import ihmm
from ihmm.gibbs import initial_draw, resample_globals
from ihmm.kernels.forward_backward import filter_beam, filter_forward
from ihmm.model import Data, Model
from ihmm.samplers import Sampler
from ihmm.samplers._base import sequence_starts
from ihmm.samplers.beam import FAINTEST, draw_slices, empty_messages

SAMPLERS: dict[str, Sampler] = {
    "particle Gibbs": ihmm.ParticleGibbs(10),
    "particle Gibbs, prior": ihmm.ParticleGibbs(10, "prior"),
    "beam": ihmm.Beam(),
    "direct assignment": ihmm.DirectAssignment(),
    "blocked": ihmm.Blocked(),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sweeps", type=int, default=1500)
    parser.add_argument("--most", type=int, default=256, help="the largest K")
    options = parser.parse_args()
    growth([k for k in (4, 8, 16, 32, 64, 128, 256) if k <= options.most])
    filters([k for k in (4, 16, 64, 256) if k <= options.most])
    effective_samples(options.sweeps)


def growth(sizes: list[int]) -> None:
    print("ms a sweep, T = 4000, K true states; the exponent, and that of the trajectory's step alone")
    print(f"{'':<24}" + "".join(f"{k:>9}" for k in sizes) + "   sweep    step")
    for name, sampler in SAMPLERS.items():
        times = []
        for k in sizes:
            model, data, states = known_states(k, sampler)
            times.append(median_ms(sampler, model, data, states, repeats=3 if name == "direct assignment" else 9))
        half = len(sizes) // 2
        slopes = np.polyfit(np.log(sizes[half:]), np.log(times[half:]), 1)[0]
        print(f"{name:<24}" + "".join(f"{ms:9.2f}" for ms, _ in times) + "".join(f"{slope:8.2f}" for slope in slopes))


def filters(sizes: list[int]) -> None:
    """The forward filters alone, on the same states and rows."""
    print("\nns per transition of the forward filter, T = 4000")
    print("    K   blocked, each   beam, each allowed   allowed   beam pass / blocked pass")
    for k in sizes:
        model, data, states = known_states(k, ihmm.Beam())
        rng = np.random.default_rng(0)
        draw = initial_draw(rng, data, model, states)
        sequence = sequence_starts(data.offsets)
        slices = draw_slices(rng, draw, sequence)
        rows = np.vstack([draw.transitions.rows[:, :-1], draw.transitions.initial[:-1]])
        order = np.argsort(-rows, axis=1)
        falling = np.take_along_axis(rows, order, axis=1)
        log_density = np.ascontiguousarray(model.emission.log_density(data.y, draw.phi))
        density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
        filtered, log_predictive = np.empty_like(density), np.empty(len(density))
        messages = empty_messages(*density.shape)
        blocked_ms, beam_ms, n_allowed = [], [], 0
        for _ in range(9):
            begin = time.perf_counter()
            filter_forward(density, sequence, rows[-1], rows[:-1], filtered, log_predictive)
            middle = time.perf_counter()
            n_allowed = filter_beam(log_density, sequence, falling, order, slices, FAINTEST, *messages)
            blocked_ms.append(middle - begin)
            beam_ms.append(time.perf_counter() - middle)
        n_all = len(rows[0]) ** 2 * len(data.y)
        blocked, beam = np.median(blocked_ms), np.median(beam_ms)
        print(
            f"{k:5d} {1e9 * blocked / n_all:15.2f} {1e9 * beam / n_allowed:20.2f} {n_allowed / n_all:9.2%} "
            f"{beam / blocked:26.3f}"
        )


def effective_samples(sweeps: int) -> None:
    """On the paper's data, started at the truth, the first tenth dropped."""
    from arviz_stats.base import array_stats  # the experiments, which use this file, do without

    print(f"\nEffective samples a second over {sweeps} sweeps (2 chains)")
    print(f"{'':<24}{'data':<12}{'K':>9}{'log joint':>12}{'ms a sweep':>12}")
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
            print(f"{name:<24}{data_name:<12}{each[0]:9.2f}{each[1]:12.2f}{1e3 * seconds / (2 * n_sweeps):12.2f}")


def trace(model: Model, y: np.ndarray, sampler: Sampler, states: np.ndarray, seed: int, sweeps: int) -> np.ndarray:
    chain = ihmm.iterate(model, y, sampler=sampler, seed=seed, init=states)
    steps = (next(chain) for _ in range(sweeps))
    return np.array([(draw.n_states, info.log_joint) for draw, info in steps])


def known_states(n_states: int, sampler: Sampler, length: int = 4000) -> tuple[Model, Data, np.ndarray]:
    """States 2 apart with noise 0.5, staying with probability 0.75, each of them visited."""
    rng = np.random.default_rng(1)
    jumps = np.where(rng.random(length) < 0.75, 0, rng.integers(1, n_states, length))
    states = np.cumsum(jumps) % n_states
    y = 2.0 * states + 0.5 * rng.standard_normal(length)
    prior = ihmm.FinitePrior(n_states) if isinstance(sampler, ihmm.Blocked) else ihmm.HDPPrior()
    model = ihmm.Model(ihmm.NormalMean(noise=0.5, mean=n_states, scale=n_states), prior)
    return model, model.observe(y), states


def median_ms(sampler: Sampler, model: Model, data: Data, states: np.ndarray, repeats: int) -> np.ndarray:
    """Processor time of a whole sweep, and of the trajectory's step alone: other programs do not count."""
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
