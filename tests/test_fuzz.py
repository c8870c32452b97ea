"""Random input of every kind, with one rule: a result, or one of our sentences. `make fuzz` tries many more."""

import contextlib
import dataclasses
import itertools
import json
import shutil
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ihmm
from ihmm import _checks, durations, moves, tables
from ihmm.cli import cli
from ihmm.store import archive
from outcomes import (
    EXAMPLES,
    Refused,
    examples,
    limited_and_counted,
    number,
    report,
    require_sentence,
    result_or_sentence,
)


@pytest.fixture(autouse=True)
def limits(request):
    with limited_and_counted(request.node.name):
        yield


@pytest.fixture(autouse=True, scope="module")
def totals():
    yield
    if EXAMPLES:
        report()


# What an input reaches

SETTINGS_, SERIES_, SAMPLING, PREDICTIONS = "settings", "series at the door", "sampling", "predictions"
FILES, COMMANDS, RUNS = "files", "command line", "run folders"

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
        ihmm.NoisyLevels(),
        ihmm.NoisyLevels(1, filtered=True),
        ihmm.NoisyLevels(scale="own", tails="student-t", n_features=2),
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
DURATIONS = st.sampled_from(
    [None, None, None, durations.Geometric(), durations.NegativeBinomial(minimum=2), durations.Poisson()]
)
QUICK = {"draws": 2, "tune": 1, "chains": 1, "progress": False}


@examples(40, share=0.002)
@given(y=SERIES, emission=EMISSIONS, prior=PRIORS, sampler=SAMPLERS, duration=DURATIONS, seed=st.integers(0, 3))
def test_any_series_model_and_sampler(y, emission, prior, sampler, duration, seed):
    def call():
        model = ihmm.Model(emission, prior, duration)
        posterior = ihmm.sample(model, y, sampler=sampler, seed=seed, init=3, **QUICK)
        assert np.isfinite(posterior.traces["log_joint"]).all()
        assert not np.isnan(posterior.log_likelihood(y)).any()
        return posterior

    result_or_sentence(call, SAMPLING)


@examples(60, share=0.01)
@given(y=SERIES, emission=EMISSIONS)
def test_any_series_at_the_door(y, emission):
    def call():
        data = ihmm.Model(emission).observe(y)
        assert data.y.flags.c_contiguous
        assert data.offsets[-1] == len(data.y)
        return data

    result_or_sentence(call, SERIES_)


DOOR = (*range(-1, 4), 7.5, -2.5, np.nan, np.inf, 1e-320, 1e200, 2.0**53, 1e308)
SHAPES = ((), (0,), (1,), (2,), (3,), (9,), (14,), (0, 2), (5, 1), (6, 2), (1, 3), (4, 3), (3, 0), (2, 2, 2))


def test_many_series_at_the_door():
    rng = np.random.default_rng(None if EXAMPLES else 0)
    kinds, emissions = (*CONTAINERS, *["array"] * 10), EMISSIONS.elements
    for _ in range(number(150, share=0.3)):
        shape, emission = SHAPES[rng.integers(len(SHAPES))], emissions[rng.integers(len(emissions))]
        values = rng.choice(DOOR[: rng.integers(2, len(DOOR))], shape)
        with warnings.catch_warnings(action="ignore"), contextlib.suppress(TypeError, ValueError):
            values = values.astype(DTYPES[rng.integers(len(DTYPES))]) if rng.random() < 0.5 else values
        y = container(np.asarray(values), kinds[rng.integers(len(kinds))])
        given = lambda e=emission, y=y: (e, y)  # noqa: E731
        result_or_sentence(lambda e=emission, y=y: ihmm.Model(e).observe(y), SERIES_, given)


USUAL, UNUSUAL = (0.1, 1.0, 5.0, 30.0), (1e-300, 1e-8, 1e-3, 1e3, 1e12, 1e300)
FACTORS = (1.0, 1.0, 1.0, 1e-170, 1e-12, 1e12, 1e150)
WHOLE = (0.0, 1.0, 2.0)


def test_many_fits_and_predictions():
    """Series that a model accepts, in any container and on any scale: sampling, and everything done with draws."""
    rng = np.random.default_rng(None if EXAMPLES else 0)
    for _ in range(number(30, share=0.06)):
        emission, prior, duration = any_emission(rng), any_prior(rng), DURATIONS.elements[rng.integers(6)]
        model = result_or_sentence(lambda e=emission, p=prior, d=duration: ihmm.Model(e, p, d), SETTINGS_)
        if model is None:
            continue
        sampler, seed = SAMPLERS.elements[rng.integers(7)], int(rng.integers(4))
        y, other = any_series(rng, emission), any_series(rng, emission)
        given = lambda m=model, y=y, s=sampler, i=seed: (m, y, s, i)  # noqa: E731
        if result_or_sentence(lambda m=model, y=y: m.observe(y), SERIES_, given) is None:
            continue
        few = QUICK | {"draws": int(rng.integers(1, 4)), "tune": int(rng.integers(2)), "init": int(rng.integers(1, 4))}
        fit = lambda m=model, y=y, s=sampler, i=seed, few=few: ihmm.sample(m, y, sampler=s, seed=i, **few)  # noqa: E731
        posterior = result_or_sentence(fit, SAMPLING, given)
        if posterior is None:
            continue
        assert np.isfinite(posterior.traces["log_joint"]).all(), given()
        for use in rng.choice(list(USES), 2, replace=False):
            result_or_sentence(lambda p=posterior, o=other, u=use: USES[u](p, o), PREDICTIONS, given)


def any_emission(rng):
    return EMISSIONS.elements[rng.integers(len(EMISSIONS.elements))]


def any_prior(rng):
    """Mostly usual hyperparameters, which do not end in a refusal."""

    def quantity():
        values = USUAL if rng.random() < 0.95 else UNUSUAL
        first, second = (float(x) for x in rng.choice(values, 2))
        return ihmm.GammaPrior(first, second) if rng.random() < 0.7 else first

    if rng.random() < 0.2:
        return ihmm.FinitePrior(int(rng.integers(2, 5)), quantity(), quantity())
    return ihmm.HDPPrior(quantity(), quantity(), (0.0, 0.0, 0.5, 1 - 1e-12, ihmm.BetaPrior())[rng.integers(5)])


def any_series(rng, emission):
    """A series simulated from an emission, or small whole numbers; parts may be missing, constant or far away."""
    length = int(rng.integers(2, 12))
    (y,), _ = ihmm.simulate(ihmm.Model(emission, ihmm.FinitePrior(2), LASTING), length, rng)
    if rng.random() < 0.1:
        y = rng.choice(WHOLE, y.shape)
    if y.dtype.kind == "f" and rng.random() < 0.3:
        y = y * FACTORS[rng.integers(len(FACTORS))]
    if rng.random() < 0.3:
        y = y.astype(np.float64)
        y[rng.random(y.shape) < 0.3] = np.nan
    if rng.random() < 0.1:
        y[:] = y[0]
    return container(y, KINDS[rng.integers(len(KINDS))])


LASTING = durations.Geometric(minimum=1)
KINDS = (*["array"] * 4, "Fortran", "strided", "masked", "list", "tuple", "series", "pandas", "nullable", "polars")


def saved_and_loaded(posterior, _):
    with tempfile.TemporaryDirectory() as folder:
        posterior.save(Path(folder, "saved"))
        loaded = ihmm.Posterior.load(Path(folder, "saved"))
    np.testing.assert_array_equal(loaded.states, posterior.states)


def not_nan(values):
    assert not np.isnan(values).any()


def finite(values):
    assert np.isfinite(values).all()


USES = {
    "log_likelihood": lambda p, y: not_nan(p.log_likelihood(y)),
    "smooth": lambda p, y: finite(p.smooth(y)),
    "filter": lambda p, y: finite(p.filter(y)),
    "decode": lambda p, y: p.decode(y),
    "forecast": lambda p, _: p.forecast(2),
    "forecast of another": lambda p, y: p.forecast(1, y),
    "impute": lambda p, _: p.impute(),
    "summary": lambda p, _: repr(p.summary()),
    "levels": lambda p, _: p.levels(),
    "thin": lambda p, _: p.thin(2),
    "co_assignment": lambda p, _: finite(p.co_assignment()),
    "save": saved_and_loaded,
}


@examples(25, share=0.001)
@given(X=SERIES, emission=st.sampled_from(NAMES), other=SERIES)
def test_any_series_in_the_estimator(X, emission, other):
    estimator = ihmm.InfiniteHMM(emission, random_state=0, draws=2, tune=1, chains=1)
    if result_or_sentence(lambda: estimator.fit(X), SAMPLING) is not None:
        assert np.isfinite(estimator.predict_proba(X)).all()
        result_or_sentence(lambda: estimator.score(other), PREDICTIONS)


# Settings of every kind

CLASSES = (
    *(ihmm.Normal, ihmm.NormalMean, ihmm.Categorical, ihmm.Poisson, ihmm.MultivariateNormal, ihmm.Bernoulli),
    *(ihmm.Multinomial, ihmm.Autoregressive, ihmm.StudentT, ihmm.VonMises, ihmm.DPMixture, ihmm.NoisyLevels),
    *(ihmm.HDPPrior, ihmm.FinitePrior, ihmm.GammaPrior, ihmm.BetaPrior, ihmm.Model),
    *(ihmm.ParticleGibbs, ihmm.Beam, ihmm.DirectAssignment, ihmm.Blocked),
    *(durations.Geometric, durations.NegativeBinomial, durations.Poisson, moves.SplitMerge, moves.GreedySplitMerge),
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-3, 10**20), st.floats(), st.text(max_size=3))
SETTINGS = st.one_of(
    *(SCALARS, POSITIVE, st.integers(1, 4), QUANTITIES, EMISSIONS, st.complex_numbers()),
    st.lists(st.one_of(POSITIVE, SCALARS), max_size=3),
    hnp.arrays(np.float64, hnp.array_shapes(max_dims=3, max_side=3)),
    st.sampled_from([np.float32(2.5), np.int8(3), np.bool_(True), ihmm.Normal, "full", "diagonal", "student-t", "own"]),
)


@st.composite
def constructions(draw):
    """A class and some of its arguments."""
    chosen = draw(st.sampled_from(CLASSES))
    names = [field.name for field in dataclasses.fields(chosen) if field.init]
    return chosen, draw(st.dictionaries(st.sampled_from(names), SETTINGS, max_size=3)) if names else {}


@examples(80, share=0.01)
@given(constructions())
def test_any_settings_of_any_class(construction):
    chosen, arguments = construction

    def call():
        made = chosen(**dict.fromkeys(required(chosen), 1) | arguments)
        assert repr(made)
        return made

    result_or_sentence(call, SETTINGS_)


ODD = (
    *(None, True, False, 0, -1, 1, 2, 3, 5.0, 0.5, 10**20, 10**400, -0.0, np.nan, np.inf, 1e-300, 1e300, 1j, "", "a"),
    *("full", "diagonal", "shared", "own", "student-t", "normal", "prior", "multinomial", b"a", [], [1.0], [1, 2]),
    *([[1, 2], [2, 9]], [[1], [1, 2]], ["a"], (1.0, 2.0), {}, {"a": 1}, {1}, [None], [np.inf], np.zeros(2), np.ones(2)),
    *(np.eye(2), -np.eye(2), np.zeros(0), np.zeros((2, 2, 2)), np.array(1.0), np.array("a"), np.array([1.0, np.nan])),
    *(np.float32(2.5), np.int8(3), np.bool_(True), np.datetime64("2020"), np.ma.masked, range(3), object(), len),
    *(ihmm.Normal, ihmm.Normal(), ihmm.NoisyLevels(1), ihmm.GammaPrior(), ihmm.BetaPrior(), ihmm.HDPPrior()),
)


def test_many_settings():
    rng = np.random.default_rng(None if EXAMPLES else 0)
    for _ in range(number(400, share=0.5)):
        chosen = CLASSES[rng.integers(len(CLASSES))]
        names = [field.name for field in dataclasses.fields(chosen) if field.init]
        some = rng.permutation(names)[: rng.integers(1, 4)]
        arguments = dict.fromkeys(required(chosen), 1) | {str(name): ODD[rng.integers(len(ODD))] for name in some}
        given = lambda c=chosen, a=arguments: (c, a)  # noqa: E731
        result_or_sentence(lambda c=chosen, a=arguments: repr(c(**a)), SETTINGS_, given)


@examples(30, share=0.002)
@given(constructions(), st.integers(0, 2))
def test_whatever_is_accepted_can_be_used(construction, seed):
    """Settings that the constructor lets pass: a fit, or a sentence."""
    chosen, arguments = construction
    made = result_or_sentence(lambda: chosen(**dict.fromkeys(required(chosen), 1) | arguments), SETTINGS_)
    if hasattr(made, "log_density"):
        y = np.array([[0, 1], [1, 0], [0, 0], [1, 1], [0, 1]])
        for series in (y, y[:, 0]):
            result_or_sentence(lambda s=series: ihmm.sample(ihmm.Model(made), s, seed=seed, init=2, **QUICK), SAMPLING)


def required(chosen) -> list[str]:
    return [
        field.name
        for field in dataclasses.fields(chosen)
        if field.init and field.default is field.default_factory is dataclasses.MISSING
    ]


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


SUFFIXES = st.sampled_from(["csv", "npy", "pq", "parquet", "txt", "tsv", "npz", "feather", ""])


@examples(25, share=0.008)
@given(
    content=st.one_of(TABLES, st.binary(max_size=60)),
    suffix=SUFFIXES,
    columns=st.lists(st.sampled_from(["1", "2", "0", "*", "c*", "é"]), max_size=2),
    identity=st.sampled_from([None, "1", "2", "x"]),
    delimiter=st.sampled_from([None, ";", "tab", "space", ",,"]),
)
def test_any_file(content, suffix, columns, identity, delimiter):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"data.{suffix}")
        file.write_bytes(content)
        layout = tables.Layout(delimiter=delimiter)
        result_or_sentence(lambda: tables.read([file], columns, by=identity, layout=layout), FILES)


@examples(15, share=0.002)
@given(content=st.one_of(TABLES, st.binary(max_size=60)), arguments=ARGUMENTS, suffix=SUFFIXES)
def test_any_file_and_arguments_on_the_command_line(content, arguments, suffix):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"data.{suffix}")
        file.write_bytes(content)
        fixed = ("--draws", "2", "--tune", "1", "--chains", "1", "--no-report", "--quiet", "--out", f"{folder}/run")
        result_or_sentence(lambda: invoke(["fit", str(file), "--column", "1", *arguments, *fixed]), COMMANDS)


WORDS = st.one_of(
    st.text(max_size=5).filter(lambda word: "\0" not in word),
    st.sampled_from(
        ["--help", "--json", "--debug", "--out", "--length", "3", "-1", "--seed", "--states", "--causal", "-"]
    ),
    st.sampled_from(["--draws", "--config", "nothing.toml", "/dev/null", ".", "RUN"]),
)


@examples(15, share=0.002)
@given(
    command=st.sampled_from(["resume", "info", "report", "predict", "simulate", "nothing"]),
    words=st.lists(WORDS, max_size=4),
)
def test_any_words_after_a_command(run, command, words):
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        words = [str(run) if word == "RUN" else word for word in words]
        result_or_sentence(lambda: invoke([command, *words]), COMMANDS)


COMMON_OPTIONS = [option for option in OPTIONS if not {"--column", "--id", "--delimiter", "--seed"} & {*option}]
AFTERWARDS = (
    *(["info", "RUN"], ["info", "RUN", "--json"], ["predict", "RUN", "FILE"], ["predict", "RUN", "FILE", "--causal"]),
    *(
        ["resume", "RUN", "--draws", "3", "--quiet", "--no-report"],
        ["predict", "RUN", "FILE", "--out", "RUN/states.csv"],
    ),
)


def test_many_commands():
    """Files that can be fitted, and commands on the runs that this makes."""
    rng = np.random.default_rng(None if EXAMPLES else 0)
    for _ in range(number(2, share=0.004)):
        with tempfile.TemporaryDirectory() as folder:
            file, run = Path(folder, "data.csv"), f"{folder}/run"
            values = rng.integers(0, 3, (int(rng.integers(2, 14)), 2)) * rng.choice([1.0, 0.37, 1e6])
            cells = np.where(rng.random(values.shape) < 0.1 * rng.integers(2), "", values.astype(str))
            file.write_text("a,b\n" + "\n".join(map(",".join, cells)) + "\n")
            options = [word for i in rng.integers(0, len(COMMON_OPTIONS), 2) for word in COMMON_OPTIONS[i]]
            column = ["--column", ("a", "*")[rng.integers(2)]]
            fixed = ("--draws", "2", "--tune", "1", "--chains", "1", "--no-report", "--quiet", "--out", run)
            command = ["fit", str(file), *column, *options, *fixed]
            if result_or_sentence(lambda c=command: invoke(c), COMMANDS, lambda c=command: c) is None:
                continue
            for i in rng.integers(0, len(AFTERWARDS), 2):
                words = [word.replace("RUN", run).replace("FILE", str(file)) for word in AFTERWARDS[i]]
                result_or_sentence(lambda w=words: invoke(w), COMMANDS, lambda w=words: w)


def invoke(arguments: list[str]) -> str:
    """The output of a command."""
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code in (0, 2), (arguments, done.output)
    assert "Traceback" not in done.output
    if done.exit_code == 0:
        return done.output
    cause = getattr(done.exception.__context__, "__cause__", None)  # of what the command line reports
    if isinstance(cause, (ValueError, TypeError)):
        require_sentence(cause)
    raise Refused(done.output)


# Run folders


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("fuzz") / "run"
    model = ihmm.Model(ihmm.Normal(), ihmm.HDPPrior(stickiness=ihmm.BetaPrior()))
    ihmm.sample(model, np.linspace(0, 1, 20), seed=1, init=2, store=folder, **QUICK)
    return folder


VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
)
FIELDS = (
    *("format", "format_version", "id", "resumable", "sizes", "versions", "data", "model", "sampler", "moves", "seed"),
    *("draws", "tune", "thin", "chains", "init", "save_warmup"),
)


@examples(25, share=0.006)
@given(changes=st.dictionaries(st.sampled_from(FIELDS), VALUES, min_size=1, max_size=2))
def test_any_settings_in_a_run(run, changes):
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(shutil.copytree(run, Path(parent, "run")))
        written = json.loads((folder / "run.json").read_text()) | changes
        written.pop("sha256")
        (folder / "run.json").write_text(json.dumps(written))
        result_or_sentence(lambda: ihmm.Posterior.load(folder), RUNS)


@examples(25, share=0.005)
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
        result_or_sentence(lambda: ihmm.Posterior.load(folder), RUNS)
        result_or_sentence(lambda: ihmm.resume(folder, progress=False), RUNS)


CHANGES = {
    "shift": lambda rng, array: array + array.dtype.type(rng.choice([1, 7, 100])),
    "cut": lambda rng, array: array[:-1],
    "twice": lambda rng, array: np.concatenate([array, array]),
    "zero": lambda rng, array: np.zeros_like(array),
    "largest": lambda rng, array: np.full_like(array, largest(array.dtype)),
    "not a number": lambda rng, array: np.full(array.shape, np.nan),
    "one value": lambda rng, array: np.where(
        np.arange(array.size).reshape(array.shape) == 0, largest(array.dtype), array
    ),
    "another type": lambda rng, array: array.astype(rng.choice(["<f4", "<i4", "<u1", "<f8", "<i8"])),
    "another shape": lambda rng, array: array.reshape(-1, 1),
    "shuffled": lambda rng, array: rng.permuted(array),
    "nothing": lambda rng, array: array[:0],
}


def largest(dtype):
    return np.iinfo(dtype).max if dtype.kind in "iu" else True if dtype.kind == "b" else np.finfo(dtype).max


def test_many_forged_runs(run):
    """Arrays of a run that were changed together with their digests: nothing that compiled code may not read."""
    rng = np.random.default_rng(None if EXAMPLES else 0)
    files = {name: archive.read_archive(run / name, name) for name in ("data.chunk", "chain-0/0.chunk")}
    settings = json.loads((run / "run.json").read_text()) | {"data": None}
    settings.pop("sha256")
    for _ in range(number(12, share=0.015)):
        name = ("data.chunk", "chain-0/0.chunk", "chain-0/0.chunk")[rng.integers(3)]
        array, change = str(rng.choice(list(files[name]))), str(rng.choice(list(CHANGES)))
        with warnings.catch_warnings(action="ignore"):
            try:
                forged = CHANGES[change](rng, files[name][array])
            except (ValueError, TypeError):  # there is no such change of this array
                continue
        with tempfile.TemporaryDirectory() as parent:
            folder = Path(shutil.copytree(run, Path(parent, "run")))
            (folder / "run.json").write_text(json.dumps(settings))
            archive.write_archive(folder / name, files[name] | {array: np.ascontiguousarray(forged)})
            given = lambda n=name, a=array, c=change: (n, a, c)  # noqa: E731
            posterior = result_or_sentence(lambda f=folder: ihmm.Posterior.load(f), RUNS, given)
            if posterior is not None:
                result_or_sentence(lambda p=posterior: p.log_likelihood([0.5, 0.7]), RUNS, given)
            result_or_sentence(lambda f=folder: ihmm.resume(f, draws=3, progress=False), RUNS, given)
