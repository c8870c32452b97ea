"""Chains and sequences elsewhere: the draws are those of one thread here."""

import contextlib
import itertools
import multiprocessing
import os
import signal
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

import ihmm
from ihmm import distributed
from ihmm.gibbs import initial_draw, sweep

dask = pytest.importorskip("dask.distributed")
dask_config = pytest.importorskip("dask").config
SubprocessScheduler = pytest.importorskip("distributed.deploy.subprocess").SubprocessScheduler
pytestmark = pytest.mark.cluster

MODEL = ihmm.Model(ihmm.Normal(), ihmm.HDPPrior(stickiness=ihmm.BetaPrior(1, 1)))
SETTINGS = {"draws": 30, "tune": 10, "chains": 1, "seed": 3, "progress": False}


def series(n_sequences=7, length=80):
    """Few of them are one piece, which is not shared."""
    rng = np.random.default_rng(0)
    stays = rng.random((n_sequences, length)) < 0.9
    states = np.cumsum(np.where(stays, 0, rng.integers(1, 4, stays.shape)), axis=1) % 4
    return [*(2.0 * states + 0.5 * rng.standard_normal(stays.shape))]


@pytest.fixture(scope="module")
def client():
    with (
        # with None it would ask for the usual port all the same, which another run of these tests may have
        dask.LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=":0", silence_logs=50) as cluster,
        dask.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def expected():
    return ihmm.sample(MODEL, series(), cores=1, **SETTINGS)


def assert_same(one, other):
    np.testing.assert_array_equal(one.states, other.states)
    for name, trace in one.traces.items():
        np.testing.assert_array_equal(trace, other.traces[name], err_msg=name)


@pytest.fixture(scope="module")
def many():
    """Sequences of which there are five pieces."""
    return series(40, 2000)


# With moves the path is looked at in every sweep, without them for the draws that are kept
MOVES = {"as usual": {}, "none": {"moves": ()}}


@pytest.fixture(scope="module", params=MOVES)
def fewer(request):
    return SETTINGS | {"draws": 10, "thin": 3} | MOVES[request.param]


@pytest.fixture(scope="module")
def expected_of_many(many, fewer):
    return ihmm.sample(MODEL, many, cores=1, **fewer)


@pytest.mark.parametrize("shards", [None, 1, 3, 20])
def test_the_draws_do_not_depend_on_how_sequences_are_shared(client, many, fewer, expected_of_many, shards):
    workers = distributed.Cluster(client, shards)
    assert workers.size == (shards or 2)
    assert_same(ihmm.sample(MODEL, many, workers=workers, **fewer), expected_of_many)
    assert len(workers._shards) == min(workers.size, 5)


def test_the_draws_do_not_depend_on_threads(many, fewer, expected_of_many):
    assert_same(ihmm.sample(MODEL, many, cores=2, **fewer), expected_of_many)


def test_a_few_steps_go_to_one_worker(client, expected):
    assert_same(ihmm.sample(MODEL, series(), workers=distributed.Cluster(client), **SETTINGS), expected)


EMISSIONS = {
    "symbols": ihmm.Categorical(3),
    "rows": ihmm.MultivariateNormal(2),
    "regression": ihmm.Autoregressive(1),
    "without statistics": ihmm.StudentT(),
}


@pytest.mark.parametrize("name", EMISSIONS)
def test_every_kind_of_emission_has_the_same_draws_on_a_cluster(client, name):
    # a byte holds so many states, and not three times as many
    settings = SETTINGS | {"draws": 2, "tune": 0, "thin": 2, "moves": (), "init": 150}
    y = series(10, 4000)
    if name == "symbols":
        y = [np.clip(each, 0, 2).astype(int) for each in y]
    elif name == "rows":
        y = [np.stack([each, -each], axis=1) for each in y]
    else:
        y[3][5:9] = np.nan
    model = ihmm.Model(EMISSIONS[name])
    here = ihmm.sample(model, y, cores=1, **settings)
    assert_same(ihmm.sample(model, y, workers=distributed.Cluster(client), **settings), here)
    assert here.n_states.max() > 85


@pytest.mark.parametrize("kind", ["negative binomial", "left-censored", "noise with a memory"])
def test_models_with_durations_have_the_same_draws_on_a_cluster(client, kind):
    prior, law = ihmm.HDPPrior(2.0, 5.0), ihmm.durations.NegativeBinomial(minimum=2)
    emission = ihmm.NoisyLevels(2) if kind == "noise with a memory" else ihmm.Normal()
    model = ihmm.Model(emission, prior, law, left_censored=kind == "left-censored")
    settings = SETTINGS | {"draws": 2, "tune": 0, "thin": 2, "init": 10}
    y = series(10, 4000)
    here = ihmm.sample(model, y, cores=1, **settings)
    there = ihmm.sample(model, y, workers=distributed.Cluster(client), **settings)
    assert_same(there, here)
    for ours, theirs in zip(here.draws[0][1].durations, there.draws[0][1].durations, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.fixture
def fetched(monkeypatch):
    """Paths that were fetched."""
    fetched, ask = [], distributed.Cluster.compute

    def watched(self, path, fetch):
        fetched.extend([path.key] if fetch else [])
        return ask(self, path, fetch)

    monkeypatch.setattr(distributed.Cluster, "compute", watched)
    return fetched


def test_paths_are_fetched_when_they_are_looked_at(client, many, fetched):
    workers = distributed.Cluster(client)
    settings = SETTINGS | {"draws": 3, "thin": 5, "tune": 20, "moves": ()}
    ihmm.sample(MODEL, many, workers=workers, **settings)
    assert len(fetched) == 3
    held = client.run(lambda dask_worker: [len(actor.paths) for actor in dask_worker.state.actors.values()])
    assert max(max(each, default=0) for each in held.values()) == 1  # workers forget all but the last


def test_histories_do_not_get_long(client, many, fetched, monkeypatch):
    monkeypatch.setattr(distributed, "MAX_REPLAY", 4)
    settings = SETTINGS | {"draws": 1, "tune": 29, "moves": ()}
    there = ihmm.sample(MODEL, many, workers=distributed.Cluster(client), **settings)
    assert len(fetched) == 30 // 4 + 1
    assert_same(there, ihmm.sample(MODEL, many, cores=1, **settings))


def test_chains_do_not_get_in_each_others_way(client, many):
    settings = SETTINGS | {"chains": 2, "draws": 5, "thin": 4}
    workers = distributed.Cluster(client)
    there = ihmm.sample(MODEL, many, workers=workers, **settings)
    assert_same(there, ihmm.sample(MODEL, many, cores=1, **settings))
    others = [each + 1 for each in many]
    assert_same(
        ihmm.sample(MODEL, others, workers=workers, **settings), ihmm.sample(MODEL, others, cores=1, **settings)
    )


def sweeps(data, n):
    rng = np.random.default_rng(4)
    draw = initial_draw(rng, data, MODEL, rng.integers(4, size=len(data.y)))
    for _ in range(n):
        draw, _ = sweep(rng, data, MODEL, draw, ihmm.ParticleGibbs())
    return draw


def test_a_path_that_nobody_has_any_more_is_made_again_here(client, many):
    workers = distributed.Cluster(client)
    data = MODEL.observe(many)
    there, here = sweeps(data._replace(workers=workers), 7), sweeps(data, 7)
    path = there.trajectory.path
    assert path.age == 7
    workers.client = None  # so that no worker can be asked
    for shard in workers._shards.values():
        shard.future.release()
    workers._shards.clear()
    np.testing.assert_array_equal(there.trajectory.labels[path.replay()], here.states)


def test_a_path_can_be_gone_on_from_twice(client, many):
    data = MODEL.observe(many)._replace(workers=distributed.Cluster(client))
    draw = sweeps(data, 3)
    first, second = (sweep(np.random.default_rng(1), data, MODEL, draw, ihmm.ParticleGibbs())[0] for _ in range(2))
    np.testing.assert_array_equal(first.states, second.states)
    assert (first.states != draw.states).any()


def test_blocks_are_worked_on_by_a_cluster_too(client):
    sampler = ihmm.ParticleGibbs(block_size=25)
    here = ihmm.sample(MODEL, series(), sampler=sampler, cores=1, **SETTINGS)
    assert_same(ihmm.sample(MODEL, series(), sampler=sampler, workers=distributed.Cluster(client), **SETTINGS), here)


def test_a_run_begun_here_goes_on_on_a_cluster(client, expected, tmp_path):
    ihmm.sample(MODEL, series(), store=tmp_path / "run", **SETTINGS | {"draws": 10})
    assert_same(ihmm.resume(tmp_path / "run", draws=30, workers=distributed.Cluster(client), progress=False), expected)


@pytest.mark.slow
@pytest.mark.parametrize("thin", [1, 50])
def test_a_worker_that_is_killed_is_not_missed(client, many, thin, monkeypatch):
    settings = SETTINGS | {"draws": 100 // thin, "thin": thin, "moves": ()}
    asked, ask = itertools.count(), distributed.Cluster.compute

    def kill_and_ask(self, path, fetch):
        if next(asked) in (30, 80):
            client.wait_for_workers(2, timeout=60)
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        return ask(self, path, fetch)

    expected = ihmm.sample(MODEL, many, cores=1, **settings)
    monkeypatch.setattr(distributed.Cluster, "compute", kill_and_ask)
    assert_same(ihmm.sample(MODEL, many, workers=distributed.Cluster(client), **settings), expected)
    assert next(asked) > 80


class OwnCluster:
    """A scheduler in a process of its own, and workers in this one with different numbers of threads."""

    def __init__(self):
        workers = {i: {"cls": dask.Worker, "options": {"nthreads": i}} for i in (1, 3)}
        scheduler = {"cls": SubprocessScheduler, "options": {"scheduler_kwargs": {"dashboard": False}}}
        self.cluster = dask.SpecCluster(workers, scheduler, silence_logs=50)
        self.client = dask.Client(self.cluster)

    def kill_scheduler(self):
        self.cluster.scheduler.process.kill()

    def close_client(self):
        self.client.close()


@pytest.fixture
def own():
    with dask_config.set({"distributed.comm.timeouts.connect": "1s"}):
        made = OwnCluster()
        yield made
        made.client.close()
        with contextlib.suppress(Exception):
            made.cluster.close(timeout=2)
        made.cluster.status = dask.Status.closed  # without its scheduler it cannot be closed properly


def test_workers_may_have_different_numbers_of_threads(own, many):
    own.client.wait_for_workers(2)
    settings = SETTINGS | {"draws": 3, "tune": 3}
    here = ihmm.sample(MODEL, many, cores=1, **settings)
    assert_same(ihmm.sample(MODEL, many, workers=distributed.Cluster(own.client), **settings), here)


@pytest.mark.slow
@pytest.mark.parametrize("hurt", [OwnCluster.kill_scheduler, OwnCluster.close_client])
def test_a_lost_cluster_is_named_and_the_run_goes_on_without_it(own, many, tmp_path, monkeypatch, hurt):
    settings = SETTINGS | {"draws": 10, "tune": 5, "moves": ()}
    asked, ask = itertools.count(), distributed.Cluster.compute

    def hurt_and_ask(self, path, fetch):
        if next(asked) == 9:
            hurt(own)
        return ask(self, path, fetch)

    own.client.wait_for_workers(2)
    monkeypatch.setattr(distributed.Cluster, "compute", hurt_and_ask)
    with pytest.raises(RuntimeError, match=r"connection to the cluster was lost.*ihmm\.resume"):
        ihmm.sample(MODEL, many, workers=distributed.Cluster(own.client), store=tmp_path / "run", **settings)
    with pytest.warns(UserWarning, match="has 2 of 10 draws"):
        ihmm.Posterior.load(tmp_path / "run")
    expected = ihmm.sample(MODEL, many, cores=1, **settings)
    assert_same(ihmm.resume(tmp_path / "run", progress=False), expected)


def test_an_executor_that_ends_is_named_and_the_run_goes_on_without_it(tmp_path, expected):
    class Ended(ThreadPoolExecutor):
        def submit(self, *_):
            raise BrokenExecutor("a process of the pool was terminated")

    with Ended(1) as pool, pytest.raises(RuntimeError, match=r"the executor.* ended .*ihmm\.resume"):
        ihmm.sample(MODEL, series(), executor=pool, store=tmp_path / "run", **SETTINGS)
    assert_same(ihmm.resume(tmp_path / "run", progress=False), expected)


def test_a_cluster_that_keeps_failing_is_given_up():
    class Failing:
        status = "running"

        def scheduler_info(self, n_workers):
            return {"workers": {"one": None}}

        as_current = contextlib.nullcontext

        def scatter(self, data, hash):
            return data

        def submit(self, *arguments, actor, pure):
            return self

        def result(self):
            raise dask.KilledWorker("task", None, [])

        def wait_for_workers(self, n, timeout):
            pass

    with pytest.raises(RuntimeError, match="lost its workers 10 times"):
        ihmm.sample(MODEL, series(), workers=distributed.Cluster(Failing()), **SETTINGS)


def test_a_cluster_needs_a_client_and_workers():
    with pytest.raises(TypeError, match=r"needs a dask\.distributed\.Client, got 'tcp://"):
        distributed.Cluster("tcp://somewhere:8786")

    class Empty:
        def scatter(self):
            pass

        def scheduler_info(self, n_workers):
            return {"workers": {}}

    with pytest.raises(ValueError, match="no workers; wait for them"):
        distributed.Cluster(Empty())


def test_chains_run_in_other_processes(tmp_path):
    settings = SETTINGS | {"chains": 3}
    here = ihmm.sample(MODEL, series(), cores=1, **settings)
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert_same(ihmm.sample(MODEL, series(), executor=pool, **settings), here)
        ihmm.sample(MODEL, series(), store=tmp_path / "run", executor=pool, **settings | {"draws": 10})
        assert_same(ihmm.resume(tmp_path / "run", draws=30, executor=pool, progress=False), here)


def test_chains_run_on_the_workers_of_a_cluster(client):
    settings = SETTINGS | {"chains": 2, "save_warmup": True}
    here = ihmm.sample(MODEL, series(), cores=1, **settings)
    there = ihmm.sample(MODEL, series(), executor=client.get_executor(), **settings)
    assert_same(there, here)
    assert_same(there.warmup, here.warmup)


def test_damaged_chunks_are_made_again_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr("ihmm.store.chunk_writer.CHUNK_SECONDS", 0.0)
    whole = ihmm.sample(MODEL, series(), store=tmp_path / "run", **SETTINGS)
    (tmp_path / "run" / "chain-0" / "2.chunk").write_bytes(b"gone")
    with ThreadPoolExecutor(2) as pool, pytest.warns(UserWarning, match="computed again"):
        assert_same(ihmm.resume(tmp_path / "run", executor=pool, progress=False), whole)


def test_an_executor_must_be_one_and_excludes_workers():
    with pytest.raises(TypeError, match=r"executor must be an Executor .* got 4"):
        ihmm.sample(MODEL, series(), executor=4, **SETTINGS)
    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="not both"):
        ihmm.sample(MODEL, series(), executor=pool, workers=ihmm.workers.Threads(2), **SETTINGS)
