"""The command line: output, files, exit codes and error messages."""

import errno
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import ihmm
from ihmm.cli import _demo, cli
from ihmm.cli._runs import wrapped
from ihmm.cli._simulate import EMISSIONS
from ihmm.running.start import dispersed
from ihmm.series.sequences import Sequences
from ihmm.store import RunFolder as Run
from test_tables import ODDITIES

SHORT = ("--draws", "20", "--tune", "10", "--chains", "2", "--seed", "3", "--no-report")
RECORDING = ihmm.datasets.ion_channel(length=300)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"time": np.arange(300) / 10, "current": RECORDING.y}).to_csv("trace.csv", index=False)
    return tmp_path


def run(*args, code=0):
    """Run a command in this process. It must exit with this code and without a traceback."""
    result = CliRunner().invoke(cli, [str(arg) for arg in args])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def error_of(*args):
    """The error message of a command that must fail with exit code 2."""
    result = run(*args, code=2)
    assert result.stdout == ""
    return result.stderr.splitlines()[-1]


def ihmm_process(*args, **settings):
    """Run a command in a new process."""
    return subprocess.run(
        [sys.executable, "-m", "ihmm", *map(str, args)], capture_output=True, text=True, timeout=300, **settings
    )


# Jobs in the background of a shell and of nohup ignore these signals, and child processes inherit that
ON_A_TERMINAL = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
for name in {"SIGTERM", "SIGHUP"} & set(dir(signal)):
    signal.signal(getattr(signal, name), signal.SIG_DFL)
from ihmm.__main__ import main
main()
"""


def start_on_a_terminal(*args):
    """Start a command in a new process that receives signals, as it does on a terminal."""
    command = [sys.executable, "-c", ON_A_TERMINAL, *map(str, args)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def fit(*args):
    return run("fit", "trace.csv", "--column", "current", *SHORT, *args)


# Fit


@pytest.mark.parametrize("option", [("--time", "time"), ("--dt", "100ms"), ("--sample-rate", "10Hz")])
def test_times_are_in_all_results(option):
    result = fit(*option, "--out", "runs/x")
    posterior = ihmm.Posterior.load("runs/x")
    assert posterior.clock.step == pytest.approx(0.1)
    assert "dwell (s)" in result.stdout
    assert "Transition rates per second" in result.stdout
    np.testing.assert_array_equal(pd.read_csv("runs/x/segmentation.csv")["time_s"], np.arange(300) / 10)
    states, rates = pd.read_csv("runs/x/states.csv"), pd.read_csv("runs/x/rates.csv")
    np.testing.assert_allclose(states["dwell_s"], 0.1 * states["dwell"])
    assert list(rates) == ["from", "to", "rate_per_s", "rate_per_s_low", "rate_per_s_high"]
    assert json.loads(Path("runs/x/summary.json").read_text())["seconds_per_step"] == posterior.clock.step
    run("predict", "runs/x", "trace.csv", "--out", "states.csv")
    np.testing.assert_array_equal(pd.read_csv("states.csv")["time_s"], np.arange(300) / 10)


def test_a_file_as_it_is_can_be_fitted_with_dates_and_marked_values():
    rows = [f"2024-01-01 00:{i // 60:02}:{i % 60:02};{y:.3f}".replace(".", ",") for i, y in enumerate(RECORDING.y)]
    rows[7] = rows[7].split(";")[0] + ";-9999"
    Path("odd.csv").write_text("\n".join(["Acme 3000", "# ion channel", "when;current", ";pA", *rows]))
    options = ("--skip-rows", "1", "--decimal", ",", "--na", "-9999")
    result = run("fit", "odd.csv", *options, *SHORT, "--out", "runs/odd")
    assert "cells are separated by semicolons" in result.stderr
    assert "Column when is the time of each row" in result.stderr
    table = pd.read_csv("runs/odd/segmentation.csv", parse_dates=["time"])
    assert table["time"].iloc[-1] == pd.Timestamp("2024-01-01 00:04:59")
    assert np.flatnonzero(table["current"].isna()).tolist() == [7]
    run("predict", "runs/odd", "odd.csv", "--out", "states.csv")
    run("fit", "--config", "runs/odd/settings.toml", "--no-report", "--out", "runs/again")
    np.testing.assert_array_equal(ihmm.Posterior.load("runs/again").states, ihmm.Posterior.load("runs/odd").states)


@pytest.mark.parametrize(("content", "options", "note"), ODDITIES.values(), ids=ODDITIES)
def test_every_oddity_of_a_file_is_read_and_named(content, options, note):
    Path("odd.csv").write_text(content)
    given = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
    quick = ("--emission", "gaussian", "--draws", 4, "--tune", 2, "--chains", 1, "--seed", 1, "--no-report", "--quiet")
    result = run("fit", "odd.csv", "--column", "x", *given, *quick, "--out", "runs/odd")
    assert pd.read_csv("runs/odd/segmentation.csv")["x"].tolist() == [1.5, -2, 3]
    assert note is None or re.search(note, " ".join(result.stderr.split()))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda y: np.where(np.arange(300) == 7, -9999, y), "1 value is −9999, far from all others"),
        (lambda y: np.minimum(y, np.quantile(y, 0.9)), "values equal the largest one"),
    ],
    ids=["marker", "saturated"],
)
def test_markers_and_saturation_are_named(change, words):
    pd.DataFrame({"current": change(RECORDING.y)}).to_csv("trace.csv", index=False)
    assert words in fit("--emission", "normal").stderr


def test_states_are_ordered_and_named_now_or_later():
    first = fit("--order-by", "mean", "--name", "0=closed", "--out", "runs/x")
    assert "closed" in first.stdout
    assert "closed" in set(pd.read_csv("runs/x/segmentation.csv")["state_name"])
    means = pd.read_csv("runs/x/states.csv")["mean"]
    assert (np.diff(means) > 0).all()
    assert "there are states 0 to" in error_of("report", "runs/x", "--name", "99=x")
    run("report", "runs/x", "--order-by", "use", "--name", "1=open")
    assert pd.read_csv("runs/x/states.csv")["name"].tolist()[1] == "open"
    assert "--name must be the number of a state and its name" in error_of("fit", "trace.csv", "--name", "closed")


def test_fit_prints_a_summary_and_writes_all_files(folder):
    result = fit("--out", "runs/x")
    assert result.stderr == ""
    posterior = ihmm.Posterior.load("runs/x")
    assert result.stdout.startswith(repr(posterior.levels()))
    assert repr(posterior.summary()) in result.stdout
    assert "Files in runs/x: segmentation.csv, states.csv, rates.csv, summary.json, settings.toml, " in result.stdout
    table = pd.read_csv("runs/x/segmentation.csv")
    assert list(table) == ["sequence", "row", "current", "level", "level_probability", "state", "probability"]
    np.testing.assert_allclose(table["current"], RECORDING.y)
    np.testing.assert_array_equal(table["level"], posterior.levels().segmentation)
    np.testing.assert_array_equal(table["state"], posterior.summary().states)
    assert table["row"].tolist() == list(range(1, 301))
    assert table["probability"].between(0, 1).all()
    assert list(pd.read_csv("runs/x/states.csv")["state"]) == list(range(posterior.summary().n_states))
    assert json.loads(Path("runs/x/summary.json").read_text())["n_states"] == posterior.summary().n_states


def test_fit_prints_the_convergence_check():
    result = fit("--out", "runs/x")
    assert "too few to diagnose" in result.stdout
    assert "→ Next: ihmm resume runs/x --draws" in result.stdout


def test_the_resolution_is_stored_and_used():
    summary = json.loads(fit("--resolution", "1e9", "--json", "--out", "x").stdout)
    assert summary["n_levels"] == 1
    assert summary["resolution"] == 1e9
    assert "--resolution must be positive, got -1" in error_of("fit", "trace.csv", "--resolution", -1)


def test_a_first_visit_may_have_begun_before_the_data():
    fit("--duration", "poisson", "--left-censored", "--out", "x")
    assert ihmm.Posterior.load("x").model.left_censored
    assert "left_censored = true" in Path("x/settings.toml").read_text("utf-8")


def test_model_and_draws_are_the_same_as_in_python():
    fit("--out", "x")
    from_file = ihmm.Posterior.load("x")
    y = pd.read_csv("trace.csv")[["current"]]
    estimator = ihmm.InfiniteHMM(draws=1, tune=0, chains=1, random_state=0).fit(y)
    assert from_file.model == estimator.posterior_.model
    start = dispersed(estimator.choice_.init, Sequences.of(y), from_file.model)
    same = ihmm.sample(from_file.model, y, draws=20, tune=10, chains=2, seed=3, init=start, progress=False)
    np.testing.assert_array_equal(from_file.states, same.states)


@pytest.mark.parametrize("option", [(), ("--no-sticky",), ("--emission", "poisson")])
def test_the_model_of_counts_is_that_of_the_estimator(option):
    counts = np.random.default_rng(0).poisson(RECORDING.states * 20 + 3)
    np.save("counts.npy", counts)
    run("fit", "counts.npy", *SHORT, "--out", "x", *option)
    estimator = ihmm.InfiniteHMM(
        "poisson" if "poisson" in option else "auto", sticky="--no-sticky" not in option, draws=1, tune=0, chains=1
    )
    assert ihmm.Posterior.load("x").model == estimator.fit(counts[:, None]).posterior_.model


def test_white_noise_can_be_asked_for():
    """As a check may advise: --emission levels --order 0."""
    fit("--emission", "levels", "--order", "0", "--out", "x")
    assert "order=0" in run("info", "x").stdout


def test_the_order_of_an_autoregression_is_an_option():
    fit("--emission", "autoregressive", "--order", "2", "--out", "x")
    y = pd.read_csv("trace.csv")["current"].to_numpy()
    estimator = ihmm.InfiniteHMM("autoregressive", order=2, draws=1, tune=0, chains=1).fit(y)
    assert ihmm.Posterior.load("x").model == estimator.posterior_.model
    run("fit", "--config", "x/settings.toml", "--out", "y", "--no-report")
    np.testing.assert_array_equal(ihmm.Posterior.load("x").states, ihmm.Posterior.load("y").states)


def test_settings_repeat_a_run_bit_for_bit():
    fit("--out", "x", "--sampler", "beam", "--thin", "2", "--init", "5")
    run("fit", "--config", "x/settings.toml", "--out", "y", "--no-report")
    first, second = ihmm.Posterior.load("x"), ihmm.Posterior.load("y")
    np.testing.assert_array_equal(first.states, second.states)
    np.testing.assert_array_equal(first.traces["log_joint"], second.traces["log_joint"])
    assert isinstance(second.sampler, ihmm.Beam)
    assert Path("x/settings.toml").read_text() == Path("y/settings.toml").read_text()


def test_a_random_seed_is_stored():
    run("fit", "trace.csv", "--column", "current", *SHORT[:6], "--no-report", "--out", "x")
    assert tomllib.loads(Path("x/settings.toml").read_text())["seed"] == ihmm.Posterior.load("x").seed


def test_the_command_line_takes_precedence_over_the_file():
    Path("a.toml").write_text('files = ["trace.csv"]\ncolumn = ["current"]\ndraws = 9\ntune = 5\nchains = 2\n')
    run("fit", "--config", "a.toml", "--draws", "7", "--out", "x", "--no-report")
    assert ihmm.Posterior.load("x").n_states.shape == (2, 7)


def test_paths_in_a_toml_file_are_relative_to_it(folder):
    (folder / "deep").mkdir()
    Path("deep/a.toml").write_text('files = ["b.csv"]\n')
    Path("deep/b.csv").write_text("x\n1.5\n2.5\n3.5\n")
    run("fit", "--config", "deep/a.toml", *SHORT, "--out", "x")


def test_provenance_records_data_seed_and_versions():
    fit("--out", "x")
    record = json.loads(Path("x/provenance.json").read_text())
    assert record["files"] == [
        {
            "path": str(Path("trace.csv").resolve()),
            "sha256": hashlib.sha256(Path("trace.csv").read_bytes()).hexdigest(),
        }
    ]
    assert record["seed"] == 3
    assert record["versions"]["numpy"] == np.__version__
    assert {"date", "command", "platform"} <= record.keys()


def test_runs_are_numbered():
    fit()
    fit()
    assert {path.name for path in Path("runs").iterdir()} == {"trace-1", "trace-2"}


def test_json_is_one_object_and_nothing_else():
    summary = json.loads(fit("--json", "--out", "x").stdout)
    assert summary["run"] == "x"
    assert summary["n_states"] == len(summary["states"]) == len(summary["transitions"])
    assert sum(summary["n_states_probabilities"].values()) == pytest.approx(1)
    assert summary["check"]["fine"] is False


def test_symbols_are_named_in_the_output_and_stored():
    letters = np.array(list("ACGT"))[RECORDING.states]
    Path("dna.txt").write_text("\n".join(letters) + "\n")
    result = run("fit", "dna.txt", *SHORT, "--out", "x")
    assert "symbols of state 0: " in result.stdout
    assert ihmm.Posterior.load("x").model.emission.n_symbols == 4
    assert tomllib.loads(Path("x/settings.toml").read_text())["symbols"] == ["A", "C", "G", "T"]
    assert "probs[T]" in pd.read_csv("x/states.csv")
    run("fit", "--config", "x/settings.toml", "--out", "y", "--no-report")
    np.testing.assert_array_equal(ihmm.Posterior.load("x").states, ihmm.Posterior.load("y").states)


def test_several_columns_and_series():
    frame = pd.DataFrame({"cell": ["a"] * 100 + ["b"] * 200, "u": RECORDING.y, "v": -RECORDING.y})
    frame.to_csv("cells.csv", index=False)
    columns = ("--column", "u", "--column", "v")
    run("fit", "cells.csv", "--id", "cell", *columns, "--emission", "normal", *SHORT, "--out", "x")
    posterior = ihmm.Posterior.load("x")
    assert posterior.lengths.tolist() == [100, 200]
    assert isinstance(posterior.model.emission, ihmm.MultivariateNormal)
    assert {"mean[u]", "covariance[u][v]"} <= set(pd.read_csv("x/states.csv"))
    table = pd.read_csv("x/segmentation.csv")
    assert table["sequence"].tolist() == frame["cell"].tolist()
    assert table["row"].iloc[100] == 1


# Other commands


def test_draws_are_added_to_a_run():
    fit("--out", "x")
    result = run("resume", "x", "--draws", "30", "--no-report")
    assert ihmm.Posterior.load("x").n_states.shape == (2, 30)
    assert repr(ihmm.Posterior.load("x").summary()) in result.stdout
    assert json.loads(Path("x/summary.json").read_text())["draws"] == [30, 30]
    assert len(json.loads(Path("x/provenance.json").read_text())["resumed"]) == 1
    assert tomllib.loads(Path("x/settings.toml").read_text())["draws"] == 30


def test_a_run_made_in_python_can_be_resumed_and_inspected():
    model = ihmm.Model(ihmm.Normal())
    ihmm.sample(model, RECORDING.y, draws=10, tune=5, chains=1, seed=1, progress=False, store="x")
    run("resume", "x", "--draws", "12", "--no-report")
    assert pd.read_csv("x/segmentation.csv")["sequence"].unique().tolist() == [0]
    assert "Normal(" in run("info", "x").stdout


def test_predict_writes_states_probabilities_and_likelihood():
    fit("--out", "x")
    fresh = ihmm.datasets.ion_channel(length=50, seed=9).y
    pd.DataFrame({"current": fresh, "note": "-"}).to_csv("new.csv", index=False)
    result = run("predict", "x", "new.csv", "--out", "states.csv")
    posterior, table = ihmm.Posterior.load("x"), pd.read_csv("states.csv")
    values = pd.read_csv("new.csv")["current"].to_numpy()
    np.testing.assert_allclose(table.filter(regex="^p"), posterior.smooth(values), atol=1e-4)
    assert f"Held-out log-likelihood {posterior.log_likelihood(values).sum():.2f}" in result.stdout

    printed = run("predict", "x", "new.csv", "--causal")
    assert printed.stdout.startswith("sequence,row,level,state,p0,")
    assert "Held-out log-likelihood" in printed.stderr
    causal = np.loadtxt(printed.stdout.splitlines()[1:], delimiter=",", usecols=4)
    np.testing.assert_allclose(causal, posterior.filter(values)[:, 0], atol=1e-4)


def test_predict_matches_columns_by_name():
    frame = pd.DataFrame({"ch1": RECORDING.y, "ch2": 5 - RECORDING.y**2})
    frame.to_csv("two.csv", index=False)
    frame[["ch2", "ch1"]].to_csv("turned.csv", index=False)
    run("fit", "two.csv", "--column", "ch*", *SHORT, "--out", "x")
    expected = run("predict", "x", "two.csv").stderr
    for asked in ((), ("--column", "ch*"), ("--column", "ch2", "--column", "ch1")):
        assert run("predict", "x", "turned.csv", *asked).stderr == expected
    posterior = ihmm.Posterior.load("x")
    np.testing.assert_array_equal(posterior.log_likelihood(frame[["ch2", "ch1"]]), posterior.log_likelihood(frame))


def test_predict_uses_the_symbols_of_the_fit():
    Path("s.csv").write_text("s\n" + "B\nA\nC\n" * 30)
    run("fit", "s.csv", *SHORT, "--out", "x")
    Path("new.csv").write_text("s\nC\nC\n")
    run("predict", "x", "new.csv")
    Path("new.csv").write_text("s\nC\nD\n")
    assert error_of("predict", "x", "new.csv") == "Error: new.csv, line 3: 'D' is not one of the symbols A, B, C"


def test_info_describes_a_run():
    fit("--out", "x")
    output = run("info", "x").stdout
    parts = "2 chains of 20 draws", "300 rows of current", "NoisyLevels(", "ParticleGibbs(", "seed      3", "numpy"
    verdict = json.loads(Path("x/summary.json").read_text())["check"]["verdict"]
    for part in (*parts, "duration  Geometric(", f"levels. {verdict}"):
        assert part in output


def test_a_run_in_progress_can_be_inspected_but_not_resumed():
    fit("--out", "x")
    assert "running now" not in run("info", "x").stdout
    with Run.reopen("x", None):
        assert "running now" in run("info", "x").stdout
        assert "another process is working on" in error_of("resume", "x")


@pytest.mark.parametrize("emission", EMISSIONS)
def test_simulated_series_are_reproducible_and_can_be_fitted(emission):
    first, second = (run("simulate", "--emission", emission, "--length", 80, "--seed", 4) for _ in range(2))
    assert first.stdout == second.stdout
    run("simulate", "--emission", emission, "--length", 80, "--seed", 4, "--out", "s.csv")
    assert Path("s.csv").read_text() == first.stdout
    columns = pd.read_csv("s.csv").columns[:-1]
    family = () if len(columns) == 1 else ("--emission", emission)
    run("fit", "s.csv", *(word for column in columns for word in ("--column", column)), *family, *SHORT)


def test_simulated_series_have_at_most_the_given_number_of_states():
    run("simulate", "--emission", "normal", "--states", 3, "--out", "s.csv")
    assert pd.read_csv("s.csv")["state"].nunique() == 3


@pytest.mark.slow
def test_demo_recovers_the_states_of_an_ion_channel(monkeypatch):
    for name in ("draws", "tune"):  # fewer than the demonstration has
        monkeypatch.setitem(_demo.OPTIONS, name, 150)
    output = run("demo").stdout
    assert "4 states" in output
    assert "dwell (ms)" in output
    assert "The inferred state is correct at 99" in output
    assert any(Path("runs/demo-1").glob("*.html")) or any(Path("runs/demo-1").glob("*.png"))


@pytest.mark.slow
def test_warmup_prints_the_time_it_took():
    assert "Compiled in" in run("warmup").stdout


def test_every_command_has_help_with_an_example():
    for name in cli.commands:
        text = run(name, "--help").stdout
        assert "Example" in text
        assert f"ihmm {name}" in text


# Errors

BAD_FILES = {
    "missing.csv": (None, "file not found: missing.csv"),
    "empty.csv": ("", "empty.csv is empty"),
    "header.csv": ("time,current\n", "header.csv has a header but no rows"),
    "text.csv": ("time,current\n0,1\n1,oops\n", "text.csv, line 3: 'oops' in column current is not a number"),
    "ragged.csv": ("time,current\n0,1\n1,2,3\n", "ragged.csv, line 3 has 3 cells, but the first line has 2"),
    "other.csv": ("time,voltage\n0,1\n1,2\n", "other.csv has no column current; its columns are time, voltage"),
    "binary.csv": (b"\0\1\2", "binary.csv is a binary file of unknown format; expected CSV, TSV, NPY or Parquet"),
    "latin.csv": (b"time,current\n0,\xe9\n", "latin.csv is not UTF-8 text (line 2); save it as UTF-8"),
    "bad.parquet": (b"not parquet, not at all", "bad.parquet cannot be read as Parquet"),
    "bad.npy": (b"not numpy", "bad.npy is not a NumPy array of numbers"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "message"), [(name, *rest) for name, rest in BAD_FILES.items()], ids=BAD_FILES
)
def test_unreadable_files_are_errors(name, content, message):
    if content is not None:
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert error_of("fit", name, "--column", "current").startswith(f"Error: {message}")
    assert not Path("runs").exists()


def test_a_folder_instead_of_a_file_is_an_error(folder):
    (folder / "sub").mkdir()
    assert error_of("fit", "sub") == "Error: sub is a folder, not a file"


BOTH = ("--column", "time", "--column", "current")
BAD_OPTIONS = {
    "no file": ((), "no input file; name one on the command line or in the --config file"),
    "order": (("trace.csv", "--order", "2"), "--order requires --emission autoregressive or levels, got"),
    "particles": (("trace.csv", "--sampler", "beam", "--particles", "5"), "--particles requires"),
    "id": (("trace.csv", "--column", "time", "--id", "time"), "column time is given for both --column and --id"),
    "columns": (("trace.csv", *BOTH, "--emission", "poisson"), 'emission="poisson" takes one column, got 2'),
    "fractions": (("trace.csv", "--column", "current", "--emission", "categorical"), "expects whole numbers"),
    "draws": (("trace.csv", "--draws", "0"), "expected a positive number of draws or auto, got '0'"),
    "init": (("trace.csv", "--init", "zero"), "expected a positive number of states or auto, got 'zero'"),
    "emission": (("trace.csv", "--emission", "gamma"), "'gamma' is not one of"),
    "option": (("trace.csv", "--colunm", "x"), "Did you mean"),
    "dt": (("trace.csv", "--column", "current", "--dt", "quick"), "dt must be a number with a unit, such as 0.1ms"),
    "two clocks": (("trace.csv", "--dt", "1s", "--sample-rate", "1"), "give one of --time, --dt and --sample-rate"),
}  # fmt: skip


@pytest.mark.parametrize(("args", "message"), BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_invalid_options_are_errors(args, message):
    assert message in error_of("fit", *args)
    assert not Path("runs").exists()


BAD_TOML = {
    "syntax": ("draws = 5\ntune =\n", "a.toml is not valid TOML: Invalid value (at line 2, column 7)"),
    "unknown": ("drawz = 5\n", "a.toml: unknown option drawz; expected one of files, column, "),
    "kind": ('tune = "5"\n', "a.toml: tune must be a whole number, got '5'"),
    "truth": ("tune = true\n", "a.toml: tune must be a whole number, got True"),
    "list": ('column = "current"\n', "a.toml: column must be a list of strings, got 'current'"),
    "range": ("draws = 0\n", "expected a positive number of draws or auto, got 0"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BAD_TOML.values(), ids=BAD_TOML)
def test_an_invalid_toml_file_is_an_error(text, message):
    Path("a.toml").write_text(text)
    assert message in error_of("fit", "trace.csv", "--config", "a.toml")


def test_a_missing_toml_file_is_an_error():
    assert error_of("fit", "--config", "no.toml") == "Error: no.toml cannot be read: No such file or directory"


@pytest.mark.parametrize("command", [("resume",), ("report",), ("info",), ("predict", "trace.csv")])
def test_a_folder_that_is_not_a_run_is_an_error(command, folder, monkeypatch):
    monkeypatch.setattr("ihmm.cli.outputs.can_report", lambda: True)
    name, *files = command
    assert "there is no folder" in error_of(name, "nowhere", *files)
    (folder / "foreign").mkdir()
    assert "is not a run" in error_of(name, "foreign", *files)


def test_an_existing_folder_is_not_overwritten():
    fit("--out", "x")
    message = error_of("fit", "trace.csv", "--column", "current", "--out", "x")
    assert message == "Error: x already exists; continue it with 'ihmm resume x' or choose another --out"


def test_resume_cannot_remove_draws():
    fit("--out", "x")
    assert "cannot be cut to 5" in error_of("resume", "x", "--draws", "5")


def test_a_missing_report_package_is_an_error_before_sampling(monkeypatch):
    monkeypatch.setattr("ihmm.cli.outputs.can_report", lambda: False)
    assert "pip install 'ihmm[report]'" in error_of("fit", "trace.csv", "--column", "current", "--report")


def test_an_unknown_command_suggests_the_nearest():
    assert error_of("reprot", "x") == "Error: No such command 'reprot'. Did you mean 'report'?"


def test_internal_errors_are_one_line_and_debug_adds_the_traceback(monkeypatch):
    def fail(*_, **__):
        raise ValueError("expected 1\ngot 2")

    monkeypatch.setattr("ihmm.sample", fail)  # first, as it is looked up in the other
    monkeypatch.setattr("ihmm.chain.sample", fail)
    args = ("fit", "trace.csv", "--column", "current", *SHORT)
    result = run(*args, code=1)
    assert (
        result.stderr
        == "Error: ValueError: expected 1 (this is a bug in ihmm; run with --debug for the traceback and report it)\n"
    )
    result = CliRunner().invoke(cli, [*args, "--debug"])
    assert result.exit_code == 1
    assert "Traceback" in result.stderr


# Processes


@pytest.mark.slow
def test_output_and_errors_go_to_different_streams():
    done = ihmm_process("fit", "trace.csv", "--column", "current", *SHORT, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["seed"] == 3
    done = ihmm_process("fit", "trace.csv", "--column", "nothing")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "Error: trace.csv has no column nothing; its columns are time, current\n"


@pytest.mark.slow
def test_fit_works_on_an_ascii_terminal():
    done = ihmm_process(
        "fit", "trace.csv", "--column", "current", *SHORT, env=os.environ | {"PYTHONIOENCODING": "ascii"}
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_closed_pipe_is_not_an_error():
    command = f"{sys.executable} -m ihmm simulate --length 100000 | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("current,state\n", "")


def test_without_click_the_error_says_what_to_install():
    code = "import sys; sys.modules['click'] = None; import ihmm.__main__ as m; m.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "The command line needs click: pip install 'ihmm[cli]'\n"


def test_the_library_does_not_import_click():
    code = "import sys, ihmm; ihmm.sample; ihmm.InfiniteHMM; sys.exit('click' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.slow
def test_an_interrupted_and_resumed_run_equals_an_uninterrupted_one():
    args = (
        "fit",
        "trace.csv",
        "--column",
        "current",
        "--draws",
        "1500",
        "--tune",
        "10",
        "--chains",
        "2",
        "--seed",
        "3",
        "--no-report",
    )
    process = start_on_a_terminal(*args, "--out", "x")
    end = time.monotonic() + 120
    while not Path("x/run.json").exists() and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=120)
    assert process.returncode == 130
    assert message == "Error: interrupted; draws are saved, continue with 'ihmm resume x'\n"
    assert "of 1500 draws" in run("info", "x").stdout
    run("resume", "x", "--no-report")
    run(*args, "--out", "y")
    np.testing.assert_array_equal(ihmm.Posterior.load("x").states, ihmm.Posterior.load("y").states)


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
@pytest.mark.slow
def test_progress_is_shown_on_a_terminal_only():
    import pty

    def stderr_of(*args):
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "ihmm", "fit", "trace.csv", "--column", "current", *SHORT, *args],
            stdout=subprocess.DEVNULL,
            stderr=theirs,
        )
        os.close(theirs)
        output = b""
        try:
            while part := os.read(ours, 4096):
                output += part
        except OSError:  # the process has closed its end
            pass
        os.close(ours)
        assert process.wait() == 0
        return output.decode()

    output = stderr_of()
    assert "300 rows of current; NoisyLevels emission" in output
    assert "chain 1" in output
    assert stderr_of("--quiet") == ""


def test_prose_is_wrapped_on_a_terminal_only(monkeypatch):
    class Terminal(StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("COLUMNS", "40")
    text = "\n  ✓ " + "so many words " * 8 + "\n  → Next: ihmm fit --config runs/x/settings.toml --tune 2000 --out y"
    lines = wrapped(text, Terminal()).splitlines()
    assert lines[0] == ""
    assert all(len(line) <= 40 for line in lines[:-1])
    assert all(line.startswith("    ") for line in lines[2:-1])
    assert lines[-1] == text.splitlines()[-1]
    assert wrapped(text, StringIO()) == text


# Files, devices, names and signals


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    folder = tmp_path_factory.mktemp("template")
    pd.DataFrame({"id": ["=1+1"] * 100 + ["-5"] * 200, "current": RECORDING.y}).to_csv(folder / "ids.csv", index=False)
    run("fit", folder / "ids.csv", "--column", "current", "--id", "id", *SHORT, "--out", folder / "x")
    return folder / "x"


@pytest.fixture
def made(template, folder):
    """A run in the folder x."""
    return Path(shutil.copytree(template, folder / "x"))


def test_ids_do_not_become_formulas_of_a_spreadsheet(made):
    assert pd.read_csv("x/segmentation.csv")["sequence"].unique().tolist() == ["'=1+1", "-5"]


@pytest.mark.parametrize("name", ["settings.toml", "provenance.json"])
@pytest.mark.parametrize("change", ["edit", "cut"])
def test_a_changed_or_cut_file_of_a_run_is_named(made, name, change):
    text = (made / name).read_text()
    (made / name).write_text(text.replace("current", "currant") if change == "edit" else text[: len(text) // 2])
    assert f"x/{name}" in error_of("predict", "x", "trace.csv", "--id", "time")
    assert f"x/{name}" in error_of("resume", "x", "--draws", "30")
    if name == "provenance.json":
        assert f"x/{name}" in error_of("info", "x")


def test_files_without_a_digest_are_read_as_before(made):
    record = json.loads((made / "provenance.json").read_text())
    record.pop("sha256")
    (made / "provenance.json").write_text(json.dumps(record))
    lines = (made / "settings.toml").read_text().splitlines(keepends=True)
    (made / "settings.toml").write_text("".join(line for line in lines if "SHA-256" not in line))
    run("info", "x")
    run("predict", "x", "trace.csv", "--id", "time", "--out", "states.csv")


@pytest.mark.parametrize("name", ["settings.toml", "provenance.json", "summary.json", "states.csv", "segmentation.csv"])
def test_a_disk_that_fills_up_leaves_the_files_of_before(made, monkeypatch, name):
    before = {path.name: path.read_bytes() for path in made.iterdir() if path.is_file()}
    replace = Path.replace

    def full(self, target):
        if Path(target).name == name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", full)
    assert "No space left on device" in run("resume", "x", "--draws", "21", "--no-report", code=2).stderr
    monkeypatch.undo()
    assert (made / name).read_bytes() == before[name]
    assert not list(made.glob(f".{name}*"))


def test_a_read_only_run_can_be_inspected(made, monkeypatch):
    opened = Path.open

    def read_only(self, mode="r", *arguments, **settings):
        if set(mode) & set("wax+"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))
        return opened(self, mode, *arguments, **settings)

    monkeypatch.setattr(Path, "open", read_only)
    assert "finished" in run("info", "x").stdout
    assert "lock: Permission denied" in error_of("resume", "x", "--draws", "30")


def test_results_that_cannot_be_written_are_errors_of_one_line(made, folder):
    assert "Is a directory" in error_of("predict", "x", "trace.csv", "--id", "time", "--out", folder)
    assert "Is a directory" in error_of("simulate", "--out", folder)
    if Path("/dev/full").exists():
        assert "No space left" in error_of("simulate", "--length", "9", "--out", "/dev/full")


def test_pipes_are_refused_as_input():
    assert "standard input is not read" in error_of("fit", "-")
    os.mkfifo("pipe")
    assert "pipe is a pipe or device" in error_of("fit", "pipe")


@pytest.mark.parametrize("name", ["a\x7fb", "a\nb", "a\tb", "é\u202eb", "'\"\\"])
def test_odd_names_of_columns_and_files(name):
    frame = pd.DataFrame({name: RECORDING.y, "y": -RECORDING.y})
    frame.to_csv(f"{name}.csv", index=False)
    run("fit", f"{name}.csv", "--column", name.strip(), *SHORT, "--draws", "2", "--tune", "0")
    (made,) = Path("runs").iterdir()
    assert made.name.isprintable()
    run("fit", "--config", made / "settings.toml", "--out", "again", "--no-report")
    assert tomllib.loads((made / "settings.toml").read_text())["column"] == [name.strip()]


def test_names_that_are_not_text_are_refused():
    name = os.fsdecode(b"caf\xe9.csv")
    try:
        Path(name).write_text("x\n1\n2\n")
    except OSError:
        pytest.skip("the file system only has names in UTF-8")
    assert "is not UTF-8 text; rename it" in error_of("fit", name)
    assert "is not UTF-8 text; rename it" in error_of("fit", "trace.csv", "--column", "current", "--out", f"new {name}")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_end_saves_the_draws(number):
    command = "fit trace.csv --column current --draws 100000 --seed 1 --chains 1 --out x"
    with start_on_a_terminal(*command.split()) as process:
        while not list(Path("x").glob("chain-0/*.chunk")) and process.poll() is None:
            time.sleep(0.1)
        process.send_signal(number)
        assert "continue with 'ihmm resume x'" in process.communicate(timeout=120)[1]
        assert process.returncode == 128 + number


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_under_the_output_is_an_error_of_one_line():
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "ihmm", "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "Error: the output cannot be written: No space left on device\n"


def test_predict_does_not_know_the_baseline_of_other_data():
    path = np.repeat(np.arange(36) % 2, 25)
    y = 3.0 * path + np.linspace(0, 6, 900) + 0.4 * np.random.default_rng(0).standard_normal(900)
    pd.DataFrame({"y": y}).to_csv("drift.csv", index=False)
    run("fit", "drift.csv", *SHORT, "--out", "x")
    values = np.ravel(ihmm.Posterior.load("x").data.values)
    assert np.std(values) < np.std(y)
    predicted = pd.read_csv(StringIO(run("predict", "x", "drift.csv").stdout))
    assert np.mean(predicted["state"] == pd.read_csv("x/segmentation.csv")["state"]) > 0.99
    pd.DataFrame({"y": y + 1.0}).to_csv("other.csv", index=False)
    assert "slow baseline" in error_of("predict", "x", "other.csv")
