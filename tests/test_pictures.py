"""Pictures of kinetics, of many recordings and of predictive checks show what the draws say."""

import matplotlib.dates
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import ihmm
from ihmm import plots
from ihmm.figures import graph
from ihmm.figures import pictures as _pictures
from test_plots import MEANS, MODEL, PATH, Y, draw_some


@pytest.fixture(scope="module")
def posterior() -> ihmm.Posterior:
    return draw_some()


@pytest.fixture(scope="module")
def several() -> ihmm.Posterior:
    gappy = Y.copy()
    gappy[5:9] = np.nan
    return draw_some(y=[gappy, Y[:25], Y], init=[PATH, PATH[:25], PATH], dt="2ms")


@pytest.fixture(scope="module")
def symbols() -> ihmm.Posterior:
    return draw_some(ihmm.Model(ihmm.Categorical(4, 0.1), MODEL.prior), PATH)


DRAWN = [plots.idealised, plots.transition_density, plots.transition_graph, plots.ribbons]


@pytest.mark.parametrize("draw", DRAWN, ids=lambda draw: draw.__name__)
@pytest.mark.parametrize("case", ["posterior", "several"])
def test_a_picture_uses_the_given_axes_or_makes_a_figure(draw, case, request, tmp_path):
    found = request.getfixturevalue(case)
    ax = Figure().add_subplot()
    assert draw(found, ax) is ax
    draw(found).figure.savefig(tmp_path / "picture.svg")


def test_the_idealised_trace_is_at_the_means_of_the_levels(posterior):
    ax = plots.idealised(posterior)
    data, trace = ax.lines
    np.testing.assert_array_equal(data.get_ydata(), Y)
    means = np.array([Y[k == PATH].mean() for k in range(3)])
    np.testing.assert_allclose(np.unique(trace.get_ydata()), np.sort(means))
    steps = ax.collections[0].get_segments()
    assert [segment[0, 0] + 0.5 for segment in steps] == [0, 20, 30, 45, 55, 65]
    assert to_hex(ax.collections[0].get_colors()[3]) == plots.colours(3)[2].lower()


def test_times_are_on_the_axis(several):
    ax = plots.idealised(several, sequence=1, start=5, stop=15)
    np.testing.assert_allclose(ax.get_xlim(), [9, 29])
    assert ax.get_xlabel() == "time (ms), recording 1"
    *_, strip = plots.series(several, sequence=1, start=5, stop=15)
    np.testing.assert_allclose(strip.get_xlim(), [9, 29])
    assert strip.get_xlabel() == "time (ms) of sequence 1"


def test_dates_are_on_the_axis():
    pandas = pytest.importorskip("pandas")
    dates = pandas.date_range("2026-03-01", periods=len(Y), freq="h")
    found = draw_some(y=pandas.Series(Y, index=dates))
    for ax in (plots.idealised(found), plots.series(found)[-1]):
        begin, end = matplotlib.dates.num2date(ax.get_xlim())
        assert begin.isoformat().startswith("2026-02-28T23:30")
        assert end.isoformat().startswith("2026-03-04T07:30")
        ax.figure.canvas.draw()
        assert ax.get_xticklabels()[0].get_text()


def test_jumps_go_from_the_mean_of_one_visit_to_that_of_the_next(several):
    found = _pictures.jumps(several, _pictures.column_of(several, 0))
    each = len(found.before) // found.n_draws
    assert each == 5 + 1 + 5  # none from one recording to the next
    pairs = np.column_stack([found.level_before[:each], found.level_after[:each]])
    assert pairs.tolist() == [[0, 1], [1, 0], [0, 2], [2, 1], [1, 0], [0, 1], [0, 1], [1, 0], [0, 2], [2, 1], [1, 0]]
    np.testing.assert_allclose(found.before[[0, 3]], [np.delete(Y[:20], slice(5, 9)).mean(), Y[45:55].mean()])
    np.testing.assert_allclose(found.after, MEANS[found.level_after], atol=0.5)


def test_the_transition_density_has_its_peaks_where_the_jumps_are(posterior):
    ax = plots.transition_density(posterior)
    (image,) = ax.images
    low, high, *_ = image.get_extent()
    row, column = np.unravel_index(np.argmax(image.get_array()), image.get_array().shape)
    before, after = low + (np.array([column, row]) + 0.5) / _pictures.GRID * (high - low)
    np.testing.assert_allclose([before, after], [5, 0], atol=0.5)  # twice; all others once


def test_arrows_of_the_graph_are_the_transitions_that_occur(posterior):
    edges = _pictures.edges(posterior)
    assert {(edge.source, edge.target) for edge in edges} >= {(0, 1), (1, 0), (0, 2), (2, 1)}
    for k in range(3):
        own = [edge for edge in edges if edge.source == k]
        assert sum(edge.share for edge in own) == pytest.approx(1, abs=0.05)
    ax = plots.transition_graph(posterior)
    assert len(ax.patches) == 3 + len(edges)


def test_every_recording_has_a_ribbon(several):
    ax = plots.ribbons(several)
    assert len(ax.images) + len(ax.collections) == 3
    path, edges = _pictures.ribbon(several, 1, "level", 1000)
    np.testing.assert_array_equal(path, PATH[:25])
    np.testing.assert_array_equal(edges, np.arange(26))
    path, edges = _pictures.ribbon(several, 2, "level", 4)
    assert path.tolist() == [0, 0, 2, 0]
    assert ax.get_xlabel() == "time (ms)"
    np.testing.assert_allclose(ax.get_xlim(), [-1, 159])


def test_data_of_the_model_are_within_the_bands_of_simulated_series():
    simulated = ihmm.simulate(MODEL, [800, 800], seed=3)
    found = draw_some(y=simulated.y, init=np.split(simulated.draw.states, 2), draws=20)
    checked = _pictures.predictive(found)
    for curve in (checked.marginal, checked.autocorrelation, checked.dwell):
        outside = (curve.data < curve.low) | (curve.data > curve.high)
        assert outside.mean() < 0.2


def test_data_that_contradict_the_model_leave_the_bands():
    y = Y + np.cumsum(np.random.default_rng(1).standard_normal(len(Y)))  # a random walk on top
    model = ihmm.Model(ihmm.NormalMean(noise=4.0, scale=5), ihmm.HDPPrior(stickiness=0.0))
    found = draw_some(model, y, np.zeros(len(y), int), draws=20)
    related = _pictures.predictive(found).autocorrelation
    assert np.all(related.data[:5] > related.high[:5])


@pytest.mark.parametrize("case", ["posterior", "several", "symbols"])
def test_predictive_checks_have_three_panels(case, request, tmp_path):
    panels = plots.predictive_check(request.getfixturevalue(case))
    assert len(panels) == 3
    panels[0].figure.savefig(tmp_path / "check.svg")
    with pytest.raises(ValueError, match="three Axes"):
        plots.predictive_check(request.getfixturevalue(case), panels[:2])


def test_angles_are_related_by_their_cosine():
    angles = np.angle(np.exp(1j * Y))
    found = draw_some(ihmm.Model(ihmm.VonMises(), MODEL.prior), angles)
    related = _pictures.predictive(found).autocorrelation.data
    np.testing.assert_allclose(related[0], np.cos(np.diff(angles)).mean())


def test_what_the_prior_expects_is_drawn():
    prior = ihmm.prior_predictive(MODEL, [40, 30], draws=50, seed=1)
    series, sizes, dwell = plots.prior_predictive(prior)
    assert sum(bar.get_height() for bar in sizes.patches) == pytest.approx(1)
    assert sum(bar.get_height() for bar in dwell.patches) == pytest.approx(1)
    assert len(series.lines) == 4


@pytest.mark.parametrize("draw", [plots.idealised, plots.transition_density], ids=lambda draw: draw.__name__)
def test_symbols_have_no_levels_to_draw(draw, symbols):
    with pytest.raises(ValueError, match="these observations are symbols"):
        draw(symbols)


def test_a_column_that_does_not_exist_is_an_error(posterior):
    with pytest.raises(ValueError, match="column must be from 0 to 0, got 3"):
        plots.idealised(posterior, column=3)


def test_histograms_of_dwell_times_have_bins_of_equal_width_in_the_logarithm(several):
    panels = plots.dwell_histogram(several)
    assert len(panels) == several.summary().n_states
    ax = panels[0]
    assert ax.get_xscale() == "log"
    assert panels[-1].get_xlabel() == "dwell time (ms)"
    heights, edges, _ = ax.patches[0].get_data()
    edges = edges / 2  # in steps
    lengths = _pictures.dwell_times(PATH, np.array([0, 80]))
    own = np.concatenate([lengths[0][lengths[1] == 0]] * 2 + [[20]])  # state 0 of the recordings: 20, 15, 15; 20; again
    shares = np.square(heights) * np.diff(np.log(edges))
    assert shares.sum() == pytest.approx(1)
    np.testing.assert_allclose(shares, np.histogram(own, edges)[0] / len(own))


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_labels_of_all_arrows_of_the_graph_keep_apart_and_off_the_circles(n):
    place, radius = graph.places(n), graph.radii(np.full(n, 1 / n))
    pairs = [(a, b) for a in range(n) for b in range(n) if a != b]
    labels = np.array([graph.arrow(place[a], place[b], radius[a], radius[b]).label for a, b in pairs])
    wide, high = 0.3, 0.12  # a label of four digits
    apart = np.abs(labels[:, None] - labels) / [wide, high]
    assert np.all(apart.max(axis=2)[~np.eye(len(labels), dtype=bool)] >= 1)
    assert np.all(np.linalg.norm(labels[:, None] - place, axis=2) > radius + high)
