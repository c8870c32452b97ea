"""The text, the tables and the file of a report."""

import importlib
import json
import re
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import ihmm
from ihmm import report
from ihmm._numbers import three_digits
from ihmm.report import _text
from report_cases import KINDS, MODEL, NASTY, PATH, RNG, draw_some, embedded, plain_page, tables, words

# Text and tables


def test_the_page_begins_with_the_number_of_states_and_the_verdict(posterior):
    text = words(report.render(posterior, title="Channel 7"))
    check = posterior.check()
    levels = posterior.levels()
    headline = f"{levels.headline} {levels.certainty} {check.verdict}"
    assert text.startswith(f"Channel 7 Channel 7 {headline} steps 80")
    for finding in check.findings:
        assert finding.text in text
    assert f"ihmm {ihmm.__version__}" in text
    assert time.strftime("%Y-") in text


def test_the_table_of_levels_comes_first(posterior):
    header, *rows = tables(plain_page(posterior))[0]
    assert header[0] == "level"
    assert [row[0] for row in rows] == [str(j) for j in range(posterior.levels().n_levels)]


def test_the_page_has_the_size_of_the_data(several):
    facts = _text.facts(several)
    assert facts == {
        "steps": "185",
        "sequences": "3 (25 to 80 steps)",
        "missing values": "4 (2.16%)",
        "chains": "2",
        "draws": "6 per chain",
    }
    assert "4 (2.16%)" in words(plain_page(several))


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_of_states_agrees_with_the_summary(kind, request):
    posterior = request.getfixturevalue(kind)
    shown, expected = tables(plain_page(posterior))[1], posterior.summary().table()
    assert len(shown) == 1 + len(expected)
    for k, row in enumerate(shown[1:]):
        assert row[0].endswith(f" {k}")
        assert row[1:3] == [f"{expected.share[k]:.1%}", f"{expected.support[k]:.0%}"]
        triples = expected.iloc[k, 2:].to_numpy().reshape(-1, 3)
        assert row[3:] == ["{} [{}, {}]".format(*map(three_digits, triple)) for triple in triples]


def test_numbers_have_three_significant_digits_and_few_exponents():
    numbers = [1920.4, 0.5, -0.012345, 1e-7, 123456.0, 2e9, 4.0]
    assert [three_digits(x) for x in numbers] == ["1920", "0.5", "−0.0123", "1e−07", "123000", "2e+09", "4"]


def test_the_table_of_transitions_agrees_with_the_summary(posterior):
    shown = tables(plain_page(posterior))[2]
    np.testing.assert_allclose(
        [[float(cell) for cell in row[1:]] for row in shown[1:]], posterior.summary().transitions, atol=5e-5
    )


def test_settings_are_those_of_the_run_and_those_given(posterior):
    rows = dict(tables(report.render(posterior, settings={"file": "a<b>.csv", "lab": {"rate": 5}}))[-1])
    assert rows["emission"] == "NormalMean"
    assert rows["emission.noise"] == "0.3"
    assert rows["prior.gamma"] == "GammaPrior(shape=1.0, rate=1.0)"
    assert rows["sampler.n_particles"] == "50"
    assert rows["seed"] == "1"
    assert rows["file"] == "a<b>.csv"
    assert rows["lab.rate"] == "5"


def test_one_state_is_singular(single):
    assert words(plain_page(single)).startswith("Hidden states Hidden states 1 level. ")


def test_every_column_with_a_density_has_a_figure():
    emission = ihmm.Independent(mode=ihmm.Categorical(3), speed=ihmm.Normal(), shares=ihmm.Multinomial(2))
    y = ihmm.simulate(ihmm.Model(emission), 80, seed=1).y[0]
    page = words(report.render(draw_some(ihmm.Model(emission), y), names=["mode", "speed", "left", "right"]))
    assert [f"Observations by state: {name}" in page for name in ("mode", "speed", "left", "right")] == [1, 1, 0, 0]
    assert "speed_mean" in page
    ones = draw_some(ihmm.Model(ihmm.Bernoulli(2)), y[:, :2] > 0)
    assert "probs of wet" in words(report.render(ones, names=["wet", "warm"]))


def test_names_of_columns_are_used_in_the_table(wide):
    header = tables(report.render(wide, names=["force", "torque", "angle"]))[1][0]
    assert header[4:8] == ["mean of force", "mean of torque", "mean of angle", "covariance of force"]
    assert "covariance of force and angle" in header
    assert "mean of column 1" in tables(plain_page(wide))[1][0]


def test_only_the_first_columns_are_shown():
    y = 4.0 * PATH[:, None] + RNG.standard_normal((len(PATH), 8))
    posterior = draw_some(ihmm.Model(ihmm.MultivariateNormal(8, covariance="diagonal"), MODEL.prior), y)
    page = report.render(posterior)
    assert len(embedded(page)["columns"]) == 6
    assert "The first 6 of 8 columns are shown." in words(page)


# One self-contained file


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_loaded_from_the_network(kind, request):
    page = plain_page(request.getfixturevalue(kind))
    tags = re.findall(r"<[a-z][^<>]*>", re.sub(r"(<script[^>]*>).*?</script>", r"\1", page, flags=re.DOTALL))
    assert not [tag for tag in tags if re.search(r"\b(src|href|srcset|action|poster|data)=", tag)]
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
    assert "url(" not in style
    assert "@import" not in style
    assert "default-src 'none'" in page


def test_user_input_is_escaped(wide):
    page = report.render(wide, title=NASTY[0], names=NASTY, settings={NASTY[0]: NASTY[2]})
    assert "<script>alert" not in page
    assert "</script><b>" not in page
    text = words(page)
    assert text.startswith(f"{NASTY[0]} {NASTY[0]} 3 levels")
    for name in NASTY:
        assert f"mean of {name}" in text
    assert [NASTY[0], NASTY[2]] in tables(page)[-1]


def test_axis_labels_are_plain_text(wide):
    """Bokeh would load a TeX renderer from the network."""
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
def test_a_wheel_contains_the_page(tmp_path):
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, root]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("pip cannot build a wheel here: it needs hatchling from a package index")
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {f"ihmm/report/page.{kind}" for kind in ("html", "css", "js")} <= set(names)


def test_an_existing_file_is_replaced(posterior, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    assert report.write(posterior, str(path), title="new") == path
    assert "<h1>new</h1>" in path.read_text("utf-8")


def test_a_directory_is_refused(posterior, tmp_path):
    with pytest.raises(IsADirectoryError, match=r"is a directory; pass the path of a file, such as .*report\.html"):
        report.write(posterior, tmp_path)


def test_the_directory_must_exist(posterior, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere does not exist; create it first"):
        report.write(posterior, tmp_path / "nowhere" / "report.html")


def test_names_must_match_the_number_of_columns(wide):
    with pytest.raises(ValueError, match=r"names must have one entry per column of the series \(3\), got 1: \['y'\]"):
        report.render(wide, names="y")


def test_without_bokeh_the_message_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "ihmm.report")
    monkeypatch.setitem(sys.modules, "bokeh", None)
    with pytest.raises(ImportError, match=r"pip install 'ihmm\[report\]'"):
        importlib.import_module("ihmm.report")
    assert "report" not in ihmm.__all__
    assert "report" in dir(ihmm)


def test_symbols_and_states_have_their_names():
    letters = np.random.default_rng(0).choice(list("ACGT"), 60)
    settings = {"draws": 10, "tune": 10, "chains": 1, "seed": 1, "progress": False}
    posterior = ihmm.sample(ihmm.Model(ihmm.Categorical(4)), letters, **settings).relabel(names={0: "<rich>"})
    table = _text.states(posterior, _text.columns(posterior, None))
    assert [f"probs of {letter}" for letter in "ACGT"] == table.header[-4:]
    assert table.rows[0].name == "<rich>"
    page = report.render(posterior)
    assert "&lt;rich&gt;" in page
    assert '<th scope="row"><rich>' not in page
