"""States ordered by use or by mean, and their names."""

import numpy as np
import pytest

import ihmm

RECORDING = ihmm.datasets.ion_channel(length=300)
SHORT = {"draws": 20, "tune": 20, "chains": 1, "seed": 1, "progress": False}


@pytest.fixture(scope="module")
def by_use():
    return ihmm.sample(ihmm.Model(ihmm.Normal()), RECORDING.y, dt=1e-4, **SHORT)


@pytest.fixture(scope="module")
def by_mean(by_use):
    return by_use.relabel(order_by="mean")


def test_means_rise_and_everything_moves_along(by_use, by_mean):
    before, after = by_use.summary(), by_mean.summary()
    order = np.argsort(np.nanmean(before.parameters["mean"], axis=0))
    assert not np.array_equal(order, np.arange(len(order)))
    assert (np.diff(np.nanmean(after.parameters["mean"], axis=0)) > 0).all()
    np.testing.assert_array_equal(order[after.states], before.states)
    np.testing.assert_array_equal(after.transitions, before.transitions[np.ix_(order, order)])
    np.testing.assert_array_equal(after.rates[:, 0, 1], before.rates[:, order[0], order[1]])
    np.testing.assert_array_equal(after.dwell, before.dwell[:, order])
    smoothed = by_mean.smooth(RECORDING.y), by_use.smooth(RECORDING.y)
    np.testing.assert_allclose(smoothed[0][:, :-1], smoothed[1][:, order], rtol=1e-12)
    np.testing.assert_array_equal(by_mean.levels().segmentation, by_use.levels().segmentation)
    assert by_use.order_by == "use", "a new posterior is returned"


def test_names_are_used_in_text_and_tables_and_are_saved(by_mean, tmp_path):
    named = by_mean.relabel(names={0: "closed", 1: "open"})
    named.save(tmp_path / "run")
    for posterior in (named, ihmm.Posterior.load(tmp_path / "run")):
        found = posterior.summary()
        assert found.labels[:2] == ["closed", "open"]
        assert found.labels[2:] == [str(k) for k in range(2, found.n_states)]
        assert found.table()["name"].tolist() == found.labels
        assert "closed" in repr(found)
        assert "closed" in repr(posterior.levels())
        assert {"closed", "open"} <= set(found.rate_table()["from_name"])
        np.testing.assert_array_equal(found.states, by_mean.summary().states)


@pytest.mark.parametrize("resolution", [None, 0.5, (0.5, 2.0)])
def test_order_names_and_resolution_survive_saving_and_thinning(by_use, tmp_path, resolution):
    labelled = by_use.relabel(order_by="mean", names={0: "closed"})
    labelled.resolution = resolution
    labelled.save(tmp_path / "run")
    for posterior in (ihmm.Posterior.load(tmp_path / "run"), labelled.thin(2)):
        assert posterior.resolution == resolution
        assert (posterior.order_by, posterior.names) == ("mean", {0: "closed"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order_by": "size"}, "order_by must be one of 'use', 'mean', got 'size'"),
        ({"names": {99: "x"}}, "names has state 99, but there are states 0 to"),
        ({"names": {0: "x", 1: "x"}}, "names of states must differ"),
        ({"names": ["x"]}, "names must be a mapping such as"),
    ],
)
def test_an_order_or_a_name_that_cannot_be_is_refused(by_use, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        by_use.relabel(**options)


def test_symbols_have_no_mean():
    posterior = ihmm.sample(ihmm.Model(ihmm.Categorical(4)), list("ACGT" * 10), **SHORT)
    with pytest.raises(ValueError, match=r'order_by="mean" needs states with a mean, but these have probs'):
        posterior.relabel(order_by="mean")


def test_the_estimator_orders_by_mean():
    settings = {"draws": 20, "tune": 20, "chains": 1, "random_state": 1}
    fitted = ihmm.InfiniteHMM("normal", order_by="mean", **settings).fit(RECORDING.y)
    assert (np.diff(fitted.means_[:, 0]) > 0).all()
    np.testing.assert_array_equal(fitted.labels_, fitted.posterior_.summary().states)
