"""The comparison with other libraries, with libraries made up for the purpose: what fails is reported."""

import json
import sys

import peers
import peers_page
import pytest
from runners.common import Trace, choose_by_bic

RUNNER = """
import json, sys
data, seed, result = sys.argv[1:]
{line}
figures = {{"n_states": 2, "seconds": 3.0 + int(seed), "cpu_seconds": 4.0, "held_out": [-6.0, -8.0]}}
json.dump(figures | {{"sizes": [3] + [2] * 19, "times": [0.5 * i for i in range(1, 21)]}}, open(result, "w"))
"""


TRUTH = {"n_states": 2, "train": [1, 20], "held_out": [2, 20], "log_likelihood": [-5.0, -5.0]}
MAKE_DATA = f"""
import json, pathlib, sys
out = pathlib.Path(sys.argv[1])
out.mkdir()
(out / "truth.json").write_text(json.dumps({{"four_state": {TRUTH}}}))
"""


class Workshop:
    """A folder with runners and environments, all of which are this one."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "data.py").write_text(MAKE_DATA)

    def library(self, name, line="", **outcome):
        """Installed already, or found not to be; its runner does what the line says first."""
        (self.folder / f"fit_{name}.py").write_text(RUNNER.format(line=line))
        interpreter(self.folder / "environments" / name)
        (self.folder / "environments" / name / "outcome.json").write_text(json.dumps(outcome))
        return peers.Peer((name,), "import json", ("four_state",))

    def compare(self, libraries, seeds=1):
        return peers.compare(libraries, ["four_state"], seeds, self.folder / "environments", self.folder / "out")


def interpreter(environment):
    file = environment / "bin" / "python"
    file.parent.mkdir(parents=True)
    file.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    file.chmod(0o755)


@pytest.fixture
def workshop(tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "RUNNERS", tmp_path)
    monkeypatch.setattr(peers, "VERSIONS", """print('{"ihmm": "1.0", "rival": "2.0"}')""")
    return Workshop(tmp_path)


@pytest.fixture
def write(tmp_path):
    def page(results):
        file = tmp_path / "results.json"
        peers.save(results | {"outputs": {"bench": "in T  1.0\n\nin N  0.5\n", "scale": "two threads"}}, file)
        peers_page.write(file, tmp_path / "page.md")
        return (tmp_path / "page.md").read_text("utf-8")

    return page


def row(page, name):
    return next(line for line in page.splitlines() if line.startswith(f"| {name} |"))


def test_the_page_has_figures_of_all_and_their_ratios_to_ours(workshop, write):
    results = workshop.compare(
        {"ihmm": workshop.library("ihmm"), "rival": workshop.library("rival", "seed = 6")}, seeds=2
    )
    assert [(run["peer"], run["seed"]) for run in results["runs"]] == [
        (n, s) for s in (0, 1) for n in ("ihmm", "rival")
    ]
    page = write(results)
    assert "| 2, 2 | 1.00 | 3.50 |" in row(page, "ihmm")
    assert "| 2, 2 | 1.00 (1.00 ×) | 9.00 (2.57 ×) |" in row(page, "rival")
    assert "| 2.00 (1.00 ×) |" in row(page, "rival")  # nats below the truth, on average
    assert "    in T  1.0\n\n    in N  0.5\n" in page


def test_a_library_that_does_not_install_or_import_is_reported_and_not_run(workshop, write):
    absent = workshop.library("absent", failed="does not install: ModuleNotFoundError: No module named 'future'")
    broken = workshop.library("broken")._replace(begin="import no_such_library")
    results = workshop.compare({"ihmm": workshop.library("ihmm"), "absent": absent, "broken": broken})
    assert {run["peer"] for run in results["runs"]} == {"ihmm"}
    page = write(results)
    assert "does not install: ModuleNotFoundError: No module named 'future'" in row(page, "absent")
    assert "does not import: ModuleNotFoundError: No module named 'no_such_library'" in row(page, "broken")


def test_a_run_that_fails_is_reported_beside_those_that_do_not(workshop, write):
    results = workshop.compare(
        {"ihmm": workshop.library("ihmm"), "rival": workshop.library("rival", "raise ValueError('too few')")}
    )
    page = write(results)
    assert "* rival did not run: `ValueError: too few`" in page
    assert row(page, "ihmm")


def test_a_slow_library_has_one_seed(workshop, monkeypatch):
    monkeypatch.setattr(peers, "ONCE", 1.0)
    slow = workshop.library("rival", "import time; time.sleep(1)")
    results = workshop.compare({"ihmm": workshop.library("ihmm"), "rival": slow}, seeds=2)
    assert [run["peer"] for run in results["runs"]] == ["ihmm", "rival", "ihmm"]


def test_what_pip_says_is_remembered(tmp_path, monkeypatch):
    made = []

    def make(command, check):
        made.append(command)
        interpreter(command[-1])

    monkeypatch.setattr(peers.subprocess, "run", make)
    nothing = peers.Peer(("--no-index", "no-such-library-anywhere"), "import json")
    outcomes = [peers.install(nothing, tmp_path / "nothing") for _ in range(2)]
    assert outcomes[0]["failed"].startswith("does not install: ERROR: No matching distribution found")
    assert outcomes[0] == outcomes[1]
    assert len(made) == 1


def test_a_process_is_measured_and_stopped_in_time():
    done = peers.measure([sys.executable, "-c", "x = bytearray(10**8); sum(range(10**6))"], 60)
    assert done["failed"] is None
    assert done["peak_mb"] > 95
    assert done["cpu"] > 0
    stopped = peers.measure([sys.executable, "-c", "import time; time.sleep(60)"], 0.2)
    assert stopped["failed"] == "stopped after 0 s"
    assert stopped["wall"] < 30


def test_the_reason_is_the_last_line_that_names_an_error():
    assert (
        peers.reason("a\n  Cython.Errors.CompileError: x.pyx\nnote: not pip\n") == "Cython.Errors.CompileError: x.pyx"
    )
    assert peers.reason("ERROR: nothing\n\n") == "ERROR: nothing"
    assert peers.reason("") == "it said nothing"


def test_bic_is_tried_until_it_has_not_improved_for_three_sizes():
    tried = []

    def fit(size):
        tried.append(size)
        return {1: 9.0, 2: 5.0, 3: 6.0, 4: 5.5, 5: 4.0}.get(size, 7.0), f"model {size}"

    assert choose_by_bic(fit) == (5, "model 5")
    assert tried == list(range(1, 9))


def test_a_trace_counts_states_that_own_one_step_in_a_hundred():
    trace = Trace()
    trace.add([[0] * 100, [1] * 99 + [2]])
    trace.add([0] * 198 + [1] * 2)
    assert trace.sizes == [2, 2]
    assert trace.unfinished
