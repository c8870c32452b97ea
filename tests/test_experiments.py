"""The experiments of the paper, quick form: they run, go on where they stood, and the page says what they found."""

import json
import os
import signal
import threading

import numpy as np
import pytest
from rich.console import Console

import ihmm
from experiments import page
from experiments.__main__ import EXPERIMENTS, ROOT, main
from experiments.chains import LiteralParticleGibbs, chain
from experiments.jobs import Job, load, run, save
from ihmm.gibbs import initial_draw

QUIET = Console(quiet=True)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """A folder with everything, computed once."""
    pytest.importorskip("arpabo")
    folder = tmp_path_factory.mktemp("experiments")
    assert main(["all", "--quick", "--out", str(folder), "--cores", "1"]) == 0
    return folder


@pytest.mark.slow
def test_every_experiment_writes_its_numbers_and_figures(out):
    numbers = json.loads((out / "numbers.json").read_text("utf-8"))
    assert set(numbers) == {*EXPERIMENTS, "run"}
    text = (out / "docs" / "paper.md").read_text("utf-8")
    figures = {path.stem for path in (out / "docs" / "paper").glob("*.png")}
    assert {line.split("paper/")[1].removesuffix(".png)") for line in text.splitlines() if line[:2] == "!["} == figures


@pytest.mark.slow
def test_the_page_says_what_the_files_say(out, tmp_path):
    numbers = json.loads((out / "numbers.json").read_text("utf-8"))
    text = (out / "docs" / "paper.md").read_text("utf-8")
    pg = numbers["alice"]["pg"]
    row = next(line for line in text.splitlines() if line.startswith("| PG |") and "5918" in line)
    for value in (pg["marginal"], pg["log_mean"], pg["emission"]):
        assert f"{value:.1f}".replace("-", "−") in row
    assert f"E[K] =\n{numbers['exactness']['expected']:.3f}" in text

    pg["log_mean"] = -1234.5
    page.save_numbers(numbers, tmp_path / "numbers.json")
    page.write(tmp_path / "numbers.json", tmp_path / "paper.md")
    assert "−1234.5" in (tmp_path / "paper.md").read_text("utf-8")


@pytest.mark.slow
def test_a_second_run_computes_nothing_again_but_what_is_missing(out, capsys):
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*.npz")}
    gone = out / "ion_channel" / "pg-from-10-seed-0.npz"
    gone.unlink()
    assert main(["run", "ion_channel", "exactness", "--quick", "--out", str(out), "--cores", "1"]) == 0
    after = {path: path.stat().st_mtime_ns for path in out.rglob("*.npz")}
    assert set(before) == set(after)
    assert {path for path in after if after[path] != before[path]} == {gone}
    assert "jobs are done already" in capsys.readouterr().out


@pytest.mark.slow
def test_a_recording_of_ones_own_is_taken(out, tmp_path):
    rng = np.random.default_rng(0)
    current = np.repeat([1.0, 5.0] * 10, 10_000) * np.exp(0.05 * rng.standard_normal(200_000))
    np.save(tmp_path / "channel.npy", current)
    arguments = ["run", "ion_channel", "--quick", "--out", str(tmp_path / "out"), "--cores", "1"]
    assert main([*arguments, "--recording", str(tmp_path / "channel.npy")]) == 0
    numbers = json.loads((tmp_path / "out" / "ion_channel.json").read_text("utf-8"))
    assert not numbers["simulated"]
    assert numbers["length"] == 2000


@pytest.mark.slow
def test_the_page_in_the_documentation_is_that_of_the_template():
    """Its words, that is; the numbers are those of a full run."""
    written = (ROOT / "docs" / "explanation" / "paper.md").read_text("utf-8")
    for line in page.TEMPLATE.read_text("utf-8").splitlines():
        if "{" not in line:
            assert line in written


def test_the_list_names_every_experiment(capsys):
    assert main(["list"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in EXPERIMENTS)


def test_a_text_that_is_not_alice_is_a_users_error(tmp_path, capsys):
    (tmp_path / "other.txt").write_text("Alice was beginning to get very bored.")
    assert main(["run", "alice", "--quick", "--out", str(tmp_path), "--text", str(tmp_path / "other.txt")]) == 2
    assert "SHA-256" in capsys.readouterr().err


# Jobs


def square(x):
    return {"y": np.array(x * x)}


def interrupt(x):
    raise KeyboardInterrupt


def test_a_job_is_computed_again_if_the_question_changes_or_its_file_is_damaged(tmp_path):
    job = Job("a/one", square, {"x": 3})
    save(tmp_path, job, {"y": np.array(7)})  # not what it would compute
    assert run([job], tmp_path, 1, QUIET)["a/one"]["y"] == 7
    assert run([job._replace(arguments={"x": 4})], tmp_path, 1, QUIET)["a/one"]["y"] == 16
    file = tmp_path / "a" / "one.npz"
    file.write_bytes(file.read_bytes()[:100])
    assert load(tmp_path, job) is None
    assert run([job], tmp_path, 1, QUIET)["a/one"]["y"] == 9
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["one.npz"]


def test_what_was_done_before_an_interruption_is_kept(tmp_path):
    jobs = [Job("a/one", square, {"x": 2}), Job("a/two", interrupt, {"x": 0}), Job("a/three", square, {"x": 3})]
    with pytest.raises(KeyboardInterrupt):
        run(jobs, tmp_path, 1, QUIET)
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["one.npz"]


@pytest.mark.slow
def test_ctrl_c_stops_what_runs_on_other_processes(tmp_path):
    arguments = {"data": "four_state", "name": "pg", "init": 10, "sweeps": 10**6}
    jobs = [Job(f"a/{seed}", chain, {**arguments, "seed": seed}) for seed in range(3)]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    ctrl_c = threading.Timer(2, os.kill, (os.getpid(), signal.SIGINT))
    ctrl_c.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run(jobs, tmp_path, 2, QUIET)
    finally:
        ctrl_c.cancel()
        signal.signal(signal.SIGINT, before)
    assert not list(tmp_path.iterdir())


# The data and the literal sampler


def test_the_literal_proposal_scores_the_states_of_the_reference_and_no_others():
    rng = np.random.default_rng(0)
    model = ihmm.Model(ihmm.NormalMean())
    data = model.observe(rng.standard_normal(50))
    draw = initial_draw(rng, data, model, rng.integers(5, size=50))
    theta, order = LiteralParticleGibbs(10).open(model, draw, np.uint64(1))
    assert theta.size[2] == draw.n_states == len(order)
    assert ihmm.ParticleGibbs(10).open(model, draw, np.uint64(1))[0].size[2] != draw.n_states
