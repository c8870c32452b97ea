"""Plots show the posterior: the right marks at the right places, on the Axes they are given."""

import importlib
import os
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import ihmm
from ihmm import plots
from ihmm.plots._series import BINS
from ihmm.predictions.forecasts import Forecast
from ihmm.report._text import states
from ihmm.samplers import ParticleGibbs

RNG = np.random.default_rng(5)
MEANS = np.array([0.0, 5.0, 10.0])
PATH = np.repeat(
    [0, 1, 0, 2, 1, 0], [20, 10, 15, 10, 10, 15]
)  # visits of 50, 20 and 10 steps: the summary numbers the states in the same order
Y = MEANS[PATH] + 0.3 * RNG.standard_normal(len(PATH))
MODEL = ihmm.Model(ihmm.NormalMean(noise=0.3, scale=5), ihmm.HDPPrior(gamma=1.0, concentration=1.0, stickiness=0.5))


def draw_some(model=MODEL, y=Y, init=PATH, **settings) -> ihmm.Posterior:
    settings = {"draws": 6, "tune": 4, "chains": 2, "seed": 1, "moves": ()} | settings
    return ihmm.sample(model, y, init=init, progress=False, **settings)


class VectorPhi(NamedTuple):
    mean: np.ndarray
    covariance: np.ndarray


class Vectors(ihmm.Emission):
    """Columns of unit variance; φ is set to the sample mean."""

    def validate(self, y):
        return y.astype(float)

    def log_density(self, y, phi):
        return -0.5 * np.square(y[:, None] - phi.mean).sum(axis=2) - 0.5 * y.shape[1] * np.log(2 * np.pi)

    def sample_prior(self, rng, n):
        return self._phi(rng.normal(0, 5, (n, 8)))

    def resample(self, rng, y, states, n_states):
        return self._phi(np.array([y[states == k].mean(axis=0) for k in range(n_states)]))

    def sample_observations(self, rng, states, phi):
        return rng.normal((phi.mean if isinstance(phi, tuple) else phi)[states])

    def log_prior(self, phi):
        return -np.square(phi.mean).sum(axis=1) / 50

    def _phi(self, mean):
        return VectorPhi(mean, np.broadcast_to(np.eye(8), (len(mean), 8, 8)).copy())


class CountsPhi(NamedTuple):
    rate: np.ndarray


class Counts(ihmm.Emission):
    """Geometric counts from 0 with mean `rate`, stored as floats."""

    def validate(self, y):
        return y.astype(float)

    def log_density(self, y, phi):
        assert np.all(y == np.floor(y)), "the density is defined on whole numbers only"
        return y[:, None] * np.log(phi.rate / (1 + phi.rate)) - np.log1p(phi.rate)

    def sample_prior(self, rng, n):
        return CountsPhi(rng.gamma(1, 5, n) + 0.01)

    def resample(self, rng, y, states, n_states):
        return CountsPhi(np.array([y[states == k].mean() + 0.01 for k in range(n_states)]))

    def sample_observations(self, rng, states, phi):
        return rng.geometric(1 / (1 + phi.rate[states])) - 1.0

    def log_prior(self, phi):
        return -phi.rate / 5


class Odd(Vectors):
    """Several columns, and φ has no field `mean`."""

    def _phi(self, mean):
        return mean

    def log_density(self, y, phi):
        return -0.5 * np.square(y[:, None] - phi).sum(axis=2)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="module")
def posterior() -> ihmm.Posterior:
    found = draw_some(save_warmup=True)
    np.testing.assert_array_equal(found.summary().states, PATH)
    return found


@pytest.fixture(scope="module")
def gappy() -> ihmm.Posterior:
    y = Y.copy()
    y[[3, 4, 5, 30]] = np.nan
    return draw_some(y=[y, Y[:25]], init=[PATH, PATH[:25]])


@pytest.fixture(scope="module")
def symbols() -> ihmm.Posterior:
    return draw_some(ihmm.Model(ihmm.Categorical(4, 0.1), MODEL.prior), PATH)


@pytest.fixture(scope="module")
def many() -> ihmm.Posterior:
    path = np.repeat(np.arange(14), 6)
    return draw_some(ihmm.Model(ihmm.NormalMean(noise=0.1, scale=30), MODEL.prior), 5.0 * path, path)


@pytest.fixture(scope="module")
def single() -> ihmm.Posterior:
    model = ihmm.Model(ihmm.Normal(), ihmm.FinitePrior(1, gamma=None))
    return draw_some(model, Y[:20], 1, sampler=ihmm.Blocked())


@pytest.fixture(scope="module")
def wide() -> ihmm.Posterior:
    y = 4.0 * PATH[:, None] + RNG.standard_normal((len(PATH), 8))
    y[40:45] = np.nan
    return draw_some(ihmm.Model(Vectors(), MODEL.prior), y)


def stopped(call: int, **settings) -> ihmm.Posterior:
    class Interrupted:
        calls = 0

        def resample_states(self, rng, data, model, draw):
            self.calls += 1
            if self.calls == call:
                raise KeyboardInterrupt
            return ParticleGibbs().resample_states(rng, data, model, draw)

    with pytest.warns(UserWarning, match="chain 0 has"):
        return draw_some(sampler=Interrupted(), chains=3, cores=1, **settings)


def names(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def boxes(ax: Axes) -> list[np.ndarray]:
    """Corners of the boxes, one array (boxes, 5, 2) per state."""
    groups = [part for part in ax.collections if type(part) is PolyCollection and part.get_zorder() == 2]
    return [np.array([path.vertices for path in group.get_paths()]) for group in groups]


def spans(ax: Axes) -> list[list[float]]:
    """Start and end of each shaded interval."""
    (shade,) = [part for part in ax.collections if part.get_zorder() == 0]
    return [[path.vertices[:, 0].min(), path.vertices[:, 0].max()] for path in shade.get_paths()]


# Axes


EVERY = {
    "series": plots.series,
    "n_states": plots.n_states,
    "transitions": plots.transitions,
    "emissions": plots.emissions,
    "dwell_times": plots.dwell_times,
    "co_assignment": plots.co_assignment,
    "forecast": lambda posterior, ax=None: plots.forecast(posterior.forecast(5), ax),
    "compare": lambda posterior, ax=None: plots.compare({"one": posterior}, ax=ax),
}


@pytest.mark.parametrize("draw", EVERY.values(), ids=EVERY)
def test_a_plot_uses_the_given_axes_or_makes_a_figure(draw, posterior):
    mine = Figure().add_subplot()
    assert np.ravel(draw(posterior, mine))[0] is mine
    (first, *_) = np.ravel(draw(posterior))
    assert isinstance(first, Axes)
    assert type(first.figure) is Figure


@pytest.mark.parametrize("case", ["posterior", "symbols", "many", "single", "wide"])
def test_an_overview_of_any_posterior_can_be_saved_as_pdf(case, request, tmp_path):
    figure = plots.overview(request.getfixturevalue(case))
    figure.savefig(tmp_path / "page.pdf")
    assert [ax.get_title(loc="left") for ax in figure.axes if ax.get_title(loc="left")] == [
        "Levels", "Observations by state", "Transitions", "Dwell times", "Number of levels",
        "Number of states by sweep", "Joint log-likelihood by sweep",
    ]  # fmt: skip


def test_an_overview_shows_co_assignment_if_densities_are_unknown():
    figure = plots.overview(draw_some(ihmm.Model(Odd(), MODEL.prior), RNG.standard_normal((80, 8))))
    assert "Co-assignment" in [ax.get_title(loc="left") for ax in figure.axes]


@pytest.mark.parametrize("place", ["grid", "free"])
def test_the_series_and_its_probabilities_divide_the_given_axes(place, posterior):
    figure = Figure(figsize=(6, 4))
    ax = figure.add_subplot() if place == "grid" else figure.add_axes((0.1, 0.2, 0.8, 0.7))
    before = ax.get_position()
    panel, strip = plots.series(posterior, ax)
    assert panel is ax
    upper, lower = panel.get_position(), strip.get_position()
    assert lower.y1 <= upper.y0 + 1e-9
    assert upper.height > 2 * lower.height
    np.testing.assert_allclose([upper.y1, lower.x0, lower.x1], [before.y1, before.x0, before.x1])
    assert lower.y0 >= before.y0 - 1e-9


@pytest.mark.parametrize(
    "use", ["", "import matplotlib.pyplot", "sys.modules['IPython'] = MagicMock(version_info=(9, 0))"]
)
def test_figures_belong_to_pyplot_only_if_pyplot_or_a_notebook_is_in_use(use):
    script = f"""
import sys
from unittest.mock import MagicMock
import numpy as np
{use}
from ihmm import plots
from ihmm.plots._series import BINS
ax = plots.transitions(np.eye(2))
pyplot = sys.modules.get("matplotlib.pyplot")
assert (pyplot is not None and pyplot.get_fignums() == [1] and pyplot.gcf() is ax.figure) == {bool(use)}
"""
    subprocess.run([sys.executable, "-c", script], check=True, env=os.environ | {"MPLBACKEND": "agg"})


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "ihmm.plots")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'ihmm\[plots\]'"):
        importlib.import_module("ihmm.plots")
    assert "plots" not in ihmm.__all__
    assert "plots" in dir(ihmm)


def test_colours_differ_for_21_states_and_start_the_same():
    assert len(set(plots.colours(21))) == 21
    assert plots.colours(30)[:5] == plots.colours(5)
    assert plots.colours(22)[21] == plots.colours(1)[0]


# Series


def test_observations_have_the_colour_of_their_state(posterior):
    panel, strip = plots.series(posterior, by="state")
    assert len(panel.collections) == 3
    for k, dots in enumerate(panel.collections):
        assert to_hex(dots.get_facecolor()[0]) == plots.colours(3)[k].lower()
        here = np.flatnonzero(k == PATH)
        np.testing.assert_allclose(dots.get_offsets(), np.column_stack([here, Y[here]]))
    assert names(panel) == ["state 0", "1", "2"]
    assert strip.get_xlabel() == "step"


def test_stacked_probabilities_sum_to_one(gappy):
    _, strip = plots.series(gappy)
    heights = np.array([area.get_paths()[0].vertices[:, 1].max() for area in strip.collections])
    assert len(heights) == gappy.summary().n_states
    np.testing.assert_allclose(heights[-1], 1)
    assert strip.get_xlim() == (-0.5, 79.5)
    assert strip.get_ylim() == (0, 1)


def test_a_part_of_a_sequence_keeps_its_step_numbers(gappy):
    panel, strip = plots.series(gappy, sequence=1, start=5, stop=15)
    shown = np.concatenate([dots.get_offsets() for dots in panel.collections])
    np.testing.assert_allclose(shown[np.argsort(shown[:, 0])], np.column_stack([np.arange(5, 15), Y[5:15]]))
    assert strip.get_xlim() == (4.5, 14.5)
    assert strip.get_xlabel() == "step of sequence 1"


def test_missing_values_are_shaded_and_have_no_dots(gappy):
    panel, _ = plots.series(gappy)
    assert spans(panel) == [[2.5, 5.5], [29.5, 30.5]]
    assert names(panel)[-1] == "missing"
    dots = np.concatenate([dots.get_offsets() for dots in panel.collections if dots.get_zorder() == 2])
    assert len(dots) == len(Y) - 4
    assert panel.get_ylim()[0] > Y.min() - 1


def test_levels_have_the_colour_of_their_most_used_state(posterior):
    levels = posterior.levels()
    panel, strip = plots.series(posterior)
    assert names(panel) == ["level 0", *map(str, range(1, levels.n_levels))]
    assert strip.get_ylabel() == "P(level)"
    drawn = {to_hex(dots.get_facecolor()[0]): len(dots.get_offsets()) for dots in panel.collections}
    for j in range(levels.n_levels):
        hue = plots.colours(3)[int(np.flatnonzero(levels.level_of_state == j)[0])].lower()
        assert drawn[hue] == np.count_nonzero(levels.segmentation == j)
    with pytest.raises(ValueError, match="by"):
        plots.series(posterior, by="colour")


def test_new_observations_are_coloured_by_smoothing(posterior):
    panel, strip = plots.series(posterior, y=np.full(6, 5.0), by="state")
    counts = [len(dots.get_offsets()) for dots in panel.collections]
    assert counts == [0, 6, 0, 0]
    assert names(panel) == ["state 0", "1", "2", "new"]
    assert len(strip.collections) == 4


def test_symbols_have_lanes(symbols):
    panel, _ = plots.series(symbols)
    for k, group in enumerate(boxes(panel)):
        assert len(group) == np.sum(k == PATH)
        np.testing.assert_allclose(group[:, :, 1].mean(axis=1).round(), k)
        np.testing.assert_allclose(np.ptp(group[:, :, 0], axis=1), 1)
    assert panel.get_ylim() == (-0.6, 3.6)
    assert panel.get_yticks().tolist() == [0, 1, 2, 3]


def test_the_first_six_columns_have_a_panel_each(wide):
    axes = plots.series(wide)
    assert axes.shape == (7,)
    assert [ax.get_ylabel() for ax in axes[:2]] == ["column 0", "column 1"]
    assert axes[5].get_ylabel() == "column 5\n(6 of 8)"
    assert all(spans(ax) == [[39.5, 44.5]] for ax in axes[:6])


def test_a_long_series_is_binned_and_short_events_stay_visible():
    n = 100_000
    path = np.zeros(n, int)
    path[[777, 50_000]] = 1
    y = np.where(path == 1, 40.0, np.sin(np.arange(n)))
    y[60_000:61_000] = np.nan
    posterior = draw_some(y=y, init=path, draws=1, tune=0, chains=1)
    found = posterior.summary().states
    panel, strip = plots.series(posterior)
    drawn = boxes(panel)
    assert sum(map(len, drawn)) <= BINS * posterior.summary().n_states
    left, right, top = (np.concatenate([f(group) for group in drawn]) for f in (
        lambda g: g[:, :, 0].min(axis=1), lambda g: g[:, :, 0].max(axis=1), lambda g: g[:, :, 1].max(axis=1)
    ))  # fmt: skip
    for event in (777, 50_000):
        (hit,) = np.flatnonzero((left < event) & (event < right) & (top == 40))
        assert right[hit] - left[hit] == 100
    assert len(np.unique(found[path == 1])) == 1
    assert spans(panel) == [[59_999.5, 60_999.5]]
    assert all(len(area.get_paths()[0].vertices) < 5 * BINS for area in strip.collections)


@pytest.mark.parametrize("sequence", [-1, 2])
def test_a_sequence_index_out_of_range_is_an_error(gappy, sequence):
    with pytest.raises(ValueError, match=rf"sequence must be from 0 to 1, got {sequence}"):
        plots.series(gappy, sequence=sequence)


@pytest.mark.parametrize(("start", "stop"), [(-1, None), (0, 81), (80, None), (10, 10), (20, 10)])
def test_steps_out_of_range_are_an_error(gappy, start, stop):
    with pytest.raises(ValueError, match=r"0 ≤ start < stop ≤ 80, the length of sequence 0; got"):
        plots.series(gappy, start=start, stop=stop)


# Number of states and traces


def test_bars_are_the_probabilities_of_the_number_of_states(many):
    ax = plots.n_states(many)
    expected = many.n_states_probabilities()
    assert {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in ax.patches} == expected
    labels = [f"{p:.0%}" if p >= 0.01 else "" for p in expected.values()]
    assert [text.get_text() for text in ax.texts] == labels
    assert ax.get_xticks().tolist() == list(expected)


def test_traces_have_one_line_per_chain_and_tuning_is_shaded(posterior):
    axes = plots.traces(posterior, ["n_states", "gamma", "update_rate"])
    assert axes.shape == (3,)
    assert [ax.get_ylabel() for ax in axes] == ["states", "γ", "update_rate"]
    for ax, name in zip(axes, ["n_states", "gamma", "update_rate"], strict=True):
        whole = np.hstack([posterior.warmup.traces[name], posterior.traces[name]])
        np.testing.assert_array_equal([line.get_ydata() for line in ax.lines], whole)
        (shade,) = ax.patches
        assert (shade.get_x(), shade.get_x() + shade.get_width()) == (1, 4.5)
    assert names(axes[0]) == ["chain 0", "chain 1"]
    assert axes[-1].get_xlabel() == "sweep, tuning shaded"


def test_traces_without_warmup_have_no_shading(single):
    (ax,) = plots.traces(single, "n_states")
    assert not ax.patches
    assert ax.get_xlabel() == "draw"


def test_infinite_traces_can_be_drawn(single):
    assert np.isinf(single.traces["gamma"]).all()
    plots.traces(single, ["gamma"])[0].figure.canvas.draw()


def test_a_distant_start_does_not_set_the_y_range():
    y = ihmm.datasets.four_state(300).y
    posterior = draw_some(y=y, init=20, tune=30, draws=20, save_warmup=True, sampler=ihmm.DirectAssignment())
    (ax,) = plots.traces(posterior, ["log_joint"])
    assert ax.get_ylim()[0] > posterior.warmup.traces["log_joint"][:, 0].min()
    assert ax.get_ylim()[0] < posterior.traces["log_joint"].min()


def test_interrupted_chains_are_drawn_up_to_their_last_draw():
    posterior = stopped(8, tune=0)
    (ax,) = plots.traces(posterior, ["log_joint"])
    assert [len(line.get_ydata()) for line in ax.lines] == [3, 2, 2]
    (line,) = plots.compare({"stopped": posterior}, "log_joint").lines
    assert len(line.get_ydata()) == 3
    plots.overview(posterior)


def test_a_chain_interrupted_while_tuning_does_not_shift_the_others():
    posterior = stopped(11, tune=3, save_warmup=True)
    assert [draws.chain for draws in posterior.draws] == [0]
    (ax,) = plots.traces(posterior, ["log_joint"])
    (line,) = ax.lines
    expected = [posterior.warmup.draws[0].traces["log_joint"], posterior.draws[0].traces["log_joint"]]
    np.testing.assert_array_equal(line.get_ydata(), np.concatenate(expected))


def test_an_unknown_trace_is_an_error_that_lists_the_known_ones(posterior):
    with pytest.raises(ValueError, match=r"names must be one of 'n_states', 'log_joint', .*, got 'likelihood'"):
        plots.traces(posterior, ["n_states", "likelihood"])
    with pytest.raises(ValueError, match=r"quantity must be one of 'n_states', .*, got 'likelihood'"):
        plots.compare({"one": posterior}, "likelihood")


def test_traces_need_an_axes_for_every_name(posterior):
    with pytest.raises(ValueError, match="expected one Axes for each of 2 names, got 1"):
        plots.traces(posterior, ["n_states", "gamma"], [Figure().add_subplot()])


# Transitions


def test_cells_of_a_small_matrix_show_their_values(posterior):
    ax = plots.transitions(posterior)
    rows = posterior.summary().transitions
    np.testing.assert_array_equal(ax.images[0].get_array(), rows)
    assert [text.get_text() for text in ax.texts] == [f"{p:.2f}" for p in rows.ravel()]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("to state", "from state")
    assert ax.get_xticks().tolist() == [0, 1, 2]


def test_a_large_matrix_has_a_colour_bar_instead(many):
    ax = plots.transitions(many)
    assert many.summary().n_states > 12
    assert not ax.texts
    (bar,) = ax.child_axes
    assert bar.get_ylabel() == "probability"


def test_only_square_matrices_can_be_drawn():
    assert len(plots.transitions([[0.5, 0.5], [0.1, 0.9]]).texts) == 4
    with pytest.raises(ValueError, match=r"square matrix of transitions, got shape \(2, 3\)"):
        plots.transitions(np.ones((2, 3)))


# Densities


def test_densities_of_the_states_sum_to_the_total(posterior):
    ax = plots.emissions(posterior)
    total, *states = [line.get_ydata() for line in ax.lines]
    assert len(states) == 3
    np.testing.assert_allclose(np.sum(states, axis=0), total, atol=1e-12)
    grid = ax.lines[0].get_xdata()
    areas = [np.trapezoid(curve, grid) for curve in states]
    np.testing.assert_allclose(areas, np.bincount(PATH) / len(PATH), atol=0.05)
    peaks = [grid[curve.argmax()] for curve in states]
    np.testing.assert_allclose(peaks, MEANS, atol=0.3)
    assert names(ax) == ["0", "1", "2", "all", "data"]
    np.testing.assert_allclose(sum(bar.get_height() * bar.get_width() for bar in ax.patches), 1)


def test_a_custom_emission_is_drawn_with_its_own_density():
    counts = RNG.geometric(1 / (1 + np.array([1.0, 20.0, 60.0])[PATH])) - 1
    posterior = draw_some(ihmm.Model(Counts(), MODEL.prior), counts)
    ax = plots.emissions(posterior)
    assert ax.get_ylabel() == "probability"
    assert {line.get_drawstyle() for line in ax.lines} == {"steps-mid"}
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), np.arange(counts.min(), counts.max() + 1))
    assert 0.5 < ax.lines[0].get_ydata().sum() < 1


def test_symbols_have_one_bar_per_state(symbols):
    ax = plots.emissions(symbols)
    data, *states = [[bar.get_height() for bar in group] for group in ax.containers[:4]]
    np.testing.assert_allclose(data, np.bincount(PATH, minlength=4) / len(PATH))
    np.testing.assert_allclose(np.sum(states, axis=(0, 1)), 1)
    assert [int(np.argmax(bars)) for bars in states] == [0, 1, 2]


def test_missing_values_are_not_in_the_histogram(gappy):
    ax = plots.emissions(gappy)
    seen = gappy.data.values[~np.isnan(gappy.data.values)]
    edges = [bar.get_x() for bar in ax.patches]
    np.testing.assert_allclose(edges[0], seen.min())
    width = ax.patches[0].get_width()
    np.testing.assert_allclose(ax.patches[0].get_height() * width * len(seen), np.sum(seen < seen.min() + width))


def test_one_of_several_columns_has_normal_densities(wide):
    ax = plots.emissions(wide, column=3)
    assert ax.get_xlabel() == "column 3"
    k = 0
    grid, curve = ax.lines[1 + k].get_data()
    mean, share = wide.summary().phi.mean[k, 3], wide.summary().shares[k]
    expected = share * np.exp(-0.5 * (grid - mean) ** 2) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(curve, expected, atol=0.01)
    assert plots.emissions(wide).get_xlabel() == "column 0"


def test_columns_without_a_density_are_an_error(wide, posterior):
    for found, column, last in ((wide, 8, 7), (posterior, 1, 0), (wide, -1, 7)):
        with pytest.raises(ValueError, match=f"column must be from 0 to {last}, got {column}"):
            plots.emissions(found, column=column)
    odd = draw_some(ihmm.Model(Odd(), MODEL.prior), RNG.standard_normal((80, 8)))
    with pytest.raises(ValueError, match=r"cannot plot the density of this column of Odd: .* named mean and variance"):
        plots.emissions(odd)


MIXED = ihmm.Independent(
    mode=ihmm.Categorical(3), speed=ihmm.Normal(), on=ihmm.Bernoulli(2), place=ihmm.MultivariateNormal(2)
)


def test_mixed_columns_are_drawn_with_their_own_densities():
    y = ihmm.simulate(ihmm.Model(MIXED), 80, seed=1).y[0]
    y[3, 0] = y[5, 2] = np.nan
    y[:, 5] = np.nan
    mixed = draw_some(ihmm.Model(MIXED, MODEL.prior), y)
    n_states = mixed.summary().n_states
    bars = plots.emissions(mixed, column=0)
    assert bars.get_ylabel() == "probability"
    assert len(bars.patches) == 3 * (1 + n_states)
    for column, whole in ((1, False), (2, True), (3, True), (4, False)):
        ax = plots.emissions(mixed, column=column)
        assert ax.get_ylabel() == ("probability" if whole else "density")
        grid, curve = ax.lines[0].get_data()  # all states together
        if whole:
            assert curve.sum() == pytest.approx(1)
        else:  # part of the mass lies outside the range of the data
            assert 0.7 < np.trapezoid(curve, grid) < 1.01
    with pytest.raises(ValueError, match="cannot plot the density of this column of Independent"):
        plots.emissions(mixed, column=5)  # all values are missing
    plots.overview(mixed)


# Dwell times and co-assignment


def test_dwell_times_are_survival_curves_with_medians(posterior):
    ax = plots.dwell_times(posterior)
    assert ax.get_yscale() == "log"
    assert names(ax) == ["0: 15", "1: 10", "2: 10"]
    steps, share = ax.lines[0].get_data()  # runs of 20, 15 and 15 steps
    np.testing.assert_array_equal(steps, np.arange(1, 21))
    np.testing.assert_allclose(share, np.where(steps <= 15, 1, 1 / 3))
    steps, law = ax.lines[1].get_data()
    stays = 1 - 1 / posterior.summary().dwell[:, 0]
    np.testing.assert_allclose(law, np.median(stays[:, None] ** (steps - 1), axis=0))


def test_the_fitted_duration_law_is_drawn_over_the_dwell_times():
    law = ihmm.durations.NegativeBinomial(minimum=2)
    model = ihmm.Model(ihmm.NormalMean(noise=0.3, scale=5), ihmm.HDPPrior(1.0, 1.0), law)
    posterior = draw_some(model)
    ax, found = plots.dwell_times(posterior), posterior.summary()
    steps, median = ax.lines[1].get_data()
    own = type(found.durations)(*(values[:, 0] for values in found.dwell_law.values()))
    np.testing.assert_allclose(median, np.median(np.exp(law.log_survivor(steps[:, None], own)), axis=1))
    assert median[1] == 1.0  # no visit is shorter than the minimum
    bands = [each for each in ax.collections if isinstance(each, PolyCollection)]
    assert len(bands) == found.n_states
    assert {"dwell_r", "dwell_r_low", "dwell_r_high", "dwell_p"} < set(found.table())
    assert "dwell r" in repr(found)
    assert "dwell r" in states(posterior, ["y"]).header


def test_runs_end_where_a_sequence_ends(gappy):
    longest = max(len(line.get_xdata()) for line in plots.dwell_times(gappy).lines)
    assert longest == 20


def test_a_state_that_is_never_left_has_one_run(single):
    ax = plots.dwell_times(single)
    assert names(ax) == ["0: 20"]
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), np.ones(20))


def test_co_assignment_is_shown_on_the_scale_of_steps(gappy):
    ax = plots.co_assignment(gappy)
    np.testing.assert_array_equal(ax.images[0].get_array(), gappy.co_assignment())
    assert ax.get_xlim() == (-0.5, 104.5)
    assert len(ax.lines) == 2  # the second sequence begins


def test_chosen_steps_are_labelled_by_their_number(posterior):
    ax = plots.co_assignment(posterior, steps=[5, 9, 70])
    ax.set_xticks([0, 1, 2])
    ax.figure.canvas.draw()
    assert [label.get_text() for label in ax.get_xticklabels()] == ["5", "9", "70"]


# Forecasts


def test_a_fan_chart_continues_the_history(posterior):
    future = posterior.forecast(7)
    ax = plots.forecast(future, history=Y[-10:])
    median, past = ax.lines[:2]
    np.testing.assert_array_equal(median.get_ydata(), np.median(future.y, axis=0))
    np.testing.assert_array_equal(median.get_xdata(), np.arange(1, 8))
    np.testing.assert_array_equal(past.get_data(), [np.arange(-9, 1), Y[-10:]])
    outer = ax.collections[0].get_paths()[0].vertices[:, 1]
    np.testing.assert_allclose([outer.min(), outer.max()], [future.interval()[0].min(), future.interval()[1].max()])
    assert names(ax) == ["median", "50%", "80%", "95%"]


def test_a_forecast_of_several_columns_has_a_panel_per_column(wide):
    axes = plots.forecast(wide.forecast(3), history=wide.data.values[-5:])
    assert axes.shape == (6,)
    assert [ax.get_ylabel() for ax in axes[:2]] == ["column 0", "column 1"]


def test_the_fan_of_a_forecast_of_angles_is_centred_on_their_direction():
    angles = np.angle(np.exp(1j * (np.pi + 0.1 * np.random.default_rng(0).standard_normal((200, 5)))))
    ax = plots.forecast(Forecast(angles, np.zeros((200, 5), np.int64), circular=True))
    low, high = ax.get_ylim()
    assert high - low < 2


def test_invalid_forecasts_and_histories_are_errors(gappy, posterior):
    with pytest.raises(TypeError, match=r"expected a Forecast, got list; .* one by one"):
        plots.forecast(gappy.forecast(3))
    with pytest.raises(ValueError, match=r"history must have shape \(steps,\) to match the forecast, got \(5, 2\)"):
        plots.forecast(posterior.forecast(3), history=np.ones((5, 2)))


# Comparisons


def test_runs_are_compared_by_medians_over_chains_from_the_first_sweep(posterior, single):
    ax = plots.compare({"ours": posterior, "theirs": single}, "log_joint")
    whole = np.hstack([posterior.warmup.traces["log_joint"], posterior.traces["log_joint"]])
    np.testing.assert_allclose(ax.lines[0].get_data(), [np.arange(1, 11), np.median(whole, axis=0)])
    np.testing.assert_allclose(ax.lines[1].get_ydata(), np.median(single.traces["log_joint"], axis=0))
    assert len(ax.collections) == 2
    assert names(ax) == ["ours", "theirs"]


def test_autocorrelations_start_at_one_and_are_one_for_constant_chains(posterior, single):
    ax = plots.compare({"ours": posterior, "still": single}, "n_states", lags=4)
    np.testing.assert_array_equal(ax.lines[1].get_data(), [np.arange(5), np.ones(5)])
    ax = plots.compare({"ours": posterior}, "log_joint", lags=1)
    x = posterior.traces["log_joint"] - posterior.traces["log_joint"].mean(axis=1, keepdims=True)
    expected = (x[:, 1:] * x[:, :-1]).sum(axis=1) / np.square(x).sum(axis=1)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [1, np.median(expected)])


def test_invalid_comparisons_are_errors(posterior):
    with pytest.raises(
        ValueError, match="expected posteriors to map at least one name to a posterior, got an empty mapping"
    ):
        plots.compare({})
    with pytest.raises(ValueError, match="lags must be less than the number of draws, 6, got 6"):
        plots.compare({"one": posterior}, lags=6)


def test_states_symbols_and_columns_have_their_names():
    settings = {"draws": 10, "tune": 10, "chains": 1, "seed": 1, "progress": False}
    letters = np.random.default_rng(0).choice(list("ACGT"), 60)
    posterior = ihmm.sample(ihmm.Model(ihmm.Categorical(4)), letters, **settings).relabel(names={0: "rich"})
    assert [tick.get_text() for tick in plots.series(posterior)[0].get_yticklabels()] == list("ACGT")
    assert [tick.get_text() for tick in plots.emissions(posterior).get_xticklabels()] == list("ACGT")
    assert plots.transitions(posterior).get_xticklabels()[0].get_text() == "rich"
    assert plots.emissions(posterior).get_legend().get_texts()[0].get_text() == "rich"
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["force", "length"])
    posterior = ihmm.sample(ihmm.Model(ihmm.MultivariateNormal(2)), frame, **settings)
    assert [panel.get_ylabel() for panel in plots.series(posterior)[:2]] == ["force", "length"]
    assert plots.emissions(posterior, column=1).get_xlabel() == "length"
