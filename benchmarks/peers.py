"""Comparison of ihmm with other libraries: each in its own virtual environment, on the same data, in the same run.

    make peers                                     or    python benchmarks/peers.py [--quick] [--limit PROGRAM]

Environments are kept in build/peers, with the reason if a library could not be installed; delete the folder to try
again. Results are written to runs/peers/results.json, and from there to docs/explanation/benchmarks.md.

Only the standard library is imported before everything has been measured: the peak memory of a new process includes
that of its parent.
"""

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
RUNNERS = ROOT / "benchmarks" / "runners"
DATA = ("four_state", "ten_state", "sequences", "symbols")
SEEDS = 3
ONCE = 40.0  # seconds: a library that takes longer on a data set is run with one seed only
LIMIT, INSTALLATION = 600.0, 900.0  # seconds after which a run or an installation is stopped


class Peer(NamedTuple):
    requirements: tuple[str, ...]  # arguments of pip install
    begin: str  # the import statement of a user's program
    data: tuple[str, ...] = ()  # data sets it is run on; empty if it has no runner because it cannot be installed


PEERS = {
    "ihmm": Peer(("--editable", str(ROOT)), "from ihmm import InfiniteHMM", DATA),
    "hmmlearn": Peer(("hmmlearn",), "from hmmlearn.hmm import GaussianHMM", DATA),
    "dynamax": Peer(("dynamax", "scikit-learn"), "from dynamax.hidden_markov_model import GaussianHMM", DATA),
    "jax-moseq": Peer(("jax-moseq",), "from jax_moseq.models import arhmm", ("four_state", "ten_state", "sequences")),
    "particles": Peer(("particles",), "from particles import hmm, mcmc", ("four_state", "ten_state")),
    "bayesian-hmm": Peer(("bayesian-hmm",), "from bayesian_hmm import HDPHMM", ("symbols",)),
    "pyhsmm": Peer(("pyhsmm",), "import pyhsmm"),
    "ssm": Peer(("ssm",), "import ssm"),
    "bnpy": Peer(("bnpy",), "import bnpy"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one seed and one data set, as a smoke test")
    parser.add_argument("--only", nargs="+", choices=PEERS, default=PEERS, metavar="NAME", help="libraries to run")
    parser.add_argument("--limit", type=Path, help="the C++ program of benchmarks/bench.py")
    options = parser.parse_args()
    out = ROOT / "runs" / ("peers-quick" if options.quick else "peers")
    data, seeds = (("sequences",), 1) if options.quick else (DATA, SEEDS)
    peers = {name: PEERS[name] for name in PEERS if name in options.only}

    file = out / "results.json"
    results = compare(peers, data, seeds, ROOT / "build" / "peers", out)
    save(results, file)  # keep the slow part even if the rest fails
    results["outputs"] = {
        "bench": printed("bench.py", *(["--limit", str(options.limit)] if options.limit else [])),
        "scale": printed("scale.py", *(["--steps", "100000"] if options.quick else [])),
    }
    save(results, file)

    import peers_page  # only now, see above

    whole = not options.quick and peers == PEERS
    page = ROOT / "docs" / "explanation" / "benchmarks.md" if whole else out / "benchmarks.md"
    peers_page.write(file, page)
    print(f"Results: {file}. Page: {page}")


def compare(peers: dict[str, Peer], data: Sequence[str], seeds: int, environments: Path, out: Path) -> dict[str, Any]:
    """All measurements of all libraries, in the form of the JSON file."""
    shutil.rmtree(out, ignore_errors=True)
    subprocess.run([sys.executable, RUNNERS / "data.py", out], check=True)
    facts = {name: arrive(name, peer, environments / name) for name, peer in peers.items()}
    present = {name: peer for name, peer in peers.items() if "failed" not in facts[name]}
    if "ihmm" in present:  # compile the kernels now, so that no timed run includes it
        say("ihmm: first use")
        facts["ihmm"]["first_use"] = first_use("ihmm", environments / "ihmm", data[0], out)
        for kind in data:
            fit("ihmm", environments / "ihmm", kind, 0, out)
    runs = []
    for kind in data:
        waiting = [name for name, peer in present.items() if kind in peer.data]
        for seed in range(seeds):
            for name in list(waiting):
                say(f"{name}: {kind}, seed {seed}")
                asked = {"peer": name, "data": kind, "seed": seed, "load": os.getloadavg()[0]}
                run = asked | fit(name, environments / name, kind, seed, out)
                runs.append(run)
                if run["wall"] > ONCE:
                    waiting.remove(name)
    machine = f"Python {platform.python_version()} on {platform.system()}, {platform.machine()}, {os.cpu_count()} cores"
    results = {"machine": machine, "cores": os.cpu_count(), "peers": facts, "runs": runs}
    truth = json.loads((out / "truth.json").read_text("utf-8"))
    return results | {"data": {kind: truth[kind] for kind in data}}


def save(results: dict[str, Any], file: Path) -> None:
    file.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", "utf-8")


def say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {what}", flush=True)


# Environments


def arrive(name: str, peer: Peer, folder: Path) -> dict[str, Any]:
    """Install a library and time its import."""
    say(f"{name}: environment and import")
    outcome = install(peer, folder)
    return outcome if "failed" in outcome else outcome | import_time(folder, peer.begin)


def install(peer: Peer, folder: Path) -> dict[str, Any]:
    """Versions of the installed packages, or the reason why the installation failed. Both are stored in the folder."""
    memory = folder / "outcome.json"
    if not memory.exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [python(folder), "-m", "pip", "--disable-pip-version-check"]
        done = measure([*pip, "install", "--quiet", *peer.requirements], INSTALLATION)
        outcome: dict[str, Any] = {"seconds_to_install": done["wall"]}
        if done["failed"]:
            outcome["failed"] = f"does not install: {done['failed']}"
        memory.write_text(json.dumps(outcome), "utf-8")
    outcome = json.loads(memory.read_text("utf-8"))
    if "failed" not in outcome:
        frozen = subprocess.run([python(folder), "-c", VERSIONS], check=True, capture_output=True, text=True).stdout
        outcome["versions"] = json.loads(frozen)
    return outcome


VERSIONS = """
import importlib.metadata as m, json
print(json.dumps({d.metadata["Name"].lower().replace("_", "-"): d.version for d in m.distributions()}))
"""


def python(folder: Path) -> str:
    return str(folder / "bin" / "python")


def import_time(folder: Path, statement: str, repeats: int = 3) -> dict[str, Any]:
    """Median seconds of the import in a new interpreter, minus the start of the interpreter; files are cached."""

    def seconds(code: str) -> float:
        return statistics.median(measure([python(folder), "-c", code], LIMIT)["wall"] for _ in range(repeats))

    first = measure([python(folder), "-c", statement], LIMIT)
    if first["failed"]:
        return {"failed": f"does not import: {first['failed']}"}
    return {"import": statement, "import_seconds": seconds(statement) - seconds("pass")}


# Runs


def fit(name: str, folder: Path, kind: str, seed: int, out: Path, **environment: str) -> dict[str, Any]:
    """The results of the runner and the cost of its process."""
    runner, result = RUNNERS / f"fit_{name.replace('-', '_')}.py", out / "result.json"
    result.unlink(missing_ok=True)
    command = [python(folder), str(runner), str(out / f"{kind}.npz"), str(seed), str(result)]
    done = measure(command, LIMIT, **environment)
    return done if done["failed"] else done | json.loads(result.read_text("utf-8"))


def first_use(name: str, folder: Path, kind: str, out: Path) -> float | None:
    """Seconds until the first sweep after an installation, including the compilation of the kernels."""
    with tempfile.TemporaryDirectory() as empty:
        return fit(name, folder, kind, 0, out, NUMBA_CACHE_DIR=empty).get("times", [None])[0]


def measure(command: list[str], limit: float, **environment: str) -> dict[str, Any]:
    """Wall-clock and processor seconds, peak memory in MB, and the reason if it failed."""
    with tempfile.TemporaryFile("w+") as output:
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=output, env=clean_environment() | environment)
        timer = threading.Timer(limit, process.kill)
        timer.daemon = True
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        stopped = not timer.is_alive()
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    unit = 2**20 if sys.platform == "darwin" else 2**10
    failed = f"stopped after {limit:.0f} s" if stopped else reason(text) if process.returncode else None
    return {"wall": wall, "cpu": usage.ru_utime + usage.ru_stime, "peak_mb": usage.ru_maxrss / unit, "failed": failed}


def clean_environment() -> dict[str, str]:
    """Without the PYTHON variables of this process: each environment has its own."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def reason(output: str) -> str:
    """The last line that names an error, or else the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    return (errors or lines or ["it said nothing"])[-1]


def printed(script: str, *arguments: str) -> str:
    say(script)
    command = [sys.executable, str(ROOT / "benchmarks" / script), *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()
