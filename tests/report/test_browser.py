"""A report in a real browser: figures, zooming, narrow screens and the dark theme."""

from pathlib import Path

import numpy as np
import pytest

import browser
from ihmm import report
from ihmm.report._series import date_axis
from report_cases import KINDS, MEANS, NASTY, RNG, Y, draw_some


@pytest.fixture(scope="module")
def window():
    program = browser.find()
    if program is None:
        pytest.skip(browser.NOT_FOUND)
    window = browser.Browser(program)
    yield window
    window.close()


@pytest.fixture(scope="module")
def long(tmp_path_factory) -> Path:
    """100 000 steps."""
    n = 100_000
    path = (np.cumsum(RNG.random(n) < 0.005) % 2).astype(int)
    path[77_777] = 2
    y = MEANS[path] + 0.3 * RNG.standard_normal(n)
    y[3000:5000] = np.nan
    posterior = draw_some(y=y, init=path, draws=4, tune=1)
    return report.write(posterior, tmp_path_factory.mktemp("long") / "report.html")


def drawn(name: str, field: str = "x") -> str:
    """A JavaScript expression for a column of a data source."""
    return f"Array.from({model(name)}.data.{field})"


def model(name: str) -> str:
    return f"Bokeh.documents.map((one) => one.get_model_by_name('{name}')).find((found) => found)"


def assert_no_errors(window: browser.Browser) -> None:
    assert window.errors == []
    assert [url for url in window.requests if not url.startswith(("file:", "data:", "blob:"))] == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_figure_is_drawn_without_errors(kind, request, window, tmp_path):
    posterior = request.getfixturevalue(kind)
    n_columns = posterior.data.y[0].size
    names = NASTY[:n_columns]
    window.open(report.write(posterior, tmp_path / "page.html", title=NASTY[2], names=names))
    figures = window.evaluate("[...document.querySelectorAll('.plot')].map((plot) => [plot.id, plot.clientHeight])")
    expected = {"series", "transitions", "dwell_times", "n_states", "trace-n_states", "trace-log_joint"}
    assert expected | {f"emissions-{c}" for c in range(n_columns)} <= {name for name, _ in figures}
    assert all(height > 100 for _, height in figures)
    assert window.evaluate("document.querySelector('h1').textContent") == NASTY[2]
    shown = "boxes" if kind == "symbols" else "dots"
    observed = np.count_nonzero(~np.isnan(posterior.data.values.reshape(-1, n_columns)[:, -1].astype(float)))
    assert window.evaluate(f"{drawn(f'{shown}-{n_columns - 1}', 'state')}.length") == observed
    assert_no_errors(window)


@pytest.mark.slow
def test_a_hundred_thousand_steps_load_quickly_and_show_a_single_step_event(long, window):
    seconds = window.open(long)
    size = long.stat().st_size / 1e6
    print(f"100 000 steps: {size:.1f} MB, ready after {seconds:.2f} s")
    assert size < 5
    assert seconds < 10
    assert "2" in window.evaluate(drawn("boxes-0", "state"))
    assert 77_777 in window.evaluate(drawn("dots-0"))  # isolated, so it has a marker
    assert window.evaluate(f"{drawn('boxes-0', 'left')}.length") < 5000
    assert window.evaluate(f"[{drawn('gaps-0', 'begin')}, {drawn('gaps-0', 'end')}]") == [[2999.5], [4999.5]]
    assert_no_errors(window)


@pytest.mark.slow
def test_scrolling_zooms_in_to_single_steps(long, window):
    window.open(long)
    left, top, width, height = window.evaluate(
        "(({x, y, width, height}) => [x, y, width, height])(document.getElementById('series').getBoundingClientRect())"
    )
    before = window.evaluate(f"[{model('x')}.start, {model('x')}.end]")
    for _ in range(12):
        window.mouse("mouseWheel", left + width / 2, top + height / 3, deltaX=0, deltaY=-240)
    window.wait_for(f"{drawn('line-0')}.length > 1")
    start, end = window.evaluate(f"[{model('x')}.start, {model('x')}.end]")
    assert before == [-0.5, 99_999.5]
    assert end - start < 2000
    steps = window.evaluate(drawn("dots-0"))
    assert np.all(np.diff(steps) == 1)
    np.testing.assert_allclose([steps[0], steps[-1]], [start, end], atol=1)
    strip = window.evaluate(f"[{drawn('strip', 'left')}.at(0), {drawn('strip', 'right')}.at(-1)]")
    np.testing.assert_allclose(strip, [start, end], atol=1.5)
    for _ in range(30):
        window.mouse("mouseWheel", left + width / 2, top + height / 3, deltaX=0, deltaY=-240)
    window.wait_for(f"{model('x')}.end - {model('x')}.start == 4")  # and no further
    assert_no_errors(window)


@pytest.mark.slow
def test_dragging_pans_and_buttons_zoom(long, window):
    window.open(long)
    span = f"[{model('x')}.start, {model('x')}.end]"
    click = "document.querySelector('[data-{}=\"{}\"]').click()"
    window.evaluate(click.format("zoom", "0.5"))
    np.testing.assert_allclose(window.evaluate(span), [24_999.5, 74_999.5])
    window.evaluate(click.format("move", "0.5"))
    np.testing.assert_allclose(window.evaluate(span), [49_999.5, 99_999.5])
    x, y = window.evaluate(
        "(({x, y, width, height}) => [x + width / 2, y + height / 3])"
        "(document.getElementById('series').getBoundingClientRect())"
    )
    window.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
    for by in (20, 60, 100):
        window.mouse("mouseMoved", x + by, y, button="left", buttons=1)
    window.mouse("mouseReleased", x + 100, y, button="left", clickCount=1)
    window.wait_for(f"{model('x')}.start < 48000")
    window.evaluate(click.format("zoom", "Infinity"))
    np.testing.assert_allclose(window.evaluate(span), [-0.5, 99_999.5])
    assert_no_errors(window)


@pytest.mark.slow
def test_the_steps_of_a_selected_sequence_are_counted_from_zero(several, window, tmp_path):
    window.open(report.write(several, tmp_path / "page.html"))
    assert window.evaluate(drawn("borders-0")) == [79.5, 104.5]
    assert (
        window.evaluate(f"{drawn('line-0')}.filter(Number.isNaN).length") == 4
    )  # two borders between sequences, two gaps
    window.evaluate(
        "((choice) => { choice.value = '1'; choice.dispatchEvent(new Event('change')); })"
        "(document.getElementById('sequence'))"
    )
    window.wait_for(f"{drawn('dots-0')}.length == 25")
    assert window.evaluate(drawn("dots-0")) == list(range(25))
    np.testing.assert_allclose(window.evaluate(drawn("dots-0", "y")), Y[:25], rtol=1e-6)
    assert window.evaluate(drawn("borders-0")) == []
    assert window.evaluate(drawn("gaps-0", "begin")) == []
    assert window.evaluate(f"[{model('x')}.start, {model('x')}.end]") == [-0.5, 24.5]
    assert_no_errors(window)


@pytest.mark.slow
def test_names_are_escaped_in_tooltips(wide, window, tmp_path):
    window.open(report.write(wide, tmp_path / "page.html", names=NASTY))
    x, y = window.evaluate(
        "(() => { const frame = document.getElementById('transitions').getBoundingClientRect();"
        " scrollTo(0, frame.y - 100); return [frame.x + frame.width / 2, 100 + frame.height / 2]; })()"
    )
    window.mouse("mouseMoved", x - 3, y)
    window.mouse("mouseMoved", x, y)
    seen = """(function walk(node) { return [node.shadowRoot, ...node.childNodes].filter(Boolean)
        .map((part) => part.nodeType == 3 ? part.data : walk(part)).join(" "); })(document.body)"""
    window.wait_for(f"{seen}.includes('probability')", seconds=5)
    assert_no_errors(window)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["posterior", "several", "wide"])
def test_a_narrow_screen_needs_no_horizontal_scrolling(kind, request, window, tmp_path):
    window.open(report.write(request.getfixturevalue(kind), tmp_path / "page.html"), width=390, touch=True)
    assert window.evaluate("document.documentElement.scrollWidth") <= 390
    assert (
        window.evaluate("Math.max(...[...document.querySelectorAll('.plot')].map((plot) => plot.clientWidth))") <= 390
    )
    assert_no_errors(window)


@pytest.mark.slow
def test_page_and_figures_follow_the_dark_theme(posterior, window, tmp_path):
    file = report.write(posterior, tmp_path / "page.html")
    look = (
        "[getComputedStyle(document.body).backgroundColor, [...Bokeh.documents[0].all_models]"
        ".find((model) => model.type == 'LinearAxis').major_label_text_color]"
    )
    window.open(file)
    assert window.evaluate(look) == ["rgb(255, 255, 255)", "#1c2126"]
    window.open(file, dark=True)
    assert window.evaluate(look) == ["rgb(20, 24, 28)", "#e6e9ec"]
    assert_no_errors(window)


@pytest.mark.slow
def test_tables_and_the_series_are_saved_as_csv_and_figures_as_svg(several, window, tmp_path):
    window.open(report.write(several, tmp_path / "page.html", names=["current, pA"]))
    saved = window.evaluate("""(async () => {
        const blobs = [], keep = URL.createObjectURL;
        URL.createObjectURL = (blob) => (blobs.push(blob), keep(blob));
        const buttons = [...document.querySelectorAll("button.save")];
        for (const button of buttons) button.click();
        while (blobs.length < buttons.length) await new Promise((done) => setTimeout(done, 20));
        return Promise.all(blobs.map(async (blob) => [blob.type, await blob.text()]));
    })()""")
    figures = window.evaluate("document.querySelectorAll('.plot').length")
    assert sum(kind == "image/svg+xml" and text.startswith("<svg") for kind, text in saved) == figures
    series, levels, states, transitions = [text.splitlines() for kind, text in saved if kind == "text/csv"]
    observed = np.count_nonzero(np.isfinite(several.data.values))
    assert len(series) == 1 + observed
    assert series[0] == "step,sequence,time,column,value,state,probability"
    assert series[-1].startswith('79,2,79,"current, pA",')
    assert len(levels) == 1 + several.levels().n_levels
    assert len(states) == len(transitions) == 1 + several.summary().n_states
    assert states[1].split(",")[0] == "0"
    assert_no_errors(window)


@pytest.mark.slow
def test_the_axis_has_dates_if_they_are_known(window, tmp_path):
    pandas = pytest.importorskip("pandas")
    days = pandas.date_range("2019-01-01", periods=len(Y))
    posterior = draw_some(y=pandas.Series(Y, index=days))
    window.open(report.write(posterior, tmp_path / "page.html"))
    end = window.evaluate(f"{model('time')}.end")
    assert abs(end - days[-1].timestamp() * 1000) < 86_400_000
    assert_no_errors(window)


def test_dates_that_are_far_from_evenly_spaced_are_not_on_the_axis():
    pandas = pytest.importorskip("pandas")
    days = pandas.date_range("2019-01-01", periods=len(Y))
    late = days.where(np.arange(len(Y)) < 60, days + pandas.Timedelta("100D"))
    with pytest.warns(UserWarning, match="irregular"):
        assert date_axis(draw_some(y=pandas.Series(Y, index=late))) is None
    with pytest.warns(UserWarning, match="irregular"):
        weekdays = draw_some(y=pandas.Series(Y, index=pandas.bdate_range("2019-01-01", periods=len(Y))))
    assert date_axis(weekdays) is not None
    assert date_axis(draw_some(y=pandas.Series(Y, index=days))) == (days[0].timestamp() * 1000, 86_400_000.0)
