"""Supported types of series, and missing values."""

import numpy as np
import pytest

import ihmm
from ihmm.sequences import Sequences

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
GAPPY = [1.0, np.nan, 3.0]

SERIES = {
    "array": np.array(GAPPY),
    "list": GAPPY,
    "list with None": [1.0, None, 3.0],
    "masked array": np.ma.array([1.0, 7.0, 3.0], mask=[False, True, False]),
    "masked integers": np.ma.array([1, 7, 3], mask=[False, True, False]),
    "pandas series": pandas.Series(GAPPY),
    "pandas nullable integers": pandas.Series([1, None, 3], dtype="Int64"),
    "pandas frame": pandas.DataFrame({"x": GAPPY}),
    "polars series": polars.Series([1.0, None, 3.0]),
    "polars integers": polars.Series([1, None, 3]),
    "polars frame": polars.DataFrame({"x": [1.0, None, 3.0]}),
}


@pytest.mark.parametrize("kind", SERIES)
def test_a_series_of_any_type_with_a_missing_value(kind):
    sequences = Sequences.of(SERIES[kind])
    assert sequences.values[[0, 2]].tolist() == [1.0, 3.0]
    assert np.isfinite(sequences.values).all()
    assert sequences.missing.tolist() == [False, True, False]


@pytest.mark.parametrize("kind", SERIES)
def test_several_series(kind):
    sequences = Sequences.of([SERIES[kind], SERIES["array"]])
    assert sequences.lengths.tolist() == [3, 3]
    assert sequences.missing.tolist() == [False, True, False] * 2


def test_the_input_is_not_modified():
    y = np.array(GAPPY)
    Sequences.of(y)
    np.testing.assert_array_equal(y, GAPPY)


def test_without_missing_values_there_is_no_mask():
    assert Sequences.of([1.0, 2.0]).missing is None
    assert Sequences.of([1, 2]).missing is None


def test_only_rows_without_any_value_are_missing():
    rows = np.array([[1.0, np.nan], [np.nan, np.nan], [2.0, 3.0]])
    sequences = Sequences.of(rows)
    assert sequences.missing.tolist() == [False, True, False]
    np.testing.assert_array_equal(sequences.values[0], [1.0, np.nan])


def test_a_series_without_observed_values_is_refused():
    with pytest.raises(ValueError, match="every value is missing"):
        ihmm.Model(ihmm.Normal()).observe([np.nan, np.nan])


def test_one_of_several_sequences_may_have_no_observed_values():
    data = ihmm.Model(ihmm.Categorical(3)).observe([[np.nan, np.nan], [0.0, 2.0]])
    assert data.missing.tolist() == [True, True, False, False]
    assert data.y.dtype == np.int64
    assert data.log_marginal[:2].tolist() == [0, 0]


def test_strings_are_refused():
    with pytest.raises(TypeError, match="encode symbols as integers"):
        Sequences.of(["a", "b"])
    with pytest.raises(TypeError, match="must contain numbers"):
        Sequences.of(np.array([1, "b"], object))
