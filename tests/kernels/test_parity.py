"""Every kernel computes compiled what it computes as plain Python.

Run as a script with NUMBA_DISABLE_JIT=1 this file computes the cases interpreted; the test computes them compiled.
"""

import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ihmm.kernels
from ihmm import durations
from ihmm.emissions import (
    Autoregressive,
    Bernoulli,
    Categorical,
    Independent,
    Multinomial,
    MultivariateNormal,
    NoisyLevels,
    Normal,
    NormalMean,
    Poisson,
)
from ihmm.gibbs import hyper_priors, initial_draw, resample_globals
from ihmm.kernels import (
    compilation,
    conditionals,
    counts,
    csmc,
    densities,
    draws,
    families,
    forward_backward,
    long_durations,
    pilot,
    segment_chain,
    side_by_side,
    sticks,
)
from ihmm.kernels.families.dispatch import CHOICE
from ihmm.model import Hyper, Model
from ihmm.moves import GreedySplitMerge, PairGibbs, SplitMerge
from ihmm.predictions.forecasts import simulate_anew
from ihmm.predictions.predict import LabelledDraw, chain_over_ages, finite_hmm, most_probable_states, run_segment_filter
from ihmm.priors import BetaPrior, FinitePrior, GammaPrior, HDPPrior
from ihmm.samplers import Beam, Blocked, DirectAssignment, ParticleGibbs, StateUpdate, beam
from ihmm.samplers._base import sequence_starts
from ihmm.sticks import grow, open_sticks

# Compiled code may call another library for log, exp and powers: the last digits may differ, the draws may not
CLOSE = {"rtol": 1e-12, "atol": 1e-300}

pytestmark = pytest.mark.slow  # plain Python takes its time


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory):
    """The cases as plain Python computes them, and the kernels that took part."""
    file = tmp_path_factory.mktemp("parity") / "interpreted.npz"
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-W", "error", __file__, str(file)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    with np.load(file) as results:
        return dict(results)


@pytest.fixture(scope="module")
def compiled():
    return all_cases()


def test_compiled_and_interpreted_kernels_agree(compiled, interpreted):
    assert compiled.keys() == interpreted.keys() - {"kernels"}
    wrong = []
    for name, value in compiled.items():
        try:
            np.testing.assert_allclose(interpreted[name], value, **CLOSE)
        except AssertionError as error:
            wrong.append(f"{name}: {error}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", ["streams", "uniform", "count_transitions", "count_tables", "draw_", "path_of_"])
def test_what_is_made_of_whole_numbers_agrees_to_the_bit(name, compiled, interpreted):
    matching = [case for case in compiled if case.startswith(name)]
    assert matching
    for case in matching:
        np.testing.assert_array_equal(interpreted[case], compiled[case])


def test_no_kernel_is_left_out_of_the_comparison(interpreted):
    expected = {f"{kernel.__module__}.{kernel.__qualname__}" for kernel in all_kernels()}
    missing = expected - set(interpreted["kernels"].tolist())
    assert not missing, f"add a case to {Path(__file__).name} for {sorted(missing)}"


def all_kernels():
    """The plain-Python functions behind @jit, of every module of ihmm.kernels."""
    for module in kernel_modules():
        for function in vars(module).values():
            function = getattr(function, "py_func", function)
            if inspect.isfunction(function) and function.__module__ == module.__name__:
                yield function


def kernel_modules():
    for info in pkgutil.walk_packages(ihmm.kernels.__path__, "ihmm.kernels."):
        if "._" in info.name or info.name == compilation.__name__:  # about compilation, not compiled
            continue
        yield importlib.import_module(info.name)


def all_cases():
    with np.errstate(over="ignore"):  # interpreted, NumPy would warn of 64-bit words wrapping round
        cases = draw_cases() | count_cases() | conditional_cases() | stick_cases()
        return cases | pass_cases() | segment_cases() | chain_cases() | pilot_cases() | move_cases() | choice_cases()


def stream(number):
    words = np.empty(4, np.uint64)
    draws.seed_stream(words, np.uint64(99), number)
    return words


def draw_cases():
    tiny_to_large = [1e-300, 1e-6, 1e-3, 0.2, 1.0, 7.5, 1e6]
    cases = {
        "streams": np.array([stream(n) for n in (0, 1, 2**40, 2**41 + 3)]),
        "mixed": np.array([draws.mix(np.uint64(word)) for word in (0, 1, 2**64 - 1)]),
    }
    words = stream(1)
    cases["uniform"] = np.array([draws.uniform(words) for _ in range(300)])
    cases["normal"] = np.array([draws.normal(words) for _ in range(300)])
    cases["log_gamma"] = np.array([draws.log_gamma(words, a) for a in tiny_to_large for _ in range(20)])
    cases["log_beta"] = np.array([draws.log_beta(words, a, b) for a in tiny_to_large for b in tiny_to_large])
    cases["draw_index"] = np.array([draws.draw_index(words, np.array([1.0, 0.0, 3.0, 2.0, 0.0])) for _ in range(50)])
    cases["draw_poisson"] = np.array([draws.draw_poisson(words, 10 * a) for a in tiny_to_large for _ in range(10)])
    cases["draw_binomial"] = np.array(
        [draws.draw_binomial(words, n, 0.3) for n in (0, 5, 200, 10**6) for _ in range(10)]
    )
    cases["split"] = np.array([draws.split(words, a, b) for a in [0.0, *tiny_to_large] for b in tiny_to_large])
    return cases


def count_cases():
    rng = np.random.default_rng(0)
    states = rng.integers(0, 5, 60)
    words = stream(2)
    # of a size and type as they come from count_transitions
    customers = np.array([1, 2, 15, 16, 17, 60, 700, 8192, 16366, 100_000, 10_000_000])
    concentrations = [1e-8, 1e-2, 0.7, 30.0]
    path = rng.permutation(9)[rng.integers(0, 4, 30)]
    cases = {
        "count_transitions": counts.count_transitions(states, np.array([0, 20, 21, 60]), 5),
        "moments": np.array(counts.moments(states, rng.standard_normal(60), 5)),
        "log_rise": np.array([counts.log_rise(a, n) for n in customers for a in concentrations]),
        "log_gamma_ratio": np.array([counts.log_gamma_ratio(i, a) for i in customers[3:] for a in concentrations]),
        "count_tables": np.array([counts.count_tables(words, n, a) for n in customers for a in concentrations]),
        "compact_kept": counts.compact(path, rng.permutation(9), path),
        "compact_path": path,
    }
    y, mean, factor, constant = rng.standard_normal(60), *rng.standard_normal((3, 5))
    cases["log_normal"], cases["log_normal_at"] = np.empty((5, 60)), np.empty(60)
    densities.log_normal(y, mean, factor, constant, cases["log_normal"])
    densities.log_normal_at(y, states, mean, factor, constant, cases["log_normal_at"])
    reach = np.cumsum(rng.random(100))
    at = [*np.linspace(0, 60, 40), *reach[::9]]
    cases["search"] = np.array([csmc.search(reach, low, high, u) for low, high in [(0, 100), (7, 30)] for u in at])
    return cases


def conditional_cases():
    rng = np.random.default_rng(1)
    n_jk = rng.integers(0, 30, (6, 5))
    beta = rng.dirichlet(np.ones(6))
    free = HDPPrior(GammaPrior(1.0, 1.0), GammaPrior(2.0, 0.5), BetaPrior(3.0, 1.0))
    cases = {}
    for name, prior in (("free", free), ("fixed", HDPPrior(1.5, 4.0, 0.0))):
        for rho in (0.0, 0.6):
            result = conditionals.resample_transitions(stream(3), hyper_priors(prior), n_jk, beta, 1.5, 4.0, rho)
            cases[f"conditionals_{name}_{rho}"] = np.concatenate([np.ravel(part) for part in result])
        n_others = np.where(np.eye(6, 5, -1, dtype=bool), 0, n_jk)
        result = conditionals.resample_transitions(stream(3), hyper_priors(prior), n_others, beta, 1.5, 4.0, 0.0, True)
        cases[f"conditionals_{name}_without_self"] = np.concatenate([np.ravel(part) for part in result])
    return cases


def stick_cases():
    cases = {}
    model = Model(Normal(), HDPPrior(2.0, 1.0, 0.4))
    data = model.observe(np.random.default_rng(2).normal(size=30))
    draw = initial_draw(np.random.default_rng(3), data, model, np.arange(30) % 4)
    for name, hyper in (("plain", Hyper(2.0, 1.0, 0.4)), ("tiny", Hyper(0.5, 1e-7, 0.1))):
        theta, order = open_sticks(draw._replace(hyper=hyper), model.prior, np.uint64(7), 0.01)
        for state in np.flatnonzero(theta.row_of[: theta.size[0]] < 0)[:2]:
            theta = grow(theta)
            sticks.break_stick(theta)
            sticks.open_row(theta, state)
            while not sticks.extend_row(theta, 0, theta.size[0], np.inf):
                theta = grow(theta)
        n_states, n_rows, n_explicit = theta.size
        cases |= {
            f"sticks_{name}_order": order,
            f"sticks_{name}_size": theta.size,
            f"sticks_{name}_beta": np.append(theta.beta[:n_states], theta.left[:n_states]),
            f"sticks_{name}_row_of": theta.row_of[:n_states],
            f"sticks_{name}_known": theta.known[:n_rows],
            f"sticks_{name}_rows": theta.rows[:n_rows, :n_explicit],
            f"sticks_{name}_rest": np.append(theta.rest[:n_rows], theta.tail[:n_rows]),
            f"sticks_{name}_reach": theta.reach[0, n_explicit:n_states],
        }
    return cases


def pass_cases():
    cases = {}
    rng = np.random.default_rng(4)
    y = [rng.uniform(-6, 6, 25), rng.uniform(-6, 6, 15)]
    infinite = HDPPrior(GammaPrior(), GammaPrior(), BetaPrior())
    open_ended = HDPPrior(5.0, 5.0)
    finite = FinitePrior(6, GammaPrior(), GammaPrior(), BetaPrior())
    mean, normal, symbols, counts = NormalMean(0.5, scale=3.0), Normal(), Categorical(7), Poisson()
    full, diagonal = MultivariateNormal(2), MultivariateNormal(2, covariance="diagonal")
    autoregressive = Autoregressive(2)
    ones, shares, mixed = Bernoulli(2), Multinomial(2), Independent(Normal(), Bernoulli(), NormalMean())
    form = {
        symbols: lambda part: np.round(abs(part)),
        counts: lambda part: np.round(abs(part)),
        full: lambda part: np.stack([part, part[::-1]], axis=1),
        diagonal: lambda part: np.stack([part, part[::-1]], axis=1),
        ones: lambda part: np.stack([part > 0, part > 2], axis=1),
        shares: lambda part: np.round(abs(np.stack([part, part[::-1]], axis=1))),
        mixed: lambda part: np.stack([part, part > 0, part[::-1]], axis=1),
    }
    for i, (emission, prior, sampler) in enumerate(
        [
            (mean, infinite, ParticleGibbs(4, threshold=0.3, resampling="multinomial")),
            (mean, infinite, ParticleGibbs(5, threshold=0.02, resampling="multinomial")),
            (mean, open_ended, ParticleGibbs(4, proposal="prior", resampling="multinomial")),
            (mean, infinite, ParticleGibbs(4, threshold=0.2, ancestor_sampling=False, resampling="multinomial")),
            (mean, finite, ParticleGibbs(4, resampling="multinomial")),
            (mean, infinite, Beam()),
            (mean, finite, Blocked()),
            (mean, infinite, DirectAssignment()),
            (normal, finite, DirectAssignment()),
            (symbols, infinite, DirectAssignment()),
            (counts, infinite, DirectAssignment()),
            (full, infinite, DirectAssignment()),
            (diagonal, infinite, DirectAssignment()),
            (autoregressive, infinite, DirectAssignment()),
            (ones, infinite, DirectAssignment()),
            (shares, infinite, DirectAssignment()),
            (mixed, infinite, DirectAssignment()),
            (mean, infinite, ParticleGibbs(4, threshold=0.3)),
            (mean, infinite, ParticleGibbs(5, threshold=0.02)),
            (mean, open_ended, ParticleGibbs(4, proposal="prior")),
            (mean, finite, ParticleGibbs(30)),
        ]
    ):
        model = Model(emission, prior)
        data = model.observe([form.get(emission, np.asarray)(part) for part in y])
        rng = np.random.default_rng([5, i])
        draw = initial_draw(rng, data, model, np.arange(40) % 3)
        for sweep in range(2):
            path, info = sampler.resample_states(rng, data, model, draw)
            cases[f"path_of_sampler_{i}_{sweep}"] = path.states
            cases[f"beta_of_path_{i}_{sweep}"] = path.beta
            cases[f"info_of_path_{i}_{sweep}"] = np.array(info)
            draw, log_joint = resample_globals(rng, data, model, path, draw.hyper)
            cases[f"log_joint_{i}_{sweep}"] = np.array(log_joint)
    return cases


def segment_cases():
    """Passes over states and ages, and the finite chains that represent their draws."""
    cases, rng = {}, np.random.default_rng(10)
    y = np.repeat([-2.0, 1.0, 4.0, -2.0, 1.0], 8) + rng.normal(0, 0.7, 40)
    infinite, open_ended, finite = HDPPrior(1.0, 3.0), HDPPrior(5.0, 5.0), FinitePrior(4, 1.0, 3.0)
    no_minimum, later = durations.Geometric(), durations.Geometric(minimum=2)
    for i, (emission, prior, duration, sampler) in enumerate(
        [
            (NormalMean(0.5, scale=3.0), infinite, durations.NegativeBinomial(), ParticleGibbs(5, threshold=0.02)),
            (NoisyLevels(0, spread=3.0), finite, durations.Poisson(minimum=2), ParticleGibbs(5)),
            (NoisyLevels(0, spread=3.0), open_ended, no_minimum, ParticleGibbs(8, proposal="prior", threshold=0.3)),
            (NoisyLevels(1, spread=3.0), infinite, no_minimum, ParticleGibbs(6, threshold=0.3)),
            (NoisyLevels(2, spread=3.0, tails="student-t"), infinite, later, ParticleGibbs(6, threshold=0.3)),
        ]
    ):
        model = Model(emission, prior, duration, left_censored=i in (1, 4))
        data = model.observe([y[:25], y[25:]])
        rng = np.random.default_rng([11, i])
        draw = initial_draw(rng, data, model, np.arange(40) // 5 % 3)
        for sweep in range(3):
            path, info = sampler.resample_states(rng, data, model, draw)
            path, _ = SplitMerge(6, 3).apply(rng, data, model, path, draw.hyper)  # of the conjugate emission
            cases[f"path_of_segments_{i}_{sweep}"] = path.states
            cases[f"info_of_segments_{i}_{sweep}"] = np.array(info)
            draw, log_joint = resample_globals(rng, data, model, path, draw.hyper)
            cases[f"log_joint_of_segments_{i}_{sweep}"] = np.array(log_joint)
        hmm = finite_hmm(model, LabelledDraw(draw, np.arange(draw.n_states), [12, i]))
        _, filtered, log_predictive, ends = run_segment_filter(model, data, hmm)
        best, score = most_probable_states(model, data, hmm)
        found = {"filtered": filtered, "log_predictive": log_predictive, "ends": ends, "score": np.array(score)}
        smoothed, (chain, table) = np.empty_like(found["filtered"]), chain_over_ages(model, data, hmm)
        segment_chain.smooth_segments(chain, table, sequence_starts(data.offsets), smoothed)
        found |= {"smoothed": smoothed, "best": best}
        found["simulated"] = simulate_anew(rng, model, hmm, 30)[1]
        cases |= {f"segments_{name}_{i}": value for name, value in found.items()}
    return cases


def chain_cases():
    rng = np.random.default_rng(6)
    initial, rows = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4), 4)
    density = rng.gamma(1.0, 1.0, (20, 4))
    sequence = np.full(20, -1)
    sequence[[0, 12]] = 0, 1
    filtered, best = np.empty((20, 4)), np.empty(20, np.int64)
    log_predictive, walked = np.empty(20), np.empty(20, np.int64)
    overlap = np.empty((4, 4), np.int64)
    forward_backward.filter_forward(density, sequence, initial, rows, filtered, log_predictive)
    smoothed = filtered.copy()
    forward_backward.smooth(smoothed, sequence, rows)
    forward_backward.most_probable_path(np.log(density), sequence, np.log(initial), np.log(rows), best)
    forward_backward.walk(2, np.cumsum(rows, axis=1), rng.random(20), walked)
    counts.count_overlap(best, walked, overlap)
    return (
        beam_cases(density, sequence, np.vstack([rows, initial]))
        | lane_cases(rng, sequence >= 0)
        | {
            "log_predictive": log_predictive,
            "walked": walked,
            "overlap": overlap,
            "filtered": filtered,
            "smoothed": smoothed,
            "most_probable_path": best,
            "log_sum": np.array(
                [forward_backward.log_sum(a, b) for a, b in [(-800.0, -803.0), (-2.0, 5.0), (0.0, -900.0)]]
            ),
        }
    )


def lane_cases(rng, starts):
    """Three chains of four states, without and with durations of at least two steps, in noise that remembers or not."""
    initial, rows = rng.dirichlet(np.ones(4), 3).T.copy(), rng.dirichlet(np.ones(4), (4, 3)).transpose(0, 2, 1).copy()
    states, label, continues = np.arange(4), rng.integers(-1, 2, (4, 3)), np.append(~starts[1:], False)
    never, nowhere = np.empty((0, 3)), np.empty((0, 0), np.int64)
    nothing = nowhere[:, 0:0].reshape(0)
    plain = side_by_side.LaneChains(
        states, states, nothing, never, never, nowhere, states, initial, rows, nothing > 0, np.ones((4, 4), bool)
    )
    stay = rng.random((8, 3))
    stay[0::4] = 1.0
    aged = plain._replace(
        state=np.repeat(states, 2), column=np.array([4, 0, 5, 1, 2, 2, 3, 3]), older=np.repeat(2 * states + 1, 2),
        stay=stay, leave=1 - stay, entry=np.tile(2 * states, (4, 1)), start=2 * states,
        is_left=(stay < 1).any(axis=1), follows=~np.eye(4, dtype=bool),
    )  # fmt: skip
    level, scale = rng.normal(size=(4, 1, 3)), rng.random((4, 1, 3)) + 0.5
    memory = side_by_side.LaneMemory(
        np.array([[0, 1, 1], [1, 1, 3]]), np.array([4, 3, 4]), rng.normal(size=(20, 1, 3)), rng.normal(size=20),
        0.4 * level, level, rng.random((1, 1, 3)), scale, np.full(3, -0.9), np.full(3, np.inf),
    )  # fmt: skip
    log_density = np.empty((20, 6, 3))
    side_by_side.transpose(rng.normal(size=(18, 20)), log_density.reshape(20, 18))
    side_by_side.remember_lanes(memory, 0, 4, log_density)
    scale = np.empty((20, 3))
    side_by_side.relate_lanes(log_density, -2.0, scale)
    found = {"relative": log_density.copy(), "scale": scale}
    for name, chains in {"plain": plain, "aged": aged}.items():
        filtered, current = np.empty((20, len(chains.state), 3)), np.ones((len(chains.state), 3))
        total, causal, given_all = np.empty((20, 3)), np.zeros((20, 3)), np.zeros((20, 3))
        side_by_side.filter_lanes(chains, np.exp(log_density), starts, current, filtered, total)
        side_by_side.add_smoothed_lanes(chains, filtered, total, continues, label, current, given_all)
        side_by_side.add_filtered_lanes(chains.state, filtered, total, label, causal)
        predicted, others = np.empty_like(filtered), np.empty((20, 3))
        side_by_side.predict_each_step(chains, filtered, starts, current, predicted)
        following, density = np.ones_like(current), np.exp(log_density)
        side_by_side.leave_one_out_lanes(chains, predicted, density, continues, following, others)
        found |= {f"{name} total": total, f"{name} causal": causal, f"{name} given all": given_all}
        found |= {f"{name} predicted": predicted, f"{name} given others": others}
    return {f"lanes {name}": value for name, value in found.items()} | long_cases(
        rng, starts, initial[:, 0], rows[..., 0]
    )


def long_cases(rng, starts, initial, rows):
    """Four states in which five ages are told apart."""
    hazard = rng.uniform(0.1, 0.9, (4, 5))
    goes_on = np.cumprod(1 - hazard, axis=1)
    ends = hazard * np.insert(goes_on, 0, 1.0, axis=1)[:, :-1]
    law = [np.ascontiguousarray(np.insert(table[:, :-1][:, ::-1], 0, 0.0, axis=1)) for table in (ends, goes_on)]
    laws = long_durations.Laws(np.full(4, 5), *law, hazard, hazard[:, -1].copy())
    ratio, entering, leaving, found = np.zeros((4, 20, 4))
    total, density = np.empty(20), 10 ** rng.uniform(-60, 0, (20, 4))  # products are applied several times
    chain = np.ascontiguousarray(initial), np.ascontiguousarray(rows)
    long_durations.filter_long(laws, density, starts, *chain, ratio, entering, leaving, found, total)
    filtered = found.copy()
    long_durations.smooth_long(laws, starts, chain[1], ratio, entering, leaving, found)
    # smoothed ones are sums of differences of probabilities: small ones have the absolute error of large ones
    return {"long filtered": filtered, "long total": total, "long smoothed": 1.0 + found}


def beam_cases(density, sequence, rows):
    slices, order = np.full(20, 0.2), np.argsort(-rows, axis=1)
    narrow = np.log(density), sequence, np.take_along_axis(rows, order, axis=1), order, slices
    cases = {}
    for name, filter_beam, arguments in (
        ("narrow", forward_backward.filter_beam, narrow),
        ("wide", forward_backward.filter_wide_beam, (density, sequence, rows, slices)),
        ("faint", forward_backward.filter_faint_beam, narrow),
    ):
        first, state, mass = beam.empty_messages(20, 4)
        filter_beam(*arguments, first, state, mass)
        path = np.empty(20, np.int64)
        forward_backward.sample_beam(first, state, mass, name == "faint", sequence, rows, slices, np.uint64(11), path)
        cases |= {f"beam_{name}_first": first, f"beam_{name}_path": path}
        cases |= {f"beam_{name}_state": state[: first[-1]], f"beam_{name}_mass": mass[: first[-1]]}
    return cases


def pilot_cases():
    """Levels in noise with memory: two states and columns, dwell times of at least two steps, two sequences."""
    rng, cases = np.random.default_rng(13), {}
    level, scale = np.array([[-1.0, 0.5], [0.8, -0.5]]), np.array([[0.7, 0.9], [0.5, 1.1]])
    y, offsets, dwell = level[np.arange(30) // 4 % 2] + rng.normal(size=(30, 2)), np.array([0, 18, 30]), 2
    with np.errstate(divide="ignore"):
        logs = np.log([0.3, 0.7]), np.log([0.8, 0.6]), np.log([[0.0, 0.2], [0.4, 0.0]])
    for order, recalled, dof in ((0, 0, np.inf), (2, 2, 5.0), (2, 0, np.inf)):
        coefficients = np.array([[0.5, 0.2], [-0.2, 0.3]])[:order]
        z = y.copy()
        for lag in range(order):
            z[lag + 1 :] -= coefficients[lag] * y[: -lag - 1]
        for begin in offsets[:-1]:
            z[begin : begin + order] = np.nan
        settled, change, path = np.zeros((30, 2)), np.full((30, 2, 2), -np.inf), np.empty(30, np.int64)
        pilot.score(z, offsets, level, scale, coefficients, dof, dwell, recalled, settled, change)
        weight, moves = np.zeros_like(settled), np.zeros_like(change)
        total = pilot.smooth(settled, change, offsets, *logs, dwell, weight, moves)
        pilot.decode(settled, change, offsets, *logs, dwell, path)
        found = {"settled": settled, "change": change, "total": np.array(total), "moves": moves}
        found |= {"weight": weight, "path": path}
        for shared in (True, False):
            fit = level.copy(), scale.copy(), coefficients.copy()
            best = pilot.maximise(
                y, z, offsets, weight.copy(), moves, *fit, dof, dwell, recalled, shared, np.array([4.0, np.inf])
            )
            found[f"fit_{shared}"] = np.concatenate([*map(np.ravel, fit), [best]])
        cases |= {f"pilot_{name}_{order}_{recalled}": value for name, value in found.items()}
    return cases


def move_cases():
    rng, cases = np.random.default_rng(8), {}
    real = np.repeat([0.0, 3.0, 0.0], 12) + rng.normal(0, 0.3, 36)
    rows = np.stack([real, rng.normal(size=36)], axis=1)
    for i, (emission, y) in enumerate(
        [
            (Normal(), real),
            (NormalMean(0.3), real),
            (Categorical(3), real > 1),
            (Poisson(), np.round(5 * abs(real))),
            (MultivariateNormal(2), rows),
            (MultivariateNormal(2, covariance="diagonal"), rows),
            (Autoregressive(1, 2), rows),
            (Bernoulli(2), rows > 0),
            (Multinomial(2), np.round(5 * abs(rows))),
            (Independent(Categorical(2), MultivariateNormal(2)), np.column_stack([real > 1, rows])),
        ]
    ):
        model = Model(emission, HDPPrior(stickiness=0.3))
        data = model.observe(y)
        draw = initial_draw(rng, data, model, rng.integers(3, size=36))
        path = StateUpdate(draw.trajectory, draw.transitions.beta, draw.phi)
        path, _ = PairGibbs(scans=5).apply(rng, data, model, path, draw.hyper)
        cases[f"path_of_pairs_{i}"] = path.states
        for sweep in range(3):
            path, _ = GreedySplitMerge(careful=sweep != 1).apply(rng, data, model, path, draw.hyper)
            cases[f"moved_path_{i}_{sweep}"], cases[f"moved_beta_{i}_{sweep}"] = path.states, path.beta
        path, _ = SplitMerge(attempts=20).apply(rng, data, model, path, draw.hyper)
        cases[f"exactly_moved_path_{i}"], cases[f"exactly_moved_beta_{i}"] = path.states, path.beta
    return cases


def choice_cases():
    """The family that only greedy moves use, for emissions that are not conjugate."""
    table, states = np.random.default_rng(9).normal(size=(12, 3)), np.arange(12) % 2
    prior, statistics = np.zeros((1, 1)), np.zeros((2, 4))
    families.gather_statistics(CHOICE, statistics, table, states)
    families.prepare(CHOICE, prior, statistics[0])
    combined = np.empty(4)
    families.combine(CHOICE, prior, statistics[0], statistics[1], combined)
    return {
        "choice_statistics": np.vstack([statistics, combined]),
        "choice_predictive": np.array(
            [families.log_predictive(CHOICE, prior, statistics[0], table, t) for t in range(12)]
        ),
        "choice_evidence": np.array(families.log_evidence(CHOICE, prior, combined)),
    }


def main(file):
    """Compute the cases, noting which kernels are called, and write them down."""
    folder = str(Path(ihmm.kernels.__file__).parent)
    called = set()

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(folder):
            called.add(f"{frame.f_globals['__name__']}.{frame.f_code.co_name}")

    sys.setprofile(note)
    cases = all_cases()
    sys.setprofile(None)
    np.savez(file, kernels=np.array(sorted(called)), **cases)


if __name__ == "__main__":
    main(sys.argv[1])
