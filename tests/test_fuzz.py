"""Random input of every kind, with one rule: a result, or one of our sentences. `make fuzz` tries many more.

IHMM_FUZZ is the number of examples of every test; with it, examples have a limit of time and memory.
"""

import faulthandler
import itertools
import json
import linecache
import os
import shutil
import tempfile
import traceback
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ihmm
from ihmm import _checks
from ihmm.cli import cli

EXAMPLES = int(os.environ.get("IHMM_FUZZ", "0"))
SECONDS, BYTES = 600, 2 << 30  # limits of one example, and of the memory of the process, if there are many
HOME = str(Path(ihmm.__file__).parent)


def examples(few: int):
    return settings(
        max_examples=EXAMPLES or few,
        deadline=None,
        derandomize=not EXAMPLES,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@pytest.fixture(autouse=True)
def limits():
    if not EXAMPLES:
        yield
        return
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (BYTES, before[1]))
    yield
    faulthandler.cancel_dump_traceback_later()
    resource.setrlimit(resource.RLIMIT_DATA, before)


def result_or_sentence(call):
    """The result of a call, or None if it is refused by a `raise` of ihmm or of scikit-learn, with a message."""
    if EXAMPLES:
        faulthandler.dump_traceback_later(SECONDS, exit=True)
    try:
        with warnings.catch_warnings(action="ignore"):
            return call()
    except (ValueError, TypeError) as error:
        require_sentence(error)
        return None


def require_sentence(error: Exception) -> None:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    statement = linecache.getline(frame.filename, frame.lineno or 0).strip()
    ours = frame.filename.startswith(HOME) or f"{os.sep}sklearn{os.sep}" in frame.filename
    assert ours, f"raw error: {error!r}"
    assert statement.startswith("raise"), f"raw error: {error!r} in {statement!r}"
    assert len(str(error)) > 10


# Data, models and samplers

DTYPES = [*"bBhHiIlLqQefdg?", ">f8", ">i4", "c16", "U2", "S2", "M8[s]", "m8[s]", "O"]
NUMBERS = st.one_of(
    st.floats(width=64, allow_nan=True, allow_infinity=True),
    st.sampled_from([0.0, -0.0, 1e-320, 1e-160, 1e150, 1e308, 2.0**53, -1.0, 1.0, 3.0]),
    st.integers(-3, 12).map(float),
)


def container(values: np.ndarray, kind: str):
    """The same values in another container."""
    rows = values.reshape(values.shape[0] if values.ndim else 1, -1) if values.size else np.empty((0, 1))
    names = [f"c{i}" for i in range(rows.shape[1])]
    makers = {
        "array": lambda: values,
        "Fortran": lambda: np.asfortranarray(values),
        "strided": lambda: np.repeat(values, 2, axis=0)[::2] if values.ndim else values,
        "masked": lambda: np.ma.array(values, mask=np.arange(values.size).reshape(values.shape) % 5 == 1),
        "list": values.tolist,
        "tuple": lambda: tuple(values.tolist()) if values.ndim else (values.tolist(),),
        "series": lambda: [values, values],
        "pandas": lambda: pd.DataFrame(rows, columns=names),
        "nullable": lambda: pd.DataFrame(rows, columns=names).convert_dtypes(),
        "polars": lambda: pl.DataFrame({name: rows[:, i].tolist() for i, name in enumerate(names)}, strict=False),
        "zone": lambda: pd.Series(pd.date_range("2024", periods=max(len(rows), 1), tz="UTC")),
        "bytes": values.tobytes,
        "text": lambda: str(values),
        "set": lambda: {1.0, 2.0},
        "none": lambda: None,
    }
    try:
        return makers[kind]()
    except Exception:  # there is no such container of these values
        return values


CONTAINERS = (
    *("array", "Fortran", "strided", "masked", "list", "tuple", "series", "pandas", "nullable", "polars", "zone"),
    *("bytes", "text", "set", "none"),
)
ARRAYS = st.one_of(
    hnp.arrays(np.float64, hnp.array_shapes(min_dims=1, max_dims=2, max_side=14), elements=NUMBERS),
    hnp.arrays(np.int64, st.integers(0, 20), elements=st.integers(-1, 6)),
    st.sampled_from(DTYPES).flatmap(lambda d: hnp.arrays(d, hnp.array_shapes(min_dims=0, max_dims=3, max_side=6))),
)
SERIES = st.builds(container, ARRAYS, st.sampled_from(CONTAINERS))
NAMES = (*_checks.EMISSIONS, "nothing")
EMISSIONS = st.sampled_from(
    [
        ihmm.Normal(),
        ihmm.NormalMean(),
        ihmm.Categorical(3),
        ihmm.Poisson(),
        ihmm.MultivariateNormal(2),
        ihmm.Bernoulli(2),
        ihmm.Multinomial(2, total=5),
        ihmm.Autoregressive(2),
        ihmm.StudentT(),
        ihmm.VonMises(),
        ihmm.DPMixture(ihmm.Normal()),
        ihmm.Independent(x=ihmm.Normal(), y=ihmm.Poisson()),
    ]
)
POSITIVE = st.one_of(st.sampled_from([1e-300, 1e-8, 0.1, 1.0, 30.0, 1e4, 1e12, 1e300]), st.floats(1e-3, 1e3))
QUANTITIES = st.one_of(POSITIVE, st.builds(ihmm.GammaPrior, POSITIVE, POSITIVE))
PRIORS = st.one_of(
    st.builds(ihmm.HDPPrior, QUANTITIES, QUANTITIES, st.sampled_from([0.0, 0.5, 1 - 1e-12, ihmm.BetaPrior(1, 1)])),
    st.builds(ihmm.FinitePrior, st.integers(1, 5), QUANTITIES, QUANTITIES),
)
SAMPLERS = st.sampled_from(
    [
        ihmm.ParticleGibbs(),
        ihmm.ParticleGibbs(3, resampling="multinomial"),
        ihmm.ParticleGibbs(2, "prior"),
        ihmm.ParticleGibbs(block_size=3),
        ihmm.Beam(),
        ihmm.DirectAssignment(),
        ihmm.Blocked(),
    ]
)
QUICK = {"draws": 2, "tune": 1, "chains": 1, "progress": False}


@examples(40)
@given(y=SERIES, emission=EMISSIONS, prior=PRIORS, sampler=SAMPLERS, seed=st.integers(0, 3))
def test_any_series_model_and_sampler(y, emission, prior, sampler, seed):
    def call():
        posterior = ihmm.sample(ihmm.Model(emission, prior), y, sampler=sampler, seed=seed, init=3, **QUICK)
        assert np.isfinite(posterior.traces["log_joint"]).all()
        assert not np.isnan(posterior.log_likelihood(y)).any()
        return posterior

    result_or_sentence(call)


@examples(25)
@given(X=SERIES, emission=st.sampled_from(NAMES), other=SERIES)
def test_any_series_in_the_estimator(X, emission, other):
    estimator = ihmm.InfiniteHMM(emission, random_state=0, draws=2, tune=1, chains=1)
    if result_or_sentence(lambda: estimator.fit(X)) is not None:
        assert np.isfinite(estimator.predict_proba(X)).all()
        result_or_sentence(lambda: estimator.score(other))


# Files and arguments of the command line

ODD_CELLS = st.sampled_from(["", "NA", "=1+1", '"', "é"])
CELLS = st.one_of(st.floats().map(str), st.integers(-2, 9).map(str), st.text(max_size=4), ODD_CELLS)
TABLES = st.lists(st.lists(CELLS, min_size=1, max_size=3), max_size=12).map(
    lambda rows: "\n".join(",".join(row) for row in rows).encode("utf-8", "surrogatepass")
)
OPTIONS = (
    *(("--column", "2"), ("--column", "*"), ("--id", "1"), ("--id", "2"), ("--order", "2"), ("--delimiter", ";")),
    *(("--sampler", "beam"), ("--particles", "2"), ("--particles", "1"), ("--init", "3"), ("--init", "0")),
    *(("--thin", "2"), ("--seed", "-1"), ("--no-sticky",), ("--json",), ("--quiet", "--quiet")),
    *(("--emission", name) for name in NAMES),
)
ARGUMENTS = st.lists(st.sampled_from(OPTIONS), max_size=3).map(lambda options: [*itertools.chain(*options)])


@examples(15)
@given(
    content=st.one_of(TABLES, st.binary(max_size=60)), arguments=ARGUMENTS, suffix=st.sampled_from(["csv", "npy", "pq"])
)
def test_any_file_and_arguments_on_the_command_line(content, arguments, suffix):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"data.{suffix}")
        file.write_bytes(content)
        fixed = ("--draws", "2", "--tune", "1", "--chains", "1", "--no-report", "--quiet", "--out", f"{folder}/run")
        if EXAMPLES:
            faulthandler.dump_traceback_later(SECONDS, exit=True)
        with warnings.catch_warnings(action="ignore"):
            done = CliRunner().invoke(cli, ["fit", str(file), "--column", "1", *arguments, *fixed])
        assert done.exit_code in (0, 2), done.output
        assert "Traceback" not in done.output


# Run folders


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("fuzz") / "run"
    model = ihmm.Model(ihmm.Normal(), ihmm.HDPPrior(stickiness=ihmm.BetaPrior()))
    ihmm.sample(model, np.linspace(0, 1, 20), seed=1, init=2, store=folder, **QUICK)
    return folder


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-3, 10**20), st.floats(), st.text(max_size=3))
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
)
FIELDS = (
    *("format", "format_version", "id", "resumable", "sizes", "versions", "data", "model", "sampler", "moves", "seed"),
    *("draws", "tune", "thin", "chains", "init", "save_warmup"),
)


@examples(25)
@given(changes=st.dictionaries(st.sampled_from(FIELDS), VALUES, min_size=1, max_size=2))
def test_any_settings_in_a_run(run, changes):
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(shutil.copytree(run, Path(parent, "run")))
        written = json.loads((folder / "run.json").read_text()) | changes
        written.pop("sha256")
        (folder / "run.json").write_text(json.dumps(written))
        result_or_sentence(lambda: ihmm.Posterior.load(folder))


@examples(25)
@given(
    name=st.sampled_from(["run.json", "data.chunk", "chain-0/0.chunk"]),
    where=st.floats(0, 1),
    new=st.binary(max_size=3),
)
def test_any_damage_to_a_run(run, name, where, new):
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(shutil.copytree(run, Path(parent, "run")))
        content = (folder / name).read_bytes()
        at = int(where * len(content))
        (folder / name).write_bytes(content[:at] + new + content[at + 1 :])
        result_or_sentence(lambda: ihmm.Posterior.load(folder))
        result_or_sentence(lambda: ihmm.resume(folder, progress=False))
