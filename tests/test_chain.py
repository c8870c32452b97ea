"""Running chains: seeds, schedules, initial trajectories, threads, interruption, progress."""

import _thread
import io
import itertools
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

import ihmm
from ihmm.data import Data
from ihmm.model import Draw, Model
from ihmm.running.chains import SamplingStopped
from ihmm.running.start import dispersed
from ihmm.samplers import ParticleGibbs, PassInfo, StateUpdate
from ihmm.series.sequences import Sequences

MODEL = ihmm.Model(ihmm.Normal())
Y = np.concatenate([np.random.default_rng(0).normal(mean, 0.3, 15) for mean in (0, 3, 0, 3)])
QUIET = {"progress": False}


@dataclass
class Still:
    """A sampler that keeps the trajectory. Calls `at_sweep[n]` in sweep n, counted over all chains."""

    at_sweep: dict = field(default_factory=dict)
    count: itertools.count = field(default_factory=itertools.count)
    seconds: float = 0.0

    def resample_states(
        self, rng: np.random.Generator, data: Data, model: Model, draw: Draw
    ) -> tuple[StateUpdate, PassInfo]:
        time.sleep(self.seconds)
        self.at_sweep.get(next(self.count), lambda: None)()
        return StateUpdate(draw.trajectory, draw.transitions.beta), PassInfo(0, 0, 0.0)


def fail(error: BaseException) -> None:
    raise error


def assert_same_draws(one: ihmm.Posterior, other: ihmm.Posterior) -> None:
    np.testing.assert_array_equal(one.states, other.states)
    assert one.traces.keys() == other.traces.keys()
    for name, trace in one.traces.items():
        np.testing.assert_array_equal(trace, other.traces[name], err_msg=name)


# Seeds


@pytest.mark.parametrize("sampler", [ParticleGibbs(), ParticleGibbs(block_size=4)])
def test_sequences_and_blocks_on_threads_of_their_own_change_nothing(sampler, monkeypatch, tmp_path):
    monkeypatch.setattr("ihmm.running.chains.STEPS_PER_THREAD", 4)
    monkeypatch.setattr("ihmm.trajectory.PIECE_STEPS", 7)
    y = [Y, Y[::-1], Y]
    settings = {"sampler": sampler, "draws": 10, "tune": 5, "chains": 1, "seed": 7} | QUIET
    one = ihmm.sample(MODEL, y, cores=1, **settings)
    for other in (
        ihmm.sample(MODEL, y, cores=3, **settings),
        ihmm.sample(MODEL, y, cores=3, store=tmp_path / "run", **settings),
    ):
        np.testing.assert_array_equal(one.states, other.states)
        np.testing.assert_array_equal(one.traces["log_joint"], other.traces["log_joint"])


@pytest.mark.parametrize("init", [3, 300])  # more states than a byte can number
def test_draws_do_not_depend_on_the_size_of_jobs(init, monkeypatch):
    y = [np.tile(Y, 20), np.tile(Y[::-1], 30)]
    settings = {"draws": 5, "tune": 0, "moves": (), "chains": 1, "seed": 7, "init": init} | QUIET
    one = ihmm.sample(MODEL, y, cores=1, **settings)
    monkeypatch.setattr("ihmm.workers.TASK_STEPS", 100)
    assert_same_draws(ihmm.sample(MODEL, y, cores=1, **settings), one)


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_the_same_seed_gives_the_same_draws_whatever_the_number_of_cores(cores):
    one, other = (ihmm.sample(MODEL, Y, draws=10, tune=5, chains=3, seed=7, cores=n, **QUIET) for n in (cores, None))
    assert_same_draws(one, other)


def test_different_seeds_and_different_chains_differ():
    one, other = (ihmm.sample(MODEL, Y, draws=3, tune=0, chains=2, seed=seed, **QUIET) for seed in (1, 2))
    log_joint = np.concatenate([one.traces["log_joint"], other.traces["log_joint"]])
    assert len(np.unique(log_joint)) == log_joint.size


def test_a_seed_chosen_by_the_library_repeats_the_run():
    first, other = (ihmm.sample(MODEL, Y, draws=3, tune=0, chains=2, **QUIET) for _ in range(2))
    assert first.seed != other.seed
    assert_same_draws(first, ihmm.sample(MODEL, Y, draws=3, tune=0, chains=2, seed=first.seed, **QUIET))


def test_numpy_integers_are_accepted_where_numbers_are():
    posterior = ihmm.sample(
        MODEL, Y, draws=np.int64(2), tune=np.int32(0), chains=np.uint8(1), seed=np.int64(3), **QUIET
    )
    assert posterior.states.shape == (1, 2, 60)
    assert posterior.seed == 3


# Kept draws


def sweeps(n: int, **settings) -> list[tuple[Draw, object]]:
    return list(itertools.islice(ihmm.iterate(MODEL, Y, **settings), n))


def states_of(pairs: list[tuple[Draw, object]]) -> np.ndarray:
    return np.array([draw.states for draw, _ in pairs])


def test_iterate_yields_the_sweeps_of_the_first_chain():
    posterior = ihmm.sample(MODEL, Y, draws=6, tune=4, chains=2, seed=5, **QUIET)
    pairs = sweeps(10, seed=5, tune=4)[4:]
    np.testing.assert_array_equal(posterior.states[0], states_of(pairs))
    np.testing.assert_array_equal(posterior.traces["log_joint"][0], [info.log_joint for _, info in pairs])


def test_thinning_keeps_the_last_of_every_few_sweeps():
    posterior = ihmm.sample(MODEL, Y, draws=4, tune=2, thin=3, chains=1, seed=5, **QUIET)
    np.testing.assert_array_equal(posterior.states[0], states_of(sweeps(14, seed=5, tune=2)[2:][2::3]))


def test_warmup_holds_every_tuning_sweep():
    posterior = ihmm.sample(MODEL, Y, draws=2, tune=5, thin=2, chains=2, seed=5, save_warmup=True, **QUIET)
    assert posterior.warmup is not None
    assert posterior.warmup.states.shape == (2, 5, 60)
    np.testing.assert_array_equal(posterior.warmup.states[0], states_of(sweeps(5, seed=5, tune=5)))
    assert_same_draws(posterior, ihmm.sample(MODEL, Y, draws=2, tune=5, thin=2, chains=2, seed=5, **QUIET))


@pytest.mark.parametrize(("tune", "save_warmup"), [(5, False), (0, True)])
def test_there_is_no_warmup_unless_there_are_tuning_sweeps_and_they_are_saved(tune, save_warmup):
    assert ihmm.sample(MODEL, Y, draws=1, tune=tune, chains=1, save_warmup=save_warmup, **QUIET).warmup is None


def test_draws_equal_the_values_that_were_yielded():
    posterior = ihmm.sample(MODEL, Y, draws=5, tune=0, chains=1, seed=2, **QUIET)
    for kept, (draw, _) in zip(posterior.draws[0], sweeps(5, seed=2), strict=True):
        assert kept.hyper == draw.hyper
        assert kept.states.dtype == draw.states.dtype
        for one, other in zip(
            (kept.states, *kept.transitions, *kept.phi), (draw.states, *draw.transitions, *draw.phi), strict=True
        ):
            np.testing.assert_array_equal(one, other)


def test_observations_are_checked_once_for_all_chains(monkeypatch):
    calls = []
    observe = Model.observe
    monkeypatch.setattr(Model, "observe", lambda model, y, **given: calls.append(y) or observe(model, y, **given))
    ihmm.sample(MODEL, Y, draws=1, tune=0, chains=3, **QUIET)
    assert len(calls) == 1


# Initial trajectories


def first_states(y, **settings) -> np.ndarray:
    """The initial trajectory of a chain."""
    return next(ihmm.iterate(MODEL, y, sampler=Still(), moves=(), **settings))[0].states


def test_a_number_of_states_gives_a_uniformly_random_trajectory():
    states = first_states(np.tile(Y, 100), init=4, seed=0)
    assert np.all(np.abs(np.bincount(states) / len(states) - 0.25) < 0.03)


def test_chains_may_start_from_one_state():
    assert np.all(first_states(Y, init=1) == 0)


def test_a_given_trajectory_is_the_start_with_its_states_renumbered():
    path = np.repeat([4, 9], 30)
    np.testing.assert_array_equal(first_states(Y, init=path), np.repeat([0, 1], 30))


def test_every_chain_may_have_a_trajectory_of_its_own(tmp_path):
    paths = np.stack([np.repeat([0, 1], 30), np.repeat([0, 1, 2], 20)])
    settings = {"moves": (), "init": paths, "draws": 2, "tune": 1, "chains": 3, **QUIET}
    posterior = ihmm.sample(MODEL, Y, sampler=Still(), **settings)
    np.testing.assert_array_equal(posterior.states[:, 0], paths[[0, 1, 0]])
    np.testing.assert_array_equal(first_states(Y, init=paths), paths[0])
    stored = ihmm.sample(MODEL, Y, seed=3, store=tmp_path / "run", **settings)
    longer = ihmm.resume(tmp_path / "run", draws=4, **QUIET)
    assert_same_draws(longer, ihmm.sample(MODEL, Y, seed=3, **{**settings, "draws": 4}))
    assert len(stored.draws[0]) == 2


def test_dispersed_starts_have_more_states_in_every_second_chain():
    path = np.repeat([0, 1, 0, 1], 15)
    starts = dispersed(path, Sequences.of(Y), MODEL)
    assert starts.shape == (4, 60)
    np.testing.assert_array_equal(starts[[0, 2]], [path, path])
    assert [len(np.unique(row)) for row in starts] == [2, 4, 2, 3]
    finite = ihmm.Model(ihmm.Normal(), ihmm.FinitePrior(2))
    assert [len(np.unique(row)) for row in dispersed(path, Sequences.of(Y), finite)] == [2, 2, 2, 2]
    assert dispersed("auto", Sequences.of(Y), MODEL) == "auto"


@pytest.mark.parametrize("minimum", [1, 2])
def test_dispersed_starts_have_visits_of_a_single_step_where_there_may_be_any(minimum):
    path = (np.arange(60) % 5 == 2).astype(int)
    y = 9.0 * path + np.random.default_rng(0).normal(size=60)
    model = ihmm.Model(ihmm.NoisyLevels(), duration=ihmm.durations.Geometric(minimum=minimum))
    start = dispersed(path, Sequences.of(y), model)[1]
    apart = not set(start[path == 1]) & set(start[path == 0])
    assert apart == (minimum == 1)


@pytest.mark.parametrize("init", [[np.zeros(20, int), np.ones(40, int)], [[0] * 20, [1] * 40], [0] * 20 + [1] * 40])
def test_trajectories_of_several_sequences_are_a_list_or_concatenated(init):
    np.testing.assert_array_equal(first_states([Y[:20], Y[20:]], init=init), np.repeat([0, 1], [20, 40]))


@pytest.mark.slow  # with kernels interpreted, as for coverage
@pytest.mark.parametrize(("init", "dtype"), [(256, np.uint8), (257, np.uint16)])
def test_states_are_stored_in_the_smallest_unsigned_integers_that_fit(init, dtype):
    path = np.arange(600) % init
    y = np.random.default_rng(1).normal(size=600)
    posterior = ihmm.sample(MODEL, y, sampler=Still(), moves=(), init=path, draws=3, tune=1, chains=2, **QUIET)
    assert posterior.states.dtype == dtype
    np.testing.assert_array_equal(posterior.states, np.broadcast_to(path, (2, 3, 600)))


@pytest.mark.slow  # with kernels interpreted, as for coverage
def test_chains_that_need_wider_integers_and_chains_that_do_not_share_one_array():
    y = np.random.default_rng(1).normal(size=580)
    posterior = ihmm.sample(MODEL, y, sampler=Still(), init=300, draws=2, tune=0, chains=6, seed=1, **QUIET)
    assert posterior.n_states.min() <= 256 < posterior.n_states.max()
    assert posterior.states.dtype == np.uint16
    np.testing.assert_array_equal(posterior.states.max(axis=2) + 1, posterior.n_states)


# Threads


@pytest.mark.parametrize("cores", [1, 2])
def test_at_most_as_many_chains_run_at_a_time_as_there_are_cores(cores):
    inside, most = set(), []

    @dataclass
    class Watch(Still):
        def resample_states(self, rng, data, model, draw):
            inside.add(threading.get_ident())
            most.append(len(inside))
            result = super().resample_states(rng, data, model, draw)
            inside.discard(threading.get_ident())
            return result

    ihmm.sample(MODEL, Y, sampler=Watch(seconds=0.002), draws=10, tune=0, chains=4, cores=cores, **QUIET)
    assert max(most) == cores


def test_an_error_in_one_chain_stops_the_others_and_names_the_chain():
    sampler = Still({6: lambda: fail(ArithmeticError("no weights left"))}, seconds=0.001)
    with pytest.raises(ArithmeticError, match="no weights left") as caught:
        ihmm.sample(MODEL, Y, sampler=sampler, draws=100_000, tune=0, chains=4, cores=1, **QUIET)
    assert caught.value.__notes__ == ["in chain 2, sweep 1"]
    assert next(sampler.count) < 20


# Interruption


def interrupted(sampler: Still, **settings) -> tuple[ihmm.Posterior, str]:
    with pytest.warns(SamplingStopped, match="sampling was stopped") as caught:
        posterior = ihmm.sample(MODEL, Y, sampler=sampler, draws=100_000, progress=False, **settings)
    (message,) = (str(warning.message) for warning in caught if warning.category is SamplingStopped)
    return posterior, message


@pytest.fixture
def _sigint():
    """Handle Ctrl-C as on a terminal: a shell starts background jobs with the signal ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_sigint")
def test_ctrl_c_in_the_main_thread_keeps_every_draw():
    sampler = Still({20: _thread.interrupt_main}, seconds=0.002)
    posterior, message = interrupted(sampler, tune=2, chains=3, cores=2, seed=1)
    lengths = [len(draws) for draws in posterior.draws]
    assert sum(lengths) == next(sampler.count) - 3 * 2
    assert posterior.states.shape == (3, min(lengths), 60)
    assert all(trace.shape == (3, min(lengths)) for trace in posterior.traces.values())
    for c, n in enumerate(lengths):
        assert f"chain {c} has {n}" in message


@pytest.mark.parametrize("sweeps", [7, 8, 9])
def test_chains_that_share_a_core_advance_together(sweeps):
    posterior, _ = interrupted(Still({sweeps: lambda: fail(KeyboardInterrupt())}), tune=0, chains=3, cores=1)
    lengths = [len(draws) for draws in posterior.draws]
    assert sum(lengths) == sweeps
    assert max(lengths) - min(lengths) <= 1


def test_draws_before_an_interruption_are_those_of_the_whole_run():
    @dataclass
    class Interrupting(Still):
        def resample_states(self, rng, data, model, draw):
            super().resample_states(rng, data, model, draw)
            return ParticleGibbs().resample_states(rng, data, model, draw)

    posterior, _ = interrupted(Interrupting({11: lambda: fail(KeyboardInterrupt())}), tune=3, chains=2, cores=1, seed=4)
    assert [len(draws) for draws in posterior.draws] == [3, 2]
    whole = ihmm.sample(MODEL, Y, draws=3, tune=3, chains=2, seed=4, **QUIET)
    for c in range(2):
        for kept, draw in zip(posterior.draws[c], whole.draws[c], strict=False):
            np.testing.assert_array_equal(kept.states, draw.states)
            assert kept.hyper == draw.hyper
    assert "see .draws" not in repr(whole)
    assert "chains have 3, 2 draws" in repr(posterior)


def test_chains_interrupted_before_their_first_draw_are_left_out_and_the_others_keep_their_numbers():
    @dataclass
    class SlowInChainZero(Still):
        def resample_states(self, rng, data, model, draw):
            time.sleep(0.2 if rng.bit_generator.seed_seq.spawn_key == (0,) else 0)
            return super().resample_states(rng, data, model, draw)

    posterior, message = interrupted(SlowInChainZero({9: lambda: fail(KeyboardInterrupt())}), tune=4, chains=2, cores=2)
    assert "chain 0 has 0" in message
    assert "chains without a draw are left out" in message
    assert [draws.chain for draws in posterior.draws] == [1]
    assert posterior.states.shape == (1, len(posterior.draws[0]), 60)
    assert posterior.to_datatree()["posterior"]["chain"].values.tolist() == [1]


def test_an_interruption_before_any_draw_is_raised():
    with pytest.raises(KeyboardInterrupt):
        ihmm.sample(
            MODEL, Y, sampler=Still({5: lambda: fail(KeyboardInterrupt())}), tune=100, chains=2, cores=1, **QUIET
        )


def test_an_interrupted_run_keeps_its_warmup():
    sampler = Still({9: lambda: fail(KeyboardInterrupt())})
    posterior, _ = interrupted(sampler, tune=3, chains=2, cores=1, save_warmup=True)
    assert posterior.warmup.states.shape == (2, 3, 60)


# Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_one_bar_per_chain_with_phase_states_and_log_joint(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    still = Still(seconds=0.01)
    posterior = ihmm.sample(MODEL, Y, sampler=still, moves=(), draws=30, tune=20, chains=2, init=3, seed=1)
    shown = terminal.getvalue()
    for text in (
        "chain 0",
        "chain 1",
        "tune",
        "draw",
        "50/50",
        "/s",
        "3 states",
        f"{posterior.traces['log_joint'][0, -1]:.1f}",
    ):
        assert text in shown


def test_a_terminal_stays_empty_without_progress(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    ihmm.sample(MODEL, Y, draws=1, tune=0, chains=1, progress=False)
    assert sys.stderr.getvalue() == ""


def test_nothing_is_printed_where_there_is_no_terminal(capfd):
    ihmm.sample(MODEL, Y, draws=1, tune=0, chains=1, progress=True)
    assert capfd.readouterr() == ("", "")


def test_rich_and_xarray_are_imported_only_when_needed():
    code = """
import sys, numpy, ihmm
ihmm.sample(ihmm.Model(ihmm.Normal()), numpy.arange(4.0), draws=1, tune=0, chains=1)
assert not {"rich", "xarray", "pandas"} & set(sys.modules), sorted(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# The number of draws


def checked(converged, contradicted=False):
    return SimpleNamespace(converged=converged, contradicted=contradicted)


def test_a_model_that_does_not_fit_is_not_run_for_long(monkeypatch):
    monkeypatch.setattr("ihmm.chain.FIRST_AUTO_DRAWS", 5)
    monkeypatch.setattr(ihmm.Posterior, "check", lambda self: checked(False, contradicted=True))
    posterior = ihmm.sample(MODEL, Y, draws="auto", tune=2, chains=2, seed=3, **QUIET)
    assert len(posterior.draws[0]) == 10


def test_convergence_is_judged_with_the_levels_that_are_told_apart(monkeypatch):
    monkeypatch.setattr("ihmm.chain.FIRST_AUTO_DRAWS", 5)
    seen = []
    monkeypatch.setattr(ihmm.Posterior, "check", lambda self: seen.append(self.resolution) or checked(True))
    posterior = ihmm.sample(MODEL, Y, draws="auto", tune=2, chains=2, seed=3, resolution=0.5, **QUIET)
    assert seen == [0.5]
    assert posterior.resolution == 0.5


@pytest.mark.parametrize(("needed", "made"), [(1, 5), (20, 20), (1000, 40)])
def test_draws_are_added_until_the_chains_have_converged_or_a_limit_is_reached(monkeypatch, needed, made):
    monkeypatch.setattr("ihmm.chain.FIRST_AUTO_DRAWS", 5)
    monkeypatch.setattr("ihmm.running.chains.MAX_AUTO_DRAWS", 70)
    monkeypatch.setattr(ihmm.Posterior, "check", lambda self: checked(len(self.draws[0]) >= needed))
    settings = {"chains": 2, "seed": 3, "tune": 2, **QUIET}
    posterior = ihmm.sample(MODEL, Y, draws="auto", **settings)
    assert_same_draws(posterior, ihmm.sample(MODEL, Y, draws=made, **settings))


def test_an_interruption_ends_a_run_with_an_automatic_number_of_draws(monkeypatch):
    monkeypatch.setattr("ihmm.chain.FIRST_AUTO_DRAWS", 5)
    stop = Still({8: lambda: fail(KeyboardInterrupt())})
    with pytest.warns(UserWarning, match="stopped before all 5 draws"):
        posterior = ihmm.sample(MODEL, Y, sampler=stop, draws="auto", tune=0, chains=2, cores=1, seed=1, **QUIET)
    assert posterior.n_states.shape[1] < 5
