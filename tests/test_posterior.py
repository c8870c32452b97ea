"""Posteriors: contents, repr, saving and loading, conversion to ArviZ."""

import io
import json
import pickle
import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import ihmm
from ihmm.emissions._parameters import fields
from ihmm.samplers import ParticleGibbs

RNG = np.random.default_rng(3)
REAL = [RNG.normal(np.repeat([0, 3], 10), 0.3), RNG.normal(np.repeat([3, 0], 8), 0.3)]
SYMBOLS = [np.repeat([0, 1, 2], 7), np.repeat([2, 1], 6)]
STICKY = ihmm.HDPPrior(gamma=2.5, stickiness=ihmm.BetaPrior(5, 1))
CASES = {
    "normal": (ihmm.Model(ihmm.Normal(strength=0.3)), REAL),
    "normal mean": (ihmm.Model(ihmm.NormalMean(noise=0.3, scale=2), STICKY), REAL),
    "categorical": (ihmm.Model(ihmm.Categorical(n_symbols=3, concentration=0.5), STICKY), SYMBOLS),
}


def draw_some(model=CASES["normal"][0], y=REAL, **settings) -> ihmm.Posterior:
    settings = {"draws": 6, "tune": 4, "chains": 2, "seed": 1, "init": 3, "save_warmup": True} | settings
    return ihmm.sample(model, y, progress=False, **settings)


@pytest.fixture(scope="module")
def posterior() -> ihmm.Posterior:
    return draw_some()


def interrupted_posterior() -> ihmm.Posterior:
    class Impatient:
        calls = 0

        def resample_states(self, rng, data, model, draw):
            self.calls += 1
            if self.calls == 8:
                raise KeyboardInterrupt
            return ParticleGibbs().resample_states(rng, data, model, draw)

    with pytest.warns(UserWarning, match="chain 0 has 3, chain 1 has 2, chain 2 has 2"):
        return draw_some(sampler=Impatient(), tune=0, chains=3, cores=1)


def assert_same(one: ihmm.Posterior, other: ihmm.Posterior) -> None:
    """Compare everything a posterior holds, bit for bit."""
    assert (one.model, one.seed) == (other.model, other.seed)
    assert one.states.dtype == other.states.dtype
    np.testing.assert_array_equal(one.states, other.states)
    for name in ("y", "offsets", "log_marginal", "missing"):
        field, other_field = np.asarray(getattr(one.data, name)), np.asarray(getattr(other.data, name))
        assert field.dtype == other_field.dtype
        np.testing.assert_array_equal(field, other_field)
    assert (one.data.with_past, one.data.workers) == (other.data.with_past, other.data.workers)
    assert (one.data.conjugate is None) == (other.data.conjugate is None)
    if one.data.conjugate is not None:
        for array, other_array in zip(one.data.conjugate.compiled, other.data.conjugate.compiled, strict=True):
            np.testing.assert_array_equal(array, other_array)
    assert list(one.traces) == list(other.traces)
    for name in one.traces:
        assert one.traces[name].dtype == other.traces[name].dtype
        np.testing.assert_array_equal(one.traces[name], other.traces[name])
    for draws, other_draws in zip(one.draws, other.draws, strict=True):
        assert draws.chain == other_draws.chain
        for draw, other_draw in zip(draws, other_draws, strict=True):
            assert draw.hyper == other_draw.hyper
            assert type(draw.phi) is type(other_draw.phi)
            for array, other_array in zip(arrays_of(draw), arrays_of(other_draw), strict=True):
                np.testing.assert_array_equal(array, other_array)
    assert (one.warmup is None) == (other.warmup is None)
    if one.warmup is not None:
        assert_same(one.warmup, other.warmup)


def arrays_of(draw: ihmm.Draw) -> list[np.ndarray]:
    return [draw.states, *draw.transitions, *draw.phi]


# In memory


def test_arrays_are_chains_by_draws(posterior):
    assert posterior.states.shape == (2, 6, 36)
    assert posterior.lengths.tolist() == [20, 16]
    assert {trace.shape for trace in posterior.traces.values()} == {(2, 6)}
    assert list(posterior.traces)[:7] == [
        "n_states", "log_joint", "gamma", "alpha", "kappa", "concentration", "stickiness",
    ]  # fmt: skip
    assert {"n_scored", "n_born", "update_rate"} < set(posterior.traces)
    assert posterior.n_states is posterior.traces["n_states"]


@pytest.mark.parametrize("case", CASES)
def test_draws_traces_and_states_agree(case):
    posterior = draw_some(*CASES[case])
    for c, draws in enumerate(posterior.draws):
        assert len(draws) == 6
        for d, draw in enumerate(draws):
            trace = {name: values[c, d] for name, values in posterior.traces.items()}
            k = trace["n_states"]
            np.testing.assert_array_equal(draw.states, posterior.states[c, d])
            np.testing.assert_array_equal(np.unique(draw.states), np.arange(k))
            assert [array.shape for array in draw.transitions] == [(k + 1,), (k + 1,), (k, k + 1)]
            np.testing.assert_allclose([array.sum(-1).mean() for array in draw.transitions], 1)
            assert {len(field) for field in fields(draw.phi).values()} == {k}
            for name in ("gamma", "alpha", "kappa", "concentration", "stickiness"):
                assert getattr(draw.hyper, name) == trace[name]


def test_draws_can_be_counted_from_the_end_and_sliced(posterior):
    draws = posterior.draws[1]
    np.testing.assert_array_equal(draws[-1].states, posterior.states[1, -1])
    assert [draw.hyper for draw in draws[1:5:2]] == [draws[1].hyper, draws[3].hyper]
    with pytest.raises(IndexError):
        draws[6]


def test_arithmetic_on_the_states_of_a_draw_does_not_overflow(posterior):
    states = posterior.draws[0][0].states
    assert (states * 1000 + 999).min() >= 999


def test_the_joint_log_likelihood_is_that_of_the_draw(posterior):
    for c, draws in enumerate(posterior.draws):
        for d, draw in enumerate(draws):
            log_joint = posterior.model.emission.log_density_at(posterior.data.y, draw.states, draw.phi).sum()
            _, initial, rows = draw.transitions
            for path in np.split(draw.states, [20]):
                log_joint += np.log(initial[path[0]]) + np.log(rows[path[:-1], path[1:]]).sum()
            np.testing.assert_allclose(posterior.traces["log_joint"][c, d], log_joint)


def test_repr_has_the_size_the_number_of_states_and_the_range_of_the_log_joint(posterior):
    text = repr(posterior)
    log_joint = posterior.traces["log_joint"]
    values, count = np.unique(posterior.n_states, return_counts=True)
    assert "2 chains × 6 draws, T = 36 in 2 sequences" in text
    assert f"n_states   {values[count.argmax()]} ({100 * count.max() / 12:.0f}%)" in text
    assert f"{log_joint.min():.1f} to {log_joint.max():.1f}".replace("-", "−") in text
    assert len(text.splitlines()) <= 4


def test_chains_of_different_lengths_are_truncated_but_lose_no_draw():
    posterior = interrupted_posterior()
    assert posterior.states.shape == (3, 2, 36)
    assert [len(draws) for draws in posterior.draws] == [3, 2, 2]
    assert "chains have 3, 2, 2 draws" in repr(posterior)


def test_a_pickle_holds_the_states_once():
    y = np.random.default_rng(0).normal(size=5000)
    posterior = draw_some(y=y, chains=2, draws=20, tune=0, save_warmup=False, init=1)
    stored = pickle.dumps(posterior)
    assert len(stored) < 1.5 * posterior.states.nbytes + 3 * y.nbytes
    assert_same(pickle.loads(stored), posterior)


# On disk


@pytest.mark.parametrize("case", CASES)
def test_saving_and_loading_gives_the_same_posterior(case, tmp_path):
    posterior = draw_some(*CASES[case], sampler=ParticleGibbs(n_particles=4, proposal="prior"))
    posterior.save(tmp_path / "run")
    loaded = ihmm.Posterior.load(tmp_path / "run")
    assert loaded.sampler == posterior.sampler
    assert_same(loaded, posterior)


@pytest.mark.parametrize(
    ("prior", "sampler"),
    [
        (ihmm.FinitePrior(n_states=5), ihmm.Blocked()),
        (ihmm.FinitePrior(n_states=5, gamma=None, concentration=2.0), ihmm.ParticleGibbs()),
        (ihmm.HDPPrior(), ihmm.Beam()),
        (ihmm.HDPPrior(), ihmm.DirectAssignment()),
    ],
    ids=repr,
)
def test_every_prior_and_every_sampler_can_be_loaded(prior, sampler, tmp_path):
    posterior = draw_some(ihmm.Model(ihmm.Normal(), prior), sampler=sampler)
    posterior.save(tmp_path / "run")
    loaded = ihmm.Posterior.load(tmp_path / "run")
    assert loaded.sampler == sampler
    assert_same(loaded, posterior)


def test_one_series_without_warmup_can_be_loaded(tmp_path):
    posterior = draw_some(y=REAL[0], save_warmup=False, chains=1)
    posterior.save(str(tmp_path / "deep" / "down" / "run"))
    assert_same(ihmm.Posterior.load(str(tmp_path / "deep" / "down" / "run")), posterior)


def test_an_interrupted_run_is_loaded_with_every_draw(tmp_path):
    posterior = interrupted_posterior()
    posterior.save(tmp_path / "run")
    loaded = ihmm.Posterior.load(tmp_path / "run")
    assert [len(draws) for draws in loaded.draws] == [3, 2, 2]
    assert_same(loaded, posterior)


def test_wide_states_can_be_loaded(tmp_path):
    y = np.random.default_rng(0).normal(size=900)
    posterior = draw_some(y=y, init=np.arange(900), draws=1, tune=0, save_warmup=False, chains=1)
    assert posterior.states.dtype == np.uint16
    posterior.save(tmp_path / "run")
    assert_same(ihmm.Posterior.load(tmp_path / "run"), posterior)


def test_a_seed_of_any_size_can_be_loaded(tmp_path):
    posterior = draw_some(seed=2**100)
    posterior.save(tmp_path / "run")
    assert ihmm.Posterior.load(tmp_path / "run").seed == 2**100


def test_saving_again_replaces_the_old_posterior_and_leaves_other_files_alone(tmp_path, posterior):
    draw_some(seed=2, chains=3).save(tmp_path / "run")
    (tmp_path / "run" / "notes.txt").write_text("mine")
    posterior.save(tmp_path / "run")
    assert_same(ihmm.Posterior.load(tmp_path / "run"), posterior)
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"
    assert not (tmp_path / "run" / "chain-2").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_posterior_can_be_saved_to_an_empty_folder(tmp_path, posterior):
    (tmp_path / "run").mkdir()
    posterior.save(tmp_path / "run")
    assert_same(ihmm.Posterior.load(tmp_path / "run"), posterior)


def test_a_folder_that_is_not_a_saved_posterior_is_never_overwritten(tmp_path, posterior):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.tex").write_text("years of work")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "run.json").write_text('{"format": "something else"}')
    (tmp_path / "file").write_text("a file")
    before = sorted(tmp_path.rglob("*"))
    for name in ("thesis", "other", "file"):
        with pytest.raises(FileExistsError, match="is not a saved posterior"):
            posterior.save(tmp_path / name)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("call", ["savez_compressed", "rename"])
@pytest.mark.parametrize("old", [True, False])
def test_a_save_that_fails_leaves_what_was_there(tmp_path, posterior, monkeypatch, call, old):
    if old:
        posterior.save(tmp_path / "run")
    calls = []

    def fail_at_the_second(original):
        def function(*args, **kwargs):
            calls.append(args)
            if len(calls) == (2 if call == "savez_compressed" or old else 1):
                raise OSError("disk full")
            return original(*args, **kwargs)

        return function

    owner = np if call == "savez_compressed" else Path
    monkeypatch.setattr(owner, call, fail_at_the_second(getattr(owner, call)))
    with pytest.raises(OSError, match="disk full"):
        draw_some(seed=2).save(tmp_path / "run")
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["run"] * old
    if old:
        assert_same(ihmm.Posterior.load(tmp_path / "run"), posterior)


def test_the_files_hold_no_python_objects(tmp_path, posterior):
    posterior.save(tmp_path / "run")
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".json", ".chunk"}
    for path in files:
        if path.suffix == ".chunk":
            content = path.read_bytes().split(b"\n", 1)[1]
            with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
                assert all(not array.dtype.hasobject for array in dict(arrays).values())


# Damaged and foreign files


@pytest.fixture
def saved(tmp_path, posterior) -> Path:
    posterior.save(tmp_path / "run")
    return tmp_path / "run"


def edit(folder: Path, **changes) -> None:
    path = folder / "run.json"
    written = json.loads(path.read_text()) | changes
    written.pop("sha256", None)  # as earlier versions wrote it
    path.write_text(json.dumps(written))


def test_a_missing_folder_is_reported(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere"):
        ihmm.Posterior.load(tmp_path / "nowhere")


def test_a_copy_left_by_an_interrupted_save_is_reported(saved):
    saved.rename(saved.with_name(".run.0123456789ab"))
    with pytest.raises(FileNotFoundError, match=r"\.run\.0123456789ab holds one"):
        ihmm.Posterior.load(saved)


def test_a_foreign_folder_or_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    for path in (tmp_path, tmp_path / "file"):
        with pytest.raises(ValueError, match=r"is not a run or saved posterior: it has no run.json"):
            ihmm.Posterior.load(path)


def test_settings_of_another_program_are_refused(saved):
    edit(saved, format="parquet")
    with pytest.raises(ValueError, match=r"is not a run or saved posterior: the format in run\.json is 'parquet'"):
        ihmm.Posterior.load(saved)


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", "{}", "\x00\xff", '{"format": "ihmm run"}'])
def test_settings_not_written_by_ihmm_are_refused(saved, text):
    (saved / "run.json").write_text(text)
    with pytest.raises(ValueError, match="is damaged or not written by ihmm"):
        ihmm.Posterior.load(saved)


def test_a_newer_format_requires_an_upgrade(saved):
    edit(saved, format_version=2, versions={"ihmm": "9.1"})
    with pytest.raises(ValueError, match=r"newer ihmm \(9\.1\); upgrade"):
        ihmm.Posterior.load(saved)


@pytest.mark.parametrize("name", ["data.chunk", "chain-1/0.chunk"])
def test_a_missing_or_truncated_file_is_reported_as_damage(saved, name):
    content = (saved / name).read_bytes()
    for cut in (content[: len(content) // 2], content[:10], b""):
        (saved / name).write_bytes(cut)
        with pytest.raises(ValueError, match="is damaged"):
            ihmm.Posterior.load(saved)
    (saved / name).unlink()
    with pytest.raises(ValueError, match="is damaged"):
        ihmm.Posterior.load(saved)


@pytest.mark.parametrize("name", ["data.chunk", "chain-1/0.chunk"])
def test_a_flipped_bit_is_reported_as_damage(saved, name):
    content = (saved / name).read_bytes()
    for i in np.random.default_rng(0).integers(len(content), size=20):
        (saved / name).write_bytes(content[:i] + bytes([content[i] ^ 0x10]) + content[i + 1 :])
        with pytest.raises(ValueError, match=rf"is damaged \({name} does not match its checksum\)"):
            ihmm.Posterior.load(saved)


def test_files_of_different_runs_do_not_mix(saved, tmp_path):
    draw_some(seed=9, init=5, draws=7).save(tmp_path / "other")
    shutil.copy(tmp_path / "other" / "chain-1" / "0.chunk", saved / "chain-1" / "0.chunk")
    with pytest.raises(ValueError, match="is damaged"):
        ihmm.Posterior.load(saved)


@pytest.mark.parametrize("name", ["Popen", "subprocess.Popen", "object", "dict"])
def test_only_classes_of_ihmm_are_made_from_a_file(saved, name):
    model = json.loads((saved / "run.json").read_text())["model"]
    edit(saved, model=model | {"emission": {"class": name, "args": ["true"]}})
    with pytest.raises(ValueError, match=rf"was made with {name}, which is not part of ihmm"):
        ihmm.Posterior.load(saved)


def test_invalid_settings_of_a_model_are_refused(saved):
    model = json.loads((saved / "run.json").read_text())["model"]
    for emission in ({"class": "Normal", "rate": -1.0}, {"class": "Normal", "speed": 3}):
        edit(saved, model=model | {"emission": emission})
        with pytest.raises(ValueError, match=r"the model in .* cannot be read"):
            ihmm.Posterior.load(saved)


# Emissions and samplers of the user


class LaplacePhi(NamedTuple):
    location: np.ndarray


class Laplace(ihmm.Emission):
    """A custom emission. It is not exact: φ is set to the median."""

    def validate(self, y):
        return y.astype(float)

    def log_density(self, y, phi):
        return -np.abs(y[:, None] - phi.location)

    def sample_prior(self, rng, n):
        return LaplacePhi(rng.normal(0, 3, n))

    def resample(self, rng, y, states, n_states):
        return LaplacePhi(np.array([np.median(y[states == k]) for k in range(n_states)]))

    def sample_observations(self, rng, states, phi):
        return rng.laplace(phi.location[states])

    def log_prior(self, phi):
        return -0.5 * (phi.location / 3) ** 2


def test_a_custom_emission_is_loaded_with_the_model(tmp_path):
    model = ihmm.Model(Laplace())
    posterior = draw_some(model)
    posterior.save(tmp_path / "run")
    with pytest.raises(ValueError, match=r"made with Laplace, which is not part of ihmm; pass the model"):
        ihmm.Posterior.load(tmp_path / "run")
    assert_same(ihmm.Posterior.load(tmp_path / "run", model=model), posterior)


def test_a_custom_class_with_a_name_of_ihmm_is_not_confused_with_it(tmp_path):
    class Normal(Laplace):
        pass

    draw_some(ihmm.Model(Normal())).save(tmp_path / "run")
    with pytest.raises(ValueError, match="made with Normal, which is not part of ihmm"):
        ihmm.Posterior.load(tmp_path / "run")


def test_a_model_other_than_the_saved_one_is_refused(saved, posterior):
    assert_same(ihmm.Posterior.load(saved, model=ihmm.Model(ihmm.Normal(strength=0.3))), posterior)
    for model in (ihmm.Model(ihmm.Normal()), ihmm.Model(ihmm.NormalMean()), ihmm.Model(Laplace())):
        with pytest.raises(ValueError, match="is not the one saved"):
            ihmm.Posterior.load(saved, model=model)


def test_a_custom_sampler_is_not_loaded(tmp_path):
    interrupted_posterior().save(tmp_path / "run")
    assert ihmm.Posterior.load(tmp_path / "run").sampler is None


def test_a_sampler_unknown_to_this_version_is_not_loaded(saved, posterior):
    for sampler in ({"class": "Beam", "width": 3}, {"class": "ParticleGibbs", "n_worms": 3}):
        edit(saved, sampler=sampler)
        loaded = ihmm.Posterior.load(saved)
        assert loaded.sampler is None
        assert_same(loaded, posterior)


def test_arrays_of_python_objects_are_refused_when_saving(tmp_path):
    class NamedPhi(NamedTuple):
        location: np.ndarray
        name: np.ndarray

    class Named(Laplace):
        def sample_prior(self, rng, n):
            return NamedPhi(*super().sample_prior(rng, n), np.array(["new"] * n, object))

        def resample(self, rng, y, states, n_states):
            return NamedPhi(*super().resample(rng, y, states, n_states), np.array(["old"] * n_states, object))

    with pytest.raises(TypeError, match=r"phi_name cannot be saved: .* Python objects"):
        draw_some(ihmm.Model(Named())).save(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


# Conversion to ArviZ


def test_the_tree_has_the_groups_and_names_that_arviz_expects(posterior):
    tree = posterior.to_datatree(states=True)
    assert set(tree.children) == {
        "posterior", "sample_stats", "observed_data", "log_likelihood", "posterior_predictive", "warmup_posterior",
        "warmup_sample_stats",
    }  # fmt: skip
    assert set(tree["posterior"].data_vars) == {
        "gamma", "concentration", "mean", "variance", "dwell", "transitions", "states",
    }  # fmt: skip
    assert set(tree["sample_stats"].data_vars) == {
        "lp", "n_states", "share", "n_scored", "n_born", "update_rate", "n_split", "n_merged",
    }  # fmt: skip
    assert tree["posterior"]["states"].dims == ("chain", "draw", "time")
    assert tree["warmup_posterior"].sizes["draw"] == 4
    np.testing.assert_array_equal(tree["posterior"]["states"], posterior.states)
    assert "states" not in posterior.to_datatree()["posterior"]
    np.testing.assert_array_equal(tree["sample_stats"]["lp"], posterior.traces["log_joint"])
    np.testing.assert_array_equal(tree["observed_data"]["y"], np.concatenate(REAL))
    assert tree.attrs["seed"] == 1
    assert (tree.attrs["inference_library"], tree.attrs["inference_library_version"]) == ("ihmm", ihmm.__version__)


def test_several_sequences_are_marked_on_the_time_axis(posterior):
    observed = posterior.to_datatree()["observed_data"]
    np.testing.assert_array_equal(observed["y"][observed["sequence"].values == 1], REAL[1])
    np.testing.assert_array_equal(observed["step"][20:], np.arange(16))


def test_one_series_has_time_only():
    tree = draw_some(y=REAL[0], save_warmup=False).to_datatree()
    assert set(tree["observed_data"].coords) == {"time"}
    assert "warmup_posterior" not in tree.children


def test_the_tree_can_be_written_to_netcdf(tmp_path):
    pytest.importorskip("h5py", reason="h5netcdf needs it")
    import xarray

    tree = draw_some(seed=2**100).to_datatree(states=True)
    tree.to_netcdf(tmp_path / "run.nc", engine="h5netcdf")
    with xarray.open_datatree(tmp_path / "run.nc", engine="h5netcdf") as read:
        assert read.attrs["seed"] == str(2**100)
        np.testing.assert_array_equal(read["posterior"]["states"], tree["posterior"]["states"])


# Thinning


@pytest.mark.parametrize("whole", [True, False])
def test_thinning_keeps_one_draw_in_every_few(posterior, whole):
    original = posterior if whole else interrupted_posterior()
    thinned = original.thin(2)
    for draws, all_draws in zip(thinned.draws, original.draws, strict=True):
        assert len(draws) == -(-len(all_draws) // 2)
        for i, draw in enumerate(draws):
            assert draw.hyper == all_draws[2 * i].hyper
            for array, original_array in zip(arrays_of(draw), arrays_of(all_draws[2 * i]), strict=True):
                np.testing.assert_array_equal(array, original_array)
    for name, trace in thinned.traces.items():
        np.testing.assert_array_equal(trace, original.traces[name][:, ::2])


def test_thinning_takes_a_whole_number(posterior):
    with pytest.raises(ValueError, match="every"):
        posterior.thin(0)


# Missing values


def test_missing_values_can_be_loaded(tmp_path):
    y = np.where(np.arange(20) % 5 == 2, np.nan, REAL[0])
    original = draw_some(y=[y, REAL[1]])
    original.save(tmp_path / "run")
    loaded = ihmm.Posterior.load(tmp_path / "run")
    assert_same(original, loaded)
    expected = np.concatenate([y, REAL[1]])
    np.testing.assert_array_equal(loaded.data.values, expected)
    np.testing.assert_array_equal(loaded.to_datatree()["observed_data"]["y"], expected)
