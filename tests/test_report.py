"""A report says what the posterior says, in a file that needs nothing else, and a real browser shows it."""

import importlib
import json
import re
import subprocess
import sys
import time
import zipfile
from html import unescape
from pathlib import Path

import numpy as np
import pytest

import browser
import ihmm
from ihmm import report
from ihmm.report import _series, _words

RNG = np.random.default_rng(5)
MEANS = np.array([0.0, 5.0, 10.0])
PATH = np.repeat([0, 1, 0, 2, 1, 0], [20, 10, 15, 10, 10, 15])
Y = MEANS[PATH] + 0.3 * RNG.standard_normal(len(PATH))
MODEL = ihmm.Model(ihmm.NormalMean(noise=0.3, scale=5), ihmm.HDPPrior(concentration=1.0, stickiness=0.5))
NASTY = ["<script>alert(1)</script>", "$$x^2$$ @{y} $index", "</script><b>'&\"amp;"]


def draw_some(model=MODEL, y=Y, init=PATH, **settings) -> ihmm.Posterior:
    settings = {"draws": 6, "tune": 4, "chains": 2, "seed": 1, "moves": ()} | settings
    return ihmm.sample(model, y, init=init, progress=False, **settings)


@pytest.fixture(scope="module")
def posterior() -> ihmm.Posterior:
    return draw_some(draws=60)


@pytest.fixture(scope="module")
def several() -> ihmm.Posterior:
    gappy = Y.copy()
    gappy[[3, 4, 5, 30]] = np.nan
    return draw_some(y=[gappy, Y[:25], Y], init=[PATH, PATH[:25], PATH], save_warmup=True)


@pytest.fixture(scope="module")
def wide() -> ihmm.Posterior:
    y = 4.0 * PATH[:, None] + RNG.standard_normal((len(PATH), 3))
    y[40:45, 1] = np.nan
    return draw_some(ihmm.Model(ihmm.MultivariateNormal(3), MODEL.prior), y)


@pytest.fixture(scope="module")
def symbols() -> ihmm.Posterior:
    return draw_some(ihmm.Model(ihmm.Categorical(4, 0.1), MODEL.prior), PATH)


@pytest.fixture(scope="module")
def counts() -> ihmm.Posterior:
    return draw_some(
        ihmm.Model(ihmm.Poisson(), MODEL.prior), np.array([0, 9, 40])[PATH] + RNG.integers(0, 3, len(PATH))
    )


@pytest.fixture(scope="module")
def single() -> ihmm.Posterior:
    model = ihmm.Model(ihmm.Normal(), ihmm.FinitePrior(1, gamma=None))
    return draw_some(model, Y[:20], 1, sampler=ihmm.Blocked(), chains=1)


KINDS = ["posterior", "several", "wide", "symbols", "counts", "single"]


def words(page: str) -> str:
    """What a reader sees of a page without its figures."""
    page = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def tables(page: str) -> list[list[list[str]]]:
    def parts(tag: str, text: str) -> list[str]:
        return re.findall(rf"<{tag}(?: [^>]*)?>(.*?)</{tag}>", text, re.DOTALL)

    rows = [parts("tr", table) for table in parts("table", page)]
    return [[[words(cell) for cell in parts("t[hd]", row)] for row in table] for table in rows]


def embedded(page: str) -> dict:
    """What the page holds of the series."""
    return json.loads(re.search(r'id="series-data">(.*?)</script>', page, re.DOTALL)[1])


# Words and numbers


def test_the_page_begins_with_what_was_found(posterior):
    text = words(report.render(posterior, title="Channel 7"))
    check = posterior.check()
    assert text.startswith(f"Channel 7 Channel 7 3 states; 95 % of the draws visit exactly 3. {check.verdict} steps 80")
    for finding in check.findings:
        assert finding.text in text
    assert f"ihmm {ihmm.__version__}" in text
    assert time.strftime("%Y-") in text


def test_numbers_of_steps_sequences_and_missing_values_are_told(several):
    facts = _words.facts(several)
    assert facts == {
        "steps": "185",
        "sequences": "3, of 25 to 80 steps",
        "missing values": "4 (2.16%)",
        "chains": "2",
        "draws": "6 a chain",
    }
    assert "4 (2.16%)" in words(report.render(several))


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_of_states_has_the_numbers_of_the_summary(kind, request):
    posterior = request.getfixturevalue(kind)
    shown, expected = tables(report.render(posterior))[0], posterior.summary().table()
    assert len(shown) == 1 + len(expected)
    for k, row in enumerate(shown[1:]):
        assert row[0].endswith(f" {k}")
        assert row[1:3] == [f"{expected.share[k]:.1%}", f"{expected.support[k]:.0%}"]
        triples = expected.iloc[k, 2:].to_numpy().reshape(-1, 3)
        assert row[3:] == ["{} [{}, {}]".format(*map(_words.number, triple)) for triple in triples]


def test_numbers_have_three_digits_and_few_exponents():
    numbers = [1920.4, 0.5, -0.012345, 1e-7, 123456.0, 2e9, 4.0]
    assert [_words.number(x) for x in numbers] == ["1920", "0.5", "−0.0123", "1e−07", "123000", "2e+09", "4"]


def test_transitions_are_there_to_be_read(posterior):
    shown = tables(report.render(posterior))[1]
    np.testing.assert_allclose(
        [[float(cell) for cell in row[1:]] for row in shown[1:]], posterior.summary().transitions, atol=5e-5
    )


def test_settings_are_those_of_the_model_and_those_given(posterior):
    rows = dict(tables(report.render(posterior, settings={"file": "a<b>.csv", "lab": {"rate": 5}}))[-1])
    assert rows["emission"] == "NormalMean"
    assert rows["emission.noise"] == "0.3"
    assert rows["prior.gamma"] == "GammaPrior(shape=1.0, rate=1.0)"
    assert rows["sampler.n_particles"] == "10"
    assert rows["seed"] == "1"
    assert rows["file"] == "a<b>.csv"
    assert rows["lab.rate"] == "5"


def test_without_arviz_the_page_says_so(posterior, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz_stats.base", None)
    text = words(report.render(posterior))
    assert "was not judged: checking convergence needs ArviZ: pip install 'ihmm[arviz]'" in text
    assert "3 states; 95 % of the draws visit exactly 3. steps" in text


def test_one_state_is_one_state(single):
    assert words(report.render(single)).startswith("Hidden states Hidden states 1 state; 95 %")


def test_columns_of_several_kinds_have_a_figure_each_and_shares_have_none():
    emission = ihmm.Independent(mode=ihmm.Categorical(3), speed=ihmm.Normal(), shares=ihmm.Multinomial(2))
    y = ihmm.simulate(ihmm.Model(emission), 80, seed=1).y[0]
    page = words(report.render(draw_some(ihmm.Model(emission), y), names=["mode", "speed", "left", "right"]))
    assert [f"Observations by state: {name}" in page for name in ("mode", "speed", "left", "right")] == [1, 1, 0, 0]
    assert "speed_mean" in page
    ones = draw_some(ihmm.Model(ihmm.Bernoulli(2)), y[:, :2] > 0)
    assert "probs of wet" in words(report.render(ones, names=["wet", "warm"]))


def test_names_stand_where_columns_are_meant(wide):
    header = tables(report.render(wide, names=["force", "torque", "angle"]))[0][0]
    assert header[4:8] == ["mean of force", "mean of torque", "mean of angle", "covariance of force"]
    assert "covariance of force and angle" in header
    assert "mean of column 1" in tables(report.render(wide))[0][0]


# One file that needs nothing else


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_loaded_from_elsewhere(kind, request):
    page = report.render(request.getfixturevalue(kind))
    tags = re.findall(r"<[a-z][^<>]*>", re.sub(r"(<script[^>]*>).*?</script>", r"\1", page, flags=re.DOTALL))
    assert not [tag for tag in tags if re.search(r"\b(src|href|srcset|action|poster|data)=", tag)]
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
    assert "url(" not in style
    assert "@import" not in style
    assert "default-src 'none'" in page


def test_what_users_write_is_text(wide):
    page = report.render(wide, title=NASTY[0], names=NASTY, settings={NASTY[0]: NASTY[2]})
    assert "<script>alert" not in page
    assert "</script><b>" not in page
    text = words(page)
    assert text.startswith(f"{NASTY[0]} {NASTY[0]} 3 states")
    for name in NASTY:
        assert f"mean of {name}" in text
    assert [NASTY[0], NASTY[2]] in tables(page)[-1]


def test_names_of_axes_are_never_taken_for_tex(wide):
    """It would be fetched from elsewhere."""
    page = report.render(wide, names=NASTY)
    items = [json.loads(item) for item in re.findall(r'data-figure="[^"]*">(.*?)</script>', page, re.DOTALL)]
    labels = []

    def collect(part):
        if isinstance(part, dict):
            labels.extend([part["axis_label"]] if "axis_label" in part else [])
            [collect(value) for value in part.values()]
        elif isinstance(part, list):
            [collect(value) for value in part]

    collect(items)
    assert len(labels) > 10
    assert all(label is None or label["name"] == "PlainText" for label in labels)


@pytest.mark.slow
def test_a_wheel_has_the_page_in_it(tmp_path):
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, root]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("pip cannot build a wheel here: it needs hatchling from a package index")
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {f"ihmm/report/page.{kind}" for kind in ("html", "css", "js")} <= set(names)


def test_the_file_is_written_and_replaced(posterior, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    assert report.write(posterior, str(path), title="new") == path
    assert "<h1>new</h1>" in path.read_text("utf-8")


def test_a_folder_is_not_a_file(posterior, tmp_path):
    with pytest.raises(IsADirectoryError, match=r"is a folder; give the path of a file, such as .*report\.html"):
        report.write(posterior, tmp_path)


def test_the_folder_must_be_there(posterior, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere does not exist; make it first"):
        report.write(posterior, tmp_path / "nowhere" / "report.html")


def test_names_must_be_as_many_as_columns(wide):
    with pytest.raises(ValueError, match=r"names must be as many as the series has columns, 3, got 1: \['y'\]"):
        report.render(wide, names="y")


def test_without_bokeh_the_way_out_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "ihmm.report")
    monkeypatch.setitem(sys.modules, "bokeh", None)
    with pytest.raises(ImportError, match=r"pip install 'ihmm\[report\]'"):
        importlib.import_module("ihmm.report")
    assert "report" not in ihmm.__all__
    assert "report" in dir(ihmm)


# What the page holds of a long series


def test_a_series_that_is_not_long_is_kept_whole_but_for_what_is_missing():
    values = np.array([1.0, np.nan, 3.0, 2.0])
    size, kept = _series.kept(values, np.array([0, 0, 1, 0]), most=4)
    assert size == 1
    np.testing.assert_array_equal(kept.step, [0, 2, 3])
    np.testing.assert_array_equal(kept.value, [1, 3, 2])
    np.testing.assert_array_equal(kept.state, [0, 1, 0])


def test_an_event_of_one_step_in_a_million_is_kept():
    n = 1_000_000
    values, states = RNG.standard_normal(n), (np.arange(n) // 1000) % 2
    values[123_456], values[654_321] = 20, -20  # of its state, but extreme
    states[777_777] = 2  # nothing special but for its state
    size, kept = _series.kept(values, states, most=50_000)
    assert len(kept.step) <= 50_000
    assert size > 1
    assert {123_456, 654_321, 777_777} <= set(kept.step.tolist())
    np.testing.assert_allclose(kept.value, values[kept.step], rtol=1e-6)
    np.testing.assert_array_equal(kept.state, states[kept.step])


def test_every_piece_and_state_keeps_its_lowest_and_its_highest():
    values, states = RNG.standard_normal(1000).round(1), RNG.integers(0, 3, 1000)
    values[RNG.random(1000) < 0.1] = np.nan
    steps = _series.extremes(values, states, 30)
    assert np.all(np.diff(steps) > 0)
    for begin in range(0, 1000, 30):
        for k in range(3):
            here = values[begin : begin + 30][states[begin : begin + 30] == k]
            mine = steps[(steps >= begin) & (steps < begin + 30)]
            mine = values[mine[states[mine] == k]]
            assert mine.min() == np.nanmin(here)
            assert mine.max() == np.nanmax(here)


def test_every_piece_keeps_every_symbol_of_every_state():
    values, states = RNG.integers(0, 5, 1000).astype(float), RNG.integers(0, 2, 1000)
    steps = _series.extremes(values, states, 100, symbols=5)
    for begin in range(0, 1000, 100):
        here, mine = np.arange(begin, begin + 100), steps[(steps >= begin) & (steps < begin + 100)]
        assert {*zip(values[here], states[here], strict=True)} == {*zip(values[mine], states[mine], strict=True)}


def test_values_are_short_only_if_that_does_not_show():
    _, kept = _series.kept(np.array([0.1, 0.2, 0.3]), np.zeros(3, int), most=10)
    assert kept.value.dtype == np.float32
    for values in (1e9 + np.array([0.1, 0.2, 0.3]), np.array([0.0, 1.0, 1e60])):
        _, kept = _series.kept(values, np.zeros(3, int), most=10)
        np.testing.assert_array_equal(kept.value, values)


def test_probabilities_are_averaged_over_pieces():
    size, means = _series.averaged(np.array([[0.0], [1.0], [1.0], [1.0], [0.5]]), most=3)
    assert size == 2
    np.testing.assert_allclose(means, [[0.5], [1.0], [0.5]])


def test_stretches_without_a_value_are_found_unless_too_short_to_see():
    missing = np.zeros(40, bool)
    missing[[0, 1, 2, 10, 30, 31, 39]] = True
    assert _series.stretches(missing, 1).tolist() == [[0, 3], [10, 11], [30, 32], [39, 40]]
    assert _series.stretches(missing, 2).tolist() == [[0, 3], [30, 32]]
    assert _series.stretches(np.zeros(3, bool), 1).tolist() == []


def test_the_first_columns_are_shown_and_the_rest_is_told():
    y = 4.0 * PATH[:, None] + RNG.standard_normal((len(PATH), 8))
    posterior = draw_some(ihmm.Model(ihmm.MultivariateNormal(8, covariance="diagonal"), MODEL.prior), y)
    page = report.render(posterior)
    assert len(embedded(page)["columns"]) == 6
    assert "The first 6 of 8 columns are shown." in words(page)


# In a browser


@pytest.fixture(scope="module")
def window():
    program = browser.find()
    if program is None:
        pytest.skip(browser.HOW)
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
    """An expression for a column of what is drawn."""
    return f"Array.from({model(name)}.data.{field})"


def model(name: str) -> str:
    return f"Bokeh.documents.map((one) => one.get_model_by_name('{name}')).find((found) => found)"


def assert_fine(window: browser.Browser) -> None:
    assert window.complaints == []
    assert [url for url in window.requests if not url.startswith(("file:", "data:", "blob:"))] == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_figure_is_drawn_without_complaint(kind, request, window, tmp_path):
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
    assert_fine(window)


@pytest.mark.slow
def test_a_hundred_thousand_steps_load_quickly_and_keep_a_single_one(long, window):
    seconds = window.open(long)
    size = long.stat().st_size / 1e6
    print(f"100 000 steps: {size:.1f} MB, ready after {seconds:.2f} s")
    assert size < 5
    assert seconds < 10
    assert 2 in window.evaluate(drawn("boxes-0", "state"))
    assert 77_777 in window.evaluate(drawn("dots-0"))  # no other of its state is near, so it is marked
    assert window.evaluate(f"{drawn('boxes-0', 'left')}.length") < 5000
    assert window.evaluate(f"[{drawn('gaps-0', 'begin')}, {drawn('gaps-0', 'end')}]") == [[2999.5], [4999.5]]
    assert_fine(window)


@pytest.mark.slow
def test_the_wheel_zooms_until_single_steps_are_seen(long, window):
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
    assert_fine(window)


@pytest.mark.slow
def test_dragging_moves_and_buttons_zoom(long, window):
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
    assert_fine(window)


@pytest.mark.slow
def test_a_sequence_is_chosen_and_counts_its_own_steps(several, window, tmp_path):
    window.open(report.write(several, tmp_path / "page.html"))
    assert window.evaluate(drawn("borders-0")) == [79.5, 104.5]
    assert window.evaluate(f"{drawn('line-0')}.filter(Number.isNaN).length") == 4  # two borders, two gaps
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
    assert_fine(window)


@pytest.mark.slow
def test_a_name_is_only_text_in_what_appears_under_the_mouse(wide, window, tmp_path):
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
    assert_fine(window)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["posterior", "several", "wide"])
def test_a_phone_needs_no_sideways_scrolling(kind, request, window, tmp_path):
    window.open(report.write(request.getfixturevalue(kind), tmp_path / "page.html"), width=390, touch=True)
    assert window.evaluate("document.documentElement.scrollWidth") <= 390
    assert (
        window.evaluate("Math.max(...[...document.querySelectorAll('.plot')].map((plot) => plot.clientWidth))") <= 390
    )
    assert_fine(window)


@pytest.mark.slow
def test_a_dark_page_is_dark_and_so_are_its_figures(posterior, window, tmp_path):
    file = report.write(posterior, tmp_path / "page.html")
    look = (
        "[getComputedStyle(document.body).backgroundColor, [...Bokeh.documents[0].all_models]"
        ".find((model) => model.type == 'LinearAxis').major_label_text_color]"
    )
    window.open(file)
    assert window.evaluate(look) == ["rgb(255, 255, 255)", "#1c2126"]
    window.open(file, dark=True)
    assert window.evaluate(look) == ["rgb(20, 24, 28)", "#e6e9ec"]
    assert_fine(window)
