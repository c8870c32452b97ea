"""Comparison of models: scores are those of the data given what comes before, and the better model wins."""

import numpy as np
import pytest

import ihmm
from ihmm import comparison
from ihmm.predictions import averages
from test_datatree import MODEL, PATH, Y, draw_some

WRONG = ihmm.Model(ihmm.NormalMean(noise=2.0, mean=3, scale=4), MODEL.prior)


@pytest.fixture(scope="module")
def posteriors() -> dict[str, ihmm.Posterior]:
    path = np.tile(PATH, 4)
    y = np.array([0.0, 4.0, 9.0])[path] + 0.4 * np.random.default_rng(5).standard_normal(len(path))
    return {name: draw_some(model, y, path, draws=150) for name, model in {"wide": WRONG, "right": MODEL}.items()}


def test_the_model_that_made_the_data_predicts_best(posteriors):
    found = ihmm.compare(posteriors)
    assert found.names == ("right", "wide")
    assert found.difference[1] < -3 * found.standard_error[1] < 0
    assert found.standard_error[0] == 0
    assert 30 <= found.n_steps <= 120
    assert found.verdict.startswith("right predicts best, better than wide by")
    table = found.table()
    assert list(table.index) == ["right", "wide"]
    np.testing.assert_allclose(table["per_step"], found.log_score / found.n_steps)


def test_leaving_the_future_out_is_like_fitting_to_the_past(posteriors):
    """The score of the last blocks is that of a model which has not seen them, filtered up to them."""
    full = posteriors["right"]
    found = ihmm.compare({"right": full})
    y, begin = full.data.y, len(full.data.y) - found.n_steps
    past = draw_some(MODEL, y[:begin], np.tile(PATH, 4)[:begin], draws=150, seed=2)
    scores = averages.log_scores(past.model, past.observe(y), past.labelled_draws)[:, begin:].sum(axis=1)
    assert found.log_score[0] == pytest.approx(np.logaddexp.reduce(scores) - np.log(len(scores)), abs=1)
    assert scores.mean() < found.log_score[0]


def test_two_runs_of_a_model_predict_equally_well(posteriors):
    first = posteriors["right"]
    again = draw_some(MODEL, first.data.y, np.tile(PATH, 4), draws=150, seed=2)
    found = ihmm.compare({"first": first, "again": again})
    assert abs(found.difference[1]) < 2
    assert found.verdict.startswith("The data do not say whether")


def test_held_out_scores_are_the_held_out_likelihood(posteriors):
    new = [Y, Y[:50]]
    found = ihmm.compare(posteriors, y=new)
    assert found.held_out
    assert found.n_steps == 200
    for name, score in zip(found.names, found.log_score, strict=True):
        assert score == pytest.approx(posteriors[name].log_likelihood(new).sum())


def test_steps_that_a_model_cannot_predict_count_for_none(posteriors):
    y = posteriors["right"].data.y.copy()
    y[[590, 595]] = np.nan
    path = np.tile(PATH, 4)
    moving = ihmm.Model(ihmm.Autoregressive(1), MODEL.prior)
    found = ihmm.compare({"plain": draw_some(MODEL, y, path), "moving": draw_some(moving, y, path)}, y=y)
    assert found.n_steps == len(y) - 1 - 4  # the first step, two missing ones and those after them


def test_blocks_are_counted_from_the_end_of_every_sequence():
    block = comparison._last_blocks(np.array([0, 100, 400]))
    assert block[99] == block[399] == 0
    assert block[80] == block[340] == comparison.BLOCKS - 1
    assert np.all(block[:80] == -1)
    assert np.all(block[100:340] == -1)
    assert np.all(np.diff(block[340:]) <= 0)


@pytest.mark.parametrize("lengths", [[1000], [400, 7, 30], [3] * 50, [2, 4]])
def test_blocks_of_new_data_do_not_extend_across_sequences(lengths):
    offsets = np.cumsum([0, *lengths])
    block, sequence = comparison._all_blocks(offsets)
    np.testing.assert_array_equal(sequence[block], np.repeat(np.arange(len(lengths)), lengths))
    assert np.all(np.bincount(block) > 0)
    assert len(sequence) >= comparison.MIN_BLOCKS


def test_draws_that_depend_on_the_last_steps_are_refused(monkeypatch, posteriors):
    monkeypatch.setattr(comparison, "MAX_KHAT", -10.0)
    with pytest.raises(ValueError, match=r"'right' cannot be compared .* pass the rest as y"):
        ihmm.compare({"right": posteriors["right"]})


def test_models_must_have_seen_the_same_data(posteriors):
    with pytest.raises(ValueError, match="'other' was not fitted to the same data as 'right'"):
        ihmm.compare({"right": posteriors["right"], "other": draw_some(draws=3)})
    with pytest.raises(TypeError, match="by name"):
        ihmm.compare(list(posteriors.values()))
    with pytest.raises(TypeError, match="got int for 'a'"):
        ihmm.compare({"a": 3})


def test_the_prior_is_simulated_again_and_again():
    prior = ihmm.prior_predictive(MODEL, [30, 20], draws=40, seed=1)
    assert prior.y.shape == prior.states.shape == (40, 50)
    assert prior.lengths == [30, 20]
    np.testing.assert_array_equal(prior.n_states, prior.states.max(axis=1) + 1)
    np.testing.assert_array_equal(prior.y, ihmm.prior_predictive(MODEL, [30, 20], draws=40, seed=1).y)
    tree = prior.to_datatree()
    assert tree["prior_predictive"]["y"].dims == ("chain", "draw", "time")
    np.testing.assert_array_equal(tree["prior"]["n_states"][0], prior.n_states)
    wide = ihmm.prior_predictive(ihmm.Model(ihmm.MultivariateNormal(2)), 10, draws=3, seed=1)
    assert wide.to_datatree()["prior_predictive"]["y"].dims == ("chain", "draw", "time", "column")


def test_results_have_tables_in_notebooks(posteriors):
    """Text is escaped, and nothing is said that the plain text does not say."""
    posterior = draw_some()
    found = ihmm.compare({"<right>": posteriors["right"], "wide": posteriors["wide"]})
    for item in (posterior.model, posterior, posterior.summary(), posterior.levels(), posterior.check(), found):
        page = item._repr_html_()
        assert page.count("<table>") == page.count("</table>")
        assert page.startswith("<p>")
    assert "&lt;right&gt;" in found._repr_html_()
    assert posterior.check().verdict in posterior.check()._repr_html_()
    assert "NormalMean" in WRONG._repr_html_()
    rows = posterior.summary()._repr_html_().count("<tr>")
    assert rows == 1 + posterior.summary().n_states
