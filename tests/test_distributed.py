"""Chains and sequences elsewhere: the draws are those of one thread here."""

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

import ihmm
from ihmm import distributed

dask = pytest.importorskip("dask.distributed")

MODEL = ihmm.Model(ihmm.Normal(), ihmm.HDPPrior(stickiness=ihmm.BetaPrior(1, 1)))
SETTINGS = {"draws": 30, "tune": 10, "chains": 1, "seed": 3, "progress": False}


def series(n_sequences=7, length=80):
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


@pytest.mark.parametrize("shards", [None, 1, 3, 20])
def test_the_draws_do_not_depend_on_how_sequences_are_shared_among_workers(client, expected, shards):
    team = distributed.Cluster(client, shards)
    assert team.size == (shards or 2)
    assert_same(ihmm.sample(MODEL, series(), team=team, **SETTINGS), expected)


def test_blocks_are_worked_on_by_a_cluster_too(client):
    sampler = ihmm.ParticleGibbs(block_size=25)
    here = ihmm.sample(MODEL, series(), sampler=sampler, cores=1, **SETTINGS)
    assert_same(ihmm.sample(MODEL, series(), sampler=sampler, team=distributed.Cluster(client), **SETTINGS), here)


def test_a_run_begun_here_goes_on_on_a_cluster(client, expected, tmp_path):
    ihmm.sample(MODEL, series(), store=tmp_path / "run", **SETTINGS | {"draws": 10})
    assert_same(ihmm.resume(tmp_path / "run", draws=30, team=distributed.Cluster(client), progress=False), expected)


@pytest.mark.slow
def test_a_worker_that_is_killed_is_not_missed(client):
    settings = SETTINGS | {"draws": 200}

    def kill_one_after_the_other():
        for _ in range(2):
            time.sleep(0.5)
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

    expected = ihmm.sample(MODEL, series(), cores=1, **settings)
    team = distributed.Cluster(client)
    killer = threading.Thread(target=kill_one_after_the_other)
    killer.start()
    survived = ihmm.sample(MODEL, series(), team=team, **settings)
    killer.join()
    assert_same(survived, expected)


def test_a_cluster_that_keeps_failing_is_given_up():
    class Failing:
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
        ihmm.sample(MODEL, series(), team=distributed.Cluster(Failing()), **SETTINGS)


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
    monkeypatch.setattr("ihmm.chain.CHUNK_SECONDS", 0.0)
    whole = ihmm.sample(MODEL, series(), store=tmp_path / "run", **SETTINGS)
    (tmp_path / "run" / "chain-0" / "2.chunk").write_bytes(b"gone")
    with ThreadPoolExecutor(2) as pool, pytest.warns(UserWarning, match="computed again"):
        assert_same(ihmm.resume(tmp_path / "run", executor=pool, progress=False), whole)


def test_an_executor_must_be_one_and_excludes_a_team():
    with pytest.raises(TypeError, match=r"executor must be an Executor .* got 4"):
        ihmm.sample(MODEL, series(), executor=4, **SETTINGS)
    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="not both"):
        ihmm.sample(MODEL, series(), executor=pool, team=ihmm.model.Threads(2), **SETTINGS)
