"""The time axis: units, recorded times, and dwell times and rates in seconds."""

import warnings
from datetime import timedelta

import numpy as np
import pandas as pd
import polars as pl
import pytest

import ihmm
from ihmm.series.clock import Clock, make_clock, recorded_clock, unit_in

MODEL = ihmm.Model(ihmm.Normal())
RECORDING = ihmm.datasets.ion_channel(length=300)
SHORT = {"draws": 10, "tune": 10, "chains": 1, "seed": 1, "progress": False}


@pytest.fixture(scope="module")
def timed():
    """Two recordings at 10 kHz."""
    return ihmm.sample(MODEL, [RECORDING.y[:200], RECORDING.y[200:]], sample_rate="10 kHz", **SHORT)


@pytest.mark.parametrize(
    "dt", ["0.1ms", "100 us", "100µs", "1e-4", 1e-4, timedelta(microseconds=100), np.timedelta64(100, "us")]
)
def test_the_same_time_between_steps_in_every_notation(dt):
    assert make_clock(dt).step == pytest.approx(1e-4)


@pytest.mark.parametrize("rate", ["10kHz", "10000 Hz", 1e4, "0.01 MHz", "1e7mHz"])
def test_the_same_sample_rate_in_every_notation(rate):
    assert make_clock(sample_rate=rate).step == pytest.approx(1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dt": "fast"}, "dt must be a number with a unit, such as 0.1ms, .* got 'fast'"),
        ({"dt": "3 parsecs"}, "such as 0.1ms"),
        ({"dt": "1-2s"}, "such as 0.1ms"),
        ({"dt": np.timedelta64(1, "Y")}, "dt must be a time of known length"),
        ({"dt": np.timedelta64("NaT", "s")}, "must be a positive number, got nan"),
        ({"dt": 0}, "must be a positive number, got 0"),
        ({"sample_rate": "10 ms"}, "such as 10kHz"),
        ({"dt": 1, "sample_rate": 1}, "give dt or sample_rate, not both"),
    ],
)
def test_times_that_cannot_be_read_are_refused_before_sampling(options, message):
    with pytest.raises(ValueError, match=message):
        ihmm.sample(MODEL, RECORDING.y, **options)


def test_a_step_may_be_longer_than_nanoseconds_can_count():
    assert make_clock(np.timedelta64(500 * 365, "D")).step == 500 * 365 * 86400


@pytest.mark.parametrize("first", ["0900-01-01", "1700-01-01", "1969-12-31", "2500-01-01"])
@pytest.mark.parametrize("days", [1, 7300])
def test_dates_of_any_century_stay_what_they_are(first, days):
    dates = pd.date_range(first, periods=60, freq=f"{days}D", unit="s")
    for y in (
        pd.Series(RECORDING.y[:60], dates),
        pd.DataFrame({"when": dates, "y": RECORDING.y[:60]}),
        pl.DataFrame({"when": dates.to_numpy().astype("datetime64[us]"), "y": RECORDING.y[:60]}),
    ):
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # the column is the time
            clock = MODEL.observe(y).clock
        assert clock.step == days * 86400
        assert np.datetime_as_string(clock.dates(), "s").tolist() == np.datetime_as_string(dates.to_numpy()).tolist()


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("time (ms)", "ms"),
        ("t [s]", "s"),
        ("Time_us", "us"),
        ("t/min", "min"),
        ("time, seconds", "s"),
        ("Zeit ms", "ms"),
        ("time", None),
        ("items", None),
        ("ms", None),
        ("depth (m)", None),
    ],
)
def test_units_in_the_names_of_columns(name, unit):
    assert unit_in(name) == unit


@pytest.mark.parametrize(
    ("step", "steps", "text"),
    [
        (1e-4, 34, "3.4 ms"),
        (1e-4, 34_000, "3.4 s"),
        (60.0, 30, "30 min"),
        (3600.0, 24 * 30, "30 d"),
        (1e-6, 0.5, "500 ns"),
        (None, 34, "34 steps"),
    ],
)
def test_durations_are_written_in_a_readable_unit(step, steps, text):
    assert Clock(step).text(steps) == text


def test_dwell_times_and_rates_are_in_seconds(timed):
    found = timed.summary()
    table, rates = found.table(), found.rate_table()
    np.testing.assert_allclose(table["dwell_s_high"], 1e-4 * table["dwell_high"])
    assert "dwell (ms)" in repr(found)
    assert "dwell (ms)" in repr(timed.levels())
    # In a hidden Markov model: the transition probability of a step, over the length of a step
    draw, match = timed.draws[0][4], found.matches[4]
    i, j = match.state[rates.loc[0, ["from", "to"]].astype(int)]
    same = match.label == match.label[j]
    expected = draw.transitions.rows[i, :-1][same].sum() / 1e-4
    assert found.rates[4, rates.loc[0, "from"], rates.loc[0, "to"]] == pytest.approx(expected)


def test_rates_of_a_model_with_durations_leave_each_state_once_per_dwell_time():
    model = ihmm.Model(ihmm.Normal(), duration=ihmm.durations.Geometric(1, 20, minimum=2))
    found = ihmm.sample(model, RECORDING.y, dt=0.5, **SHORT).summary()
    leaving = np.nansum(found.rates, axis=2) * found.dwell * 0.5
    known = np.isfinite(found.dwell) & (np.isfinite(found.dwell).sum(axis=1) > 1)[:, None]
    assert (leaving[known] <= 1 + 1e-9).all()  # the rest goes to states that are not in the summary
    assert np.median(leaving[known]) > 0.9


def test_without_a_clock_time_is_counted_in_steps():
    posterior = ihmm.sample(MODEL, RECORDING.y, **SHORT)
    assert "dwell_s" not in posterior.summary().table()
    assert "dwell (steps)" in repr(posterior.summary())
    assert "rate_per_step" in posterior.summary().rate_table()
    axis = posterior.clock.axis(posterior.lengths)
    assert axis.label == "step"
    np.testing.assert_array_equal(axis.values, np.arange(300))


def test_every_sequence_begins_at_time_0(timed):
    axis = timed.clock.axis(timed.lengths)
    assert axis.label == "time (ms)"
    np.testing.assert_allclose(axis.values[[0, 199, 200, 299]], [0, 19.9, 0, 9.9])


@pytest.mark.parametrize("fit", ["sample", "estimator"])
def test_the_dates_of_a_pandas_index_are_the_times(fit, tmp_path):
    index = pd.date_range("2024-03-31", periods=300, freq="15min", tz="Europe/Berlin")
    series = pd.Series(RECORDING.y, index=index)
    if fit == "sample":
        posterior = ihmm.sample(MODEL, series, **SHORT)
    else:
        short = {"draws": 10, "tune": 10, "chains": 1, "random_state": 1}
        posterior = (
            ihmm.InfiniteHMM(MODEL.emission, **short).fit(series.to_frame("level"), lengths=[100, 200]).posterior_
        )
    posterior.save(tmp_path / "run")
    for each in (posterior, ihmm.Posterior.load(tmp_path / "run")):
        assert each.clock.step == 900
        assert each.clock.axis(each.lengths).label == "time"
        np.testing.assert_array_equal(each.clock.axis(each.lengths).values, index.tz_convert(None).to_numpy())


def test_a_given_dt_takes_precedence_over_the_index():
    series = pd.Series(RECORDING.y, index=pd.date_range("2024-03-31", periods=300, freq="s"))
    assert ihmm.sample(MODEL, series, dt=0.1, **SHORT).clock.step == 0.1


def test_an_index_of_numbers_is_not_a_time():
    assert not ihmm.sample(MODEL, pd.Series(RECORDING.y, index=np.arange(300) / 10), **SHORT).clock.is_known


def test_rounded_times_are_regular():
    times = np.round(np.arange(1000) / 240, 3)  # steps of 4 and 5 ms
    assert recorded_clock([times]).step == pytest.approx(1 / 240, rel=1e-3)


def test_irregular_sampling_is_reported():
    times = np.append(np.arange(50) * 0.1, 9.0 + np.arange(50) * 0.1)
    message = r"irregular: in sequence 0, 1 of 99 steps are not 100 ms long, the longest is 4.1 s \(rows 50 to 51\)"
    with pytest.warns(UserWarning, match=message):
        clock = recorded_clock([times])
    assert clock.step == pytest.approx(0.1)
    np.testing.assert_array_equal(clock.elapsed(np.array([100])), times)


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([0.0, 0.2, 0.1], "sequence 0: times must rise, but 0.1 in row 3 is before 0.2 in row 2; sort the rows"),
        ([0.0, np.nan, 0.1], "sequence 0: the time of row 2 is missing"),
        ([1.0, 1.0, 1.0], "all recorded times are equal"),
    ],
)
def test_times_that_are_no_time_axis_are_refused(times, message):
    with pytest.raises(ValueError, match=message):
        recorded_clock([np.array(times)])
