"""Supported types of series, and missing values."""

from collections import UserDict

import numpy as np
import pytest

import ihmm
from ihmm.series.arrays import as_array
from ihmm.series.sequences import Sequences

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
xarray = pytest.importorskip("xarray")
GAPPY = [1.0, np.nan, 3.0]
TIMES = pandas.date_range("2024-01-01", periods=3, tz="UTC")

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


SYMBOLS = {
    "list": ["b", "a", None],
    "array": np.array(["b", "a", "NA"]),
    "objects": np.array(["b", "a", None], object),
    "pandas": pandas.Series(["b", "a", None]),
    "pandas strings": pandas.Series(["b", "a", None], dtype="string"),
    "categories": pandas.Series(["b", "a", None], dtype="category"),
    "pandas frame": pandas.DataFrame({"s": ["b", "a", None]}),
    "polars": polars.Series(["b", "a", None]),
}


@pytest.mark.parametrize("kind", SYMBOLS)
def test_texts_are_symbols_in_alphabetical_order(kind):
    sequences = Sequences.of([SYMBOLS[kind], ["c", "a"]])
    assert sequences.symbols == ("a", "b", "c")
    assert sequences.values.tolist() == [1, 0, 1, 2, 0]
    assert sequences.missing.tolist() == [False, False, True, False, False]


@pytest.mark.parametrize("kind", [list, np.array, pandas.Series, polars.Series])
@pytest.mark.parametrize("texts", [["1.5", "-2", "3e1"], ["1,5", "-2,0", "30"]], ids=["points", "commas"])
def test_texts_that_are_numbers_are_numbers(kind, texts):
    assert Sequences.of(kind(texts)).values.tolist() == [1.5, -2, 30]


def test_texts_that_are_neither_are_refused():
    with pytest.raises(TypeError, match="sequence 0 must contain numbers or symbols, not both: 'b' at t = 1"):
        Sequences.of(["1", "b"])
    with pytest.raises(TypeError, match="must contain numbers"):
        Sequences.of(np.array([1, "b"], object))
    with pytest.raises(ValueError, match=r"'1,234' could be 1.234 or 1234; convert it to numbers"):
        Sequences.of(["1,234", "5,678"])
    with pytest.raises(ValueError, match="'c' at t = 1 is not one of the symbols a, b"):
        Sequences.of(["a", "c"], symbols=("a", "b"))
    with pytest.raises(TypeError, match=r"holds texts \(a, b\), but Normal expects numbers; use ihmm.Categorical"):
        ihmm.Model(ihmm.Normal()).observe(["a", "b"])


def test_a_row_instead_of_a_column_is_recognised():
    with pytest.raises(ValueError, match=r"its shape is \(1, 500\).* if the 500 values are steps, transpose it: y.T"):
        Sequences.of(np.zeros((1, 500)))


def test_a_cube_is_several_series():
    cube = np.arange(24.0).reshape(2, 4, 3)
    assert Sequences.of(cube).lengths.tolist() == [4, 4]
    np.testing.assert_array_equal(Sequences.of(cube).values, cube.reshape(8, 3))


@pytest.mark.parametrize("library", [pandas.DataFrame, polars.DataFrame])
def test_a_column_of_dates_is_the_time(library):
    frame = library({"when": TIMES.to_pydatetime().tolist(), "x": [1.0, 2.0, 3.0]})
    with pytest.warns(UserWarning, match="column when is the time of each row"):
        sequences = Sequences.of(frame)
    assert sequences.values.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(sequences.clock.dates(), TIMES.tz_localize(None))


# Containers that used to lose something on the way in


@pytest.mark.parametrize(
    "y",
    [
        pandas.Series(TIMES),
        pandas.Series(TIMES.tz_localize(None)),
        pandas.Series(TIMES - TIMES[0]),
        pandas.DataFrame({"when": TIMES}),
        np.array(["1.0", UserDict()], object),
        np.array([1j, 2j, 3j]),
        np.ma.array([1 + 1j, 2, 3], mask=[False, False, True]),
        np.array([1j, 2, 3], object),
    ],
    ids=lambda y: f"{type(y).__module__}.{type(y).__name__}",
)
def test_dates_and_complex_numbers_are_not_taken_for_numbers(y):
    with pytest.raises(TypeError, match="must contain numbers"):
        Sequences.of(y)


def test_dates_beside_a_column_of_another_type_stay_dates():
    frame = polars.DataFrame({"when": TIMES.tz_localize(None).to_pydatetime().tolist(), "x": [None] * 3})
    assert as_array(frame).dtype.kind == "M"


def test_the_mask_of_rows_is_kept():
    rows = np.ma.array([[1.0, -9999.0], [2.0, 3.0]], mask=[[False, True], [False, False]])
    np.testing.assert_array_equal(Sequences.of(rows).values, [[1.0, np.nan], [2.0, 3.0]])
    assert Sequences.of(np.ma.array([1, 2])).values.dtype == np.int64, "nothing is masked: integers stay integers"


def test_large_unsigned_integers_do_not_wrap():
    largest = 2**64 - 1
    assert Sequences.of(np.array([0, largest], np.uint64)).values.tolist() == [0.0, float(largest)]
    assert Sequences.of(np.array([0, 5], np.uint64)).values.dtype == np.int64


def test_columns_of_data_frames_are_matched_by_name():
    first = pandas.DataFrame({"a": [1.0, 2.0], "b": [10.0, 20.0]})
    for other in (first[["b", "a"]], polars.DataFrame({"b": [10.0, 20.0], "a": [1.0, 2.0]})):
        sequences = Sequences.of([first, other])
        assert sequences.values[:2].tolist() == sequences.values[2:].tolist()
        assert sequences.columns == ("a", "b")
    with pytest.raises(ValueError, match="sequence 1 has the columns b, c, expected a, b"):
        Sequences.of([first, first.rename(columns={"a": "c"})[["b", "c"]]])


def test_columns_of_data_frames_are_matched_by_number():
    first = pandas.DataFrame([[1.0, 10.0], [2.0, 20.0]])
    sequences = Sequences.of([first, first[[1, 0]]])
    assert sequences.values[:2].tolist() == sequences.values[2:].tolist()
    assert sequences.columns is None
    assert Sequences.of(first[[1, 0]]).values.tolist() == [[10.0, 1.0], [20.0, 2.0]], "in their own order"
    assert Sequences.of(first[[1, 0]]).columns == ("1", "0")
    named = first.rename(columns={0: "a", 1: "b"})
    assert Sequences.of([first, named]).columns == ("a", "b"), "numbers are not names"


def test_columns_of_sequences_are_matched_by_name():
    fitted = Sequences.of(pandas.DataFrame({"a": [0.0, 1.0], "b": [2.0, 3.0]}))
    other = Sequences.of(pandas.DataFrame({"b": [2.0, 3.0], "a": [0.0, 1.0]}))
    np.testing.assert_array_equal(Sequences.of(other, columns=fitted.columns).values, fitted.values)
    with pytest.raises(ValueError, match="the series has the columns b, a, expected a, c"):
        Sequences.of(other, columns=("a", "c"))


def test_columns_of_xarray_are_matched_by_their_coordinates():
    first = xarray.DataArray([[0.0, 1.0], [2.0, 3.0]], dims=("t", "channel"), coords={"channel": ["a", "b"]})
    found = Sequences.of([first, first.sel(channel=["b", "a"])])
    assert found.columns == ("a", "b")
    np.testing.assert_array_equal(found.values[:2], found.values[2:])
    assert Sequences.of(first.drop_vars("channel")).columns is None


def test_columns_need_names_of_their_own():
    frame = pandas.DataFrame([[1.0, 10.0], [2.0, 20.0]], columns=["a", "a"])
    with pytest.raises(ValueError, match="two columns are called 'a'"):
        Sequences.of(frame)
    table = pytest.importorskip("pyarrow").table({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    with pytest.raises(TypeError, match=r"got a Table; convert it with \.to_pandas"):
        Sequences.of(table)


@pytest.mark.parametrize("view", ["Fortran order", "every other row", "read-only", "big-endian", "32 bits"])
def test_every_memory_layout_becomes_the_same_one(view):
    rows = np.arange(12.0).reshape(6, 2)
    views = {
        "Fortran order": np.asfortranarray(rows),
        "every other row": np.repeat(rows, 2, axis=0)[::2],
        "read-only": np.broadcast_to(rows, (6, 2)),
        "big-endian": rows.astype(">f8"),
        "32 bits": rows.astype(np.float32),
    }
    for emission, y in ((ihmm.MultivariateNormal(2), views[view]), (ihmm.Normal(), views[view][:, 1])):
        observed = ihmm.Model(emission).observe(y).y
        assert observed.dtype == np.dtype("=f8")
        assert observed.flags.c_contiguous
        assert observed.flags.writeable


def test_the_name_of_a_single_column_is_kept_but_not_matched():
    for part in (pandas.Series([1.0, 2.0], name="current"), pandas.DataFrame({"current": [1.0, 2.0]})):
        assert Sequences.of(part).columns == ("current",)
        assert Sequences.of(part, columns=("voltage",)).columns == ("voltage",)
    other = [pandas.Series([1.0, 2.0], name=name) for name in ("cell 1", "cell 2")]
    assert Sequences.of(other).columns is None
