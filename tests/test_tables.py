"""Reading series from files; errors are one line and name the file, line and column."""

import re
import time

import numpy as np
import pandas as pd
import pytest

from ihmm.tables import Layout, TableError, read


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a file in the working folder, text or bytes, and return its name."""
    monkeypatch.chdir(tmp_path)

    def write(content: str | bytes, name: str = "trace.csv") -> str:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    return write


def column(table, i=0):
    return [None if np.isnan(value) else value for value in table.values[:, i].astype(float).tolist()]


# Formats


def test_a_column_by_name(write):
    table = read([write("time,current\n0.1,1.5\n0.2,-2\n")], ["current"])
    assert column(table) == [1.5, -2]
    assert table.columns == ["current"]
    assert table.names == ["trace.csv"]


@pytest.mark.parametrize("cells", [("a", "a", "a"), ("2.5", "", "2.5")])
def test_a_column_with_one_value_only_is_mentioned(write, cells):
    file = write("x,y\n" + "".join(f"{cell},{i}.5\n" for i, cell in enumerate(cells)))
    assert read([file], ["x"]).notes == ("Column x has the same value in every row.",)
    assert read([file], ["y"]).notes == ()


def test_columns_are_numbered_without_a_header(write):
    table = read([write("0.1,1.5\n0.2,-2\n")], ["2"])
    assert column(table) == [1.5, -2]


def test_the_only_column_need_not_be_named(write):
    assert column(read([write("current\n1\n2\n")])) == [1, 2]
    assert column(read([write("1\n2\n")])) == [1, 2]


def test_several_columns_in_the_given_order_or_by_a_pattern(write):
    file = write("time,a,b\n0,1,2\n1,3,4\n")
    assert read([file], ["b", "a"]).series[0].tolist() == [[2, 1], [4, 3]]
    assert read([file], ["[ab]"]).columns == ["a", "b"]


def test_spaces_around_numbers_are_ignored(write):
    assert column(read([write("t\tx\n0\t 1 \n1\t2e0 \n", "a.tsv")], ["x"])) == [1, 2]


def test_integers_stay_integers(write):
    assert read([write("n\n3\n4\n")]).series[0].dtype.kind == "i"


@pytest.mark.parametrize("word", ["NA", "NaN", "nan", "null", "N/A", "None", ""])
def test_words_for_missing_values(write, word):
    assert column(read([write(f"t,x\n0,1\n1,{word}\n2,3\n")], ["x"])) == [1, None, 3]


def test_empty_lines_of_a_single_column_are_missing_values_except_at_the_end(write):
    assert column(read([write("x\n1\n\n3\n\n\n")])) == [1, None, 3]


def test_empty_lines_between_rows_are_ignored(write):
    assert column(read([write("t,x\n0,1\n\n1,3\n\n")], ["x"])) == [1, 3]


@pytest.mark.parametrize(
    ("name", "delimiter", "text"),
    [
        ("a.tsv", None, "t\tx\n0\t1\n1\t2\n"),
        ("a.csv", ";", "t;x\n0;1\n1;2\n"),
        ("a.csv", "tab", "t\tx\n0\t1\n1\t2\n"),
        ("a.txt", "space", "t   x\n0 1\n 1  2\n"),
        ("a.csv", None, "\ufefft,x\r\n0, 1\r\n1, 2\r\n"),
        ("a.csv", None, '"t","x"\n"0","1"\n"1","2"\n'),
        ("a.csv", None, "t,x,\n0,1,\n1,2,\n"),
    ],
    ids=["tsv", "semicolon", "tab", "spaces", "bom and crlf", "quotes", "delimiter at the end"],
)
def test_dialects(write, name, delimiter, text):
    assert column(read([write(text, name)], ["x"], layout=Layout(delimiter))) == [1, 2]


def test_arrays(write, tmp_path):
    write("")
    np.save("one.npy", np.array([1.0, np.nan, 3.0]))
    np.save("two.npy", np.arange(6).reshape(3, 2))
    assert column(read(["one.npy"])) == [1, None, 3]
    assert read(["two.npy"]).series[0].shape == (3, 2)
    assert column(read(["two.npy"], ["2"])) == [1, 3, 5]


def test_parquet(write):
    pytest.importorskip("pyarrow")
    write("")
    pd.DataFrame({"x": [1.5, None, 2.5], "s": ["a", "b", None]}).to_parquet("t.parquet")
    assert column(read(["t.parquet"], ["x"])) == [1.5, None, 2.5]
    assert read(["t.parquet"], ["s"]).symbols == ("a", "b")


def test_several_files_are_several_series(write):
    table = read([write("x\n1\n2\n", "a.csv"), write("x\n3\n4\n5\n", "b.csv")])
    assert [len(part) for part in table.series] == [2, 3]
    assert table.names == ["a.csv", "b.csv"]


def test_an_id_column_separates_series_even_if_they_alternate(write):
    table = read([write("cell,x\n01,1\nb,10\n01,2\nb,20\n")], by="cell")
    assert table.names == ["01", "b"]
    assert [part[:, 0].tolist() for part in table.series] == [[1, 2], [10, 20]]


def test_names_of_series_are_unique_across_files_and_ids(write, tmp_path):
    (tmp_path / "b").mkdir()
    files = [write("id,x\n1,1\n1,2\n"), write("id,x\n1,3\n1,4\n", "b/trace.csv")]
    assert read(files, ["x"]).names == ["trace.csv", "b/trace.csv"]
    assert read(files, by="id").names == ["trace.csv: 1", "b/trace.csv: 1"]


@pytest.mark.parametrize("index", [True, False])
def test_default_column_names_of_pandas_are_a_header(write, index):
    write("")
    pd.DataFrame([[1.5, 2.5], [3.5, 4.5]]).to_csv("frame.csv", index=index)
    assert column(read(["frame.csv"], ["1"])) == [2.5, 4.5]


# Files as they are: each is read as columns t and x with the values 0, 1, 2 and 1.5, −2, 3

ODDITIES = {
    "semicolons": ("t;x\n0;1.5\n1;-2\n2;3\n", {}, "cells are separated by semicolons"),
    "tabs": ("t\tx\n0\t1.5\n1\t-2\n2\t3\n", {}, "cells are separated by tabs"),
    "spaces": ("t x\n0 1.5\n1   -2\n2 3\n", {}, "cells are separated by spaces"),
    "decimal commas": ("t;x\n0;1,5\n1;-2,0\n2;3\n", {}, "cells are separated by semicolons"),
    "quoted decimal commas": ('t,x\n"0","1,5"\n"1","-2,0"\n"2","3"\n', {}, None),
    "decimal commas as said": ("t;x\n0;1,500\n1;-2,000\n2;3,000\n", {"decimal": ","}, "semicolons"),
    "thousands": ("t;x\n0;1.500,0e-3\n1;-2,0\n2;3\n", {"decimal": ","}, "semicolons"),
    "minus signs": ("t,x\n0,1.5\n1,−2\n2,3\n", {}, None),
    "comments": ("# made by a machine\nt,x\n0,1.5\n# a pause, see the notes\n1,-2\n2,3\n", {}, "2 comment lines"),
    "names in a comment": ("# t x\n0 1.5\n1 -2\n2 3\n", {}, r"names of columns are in a comment \(t, x\)"),
    "units": ("t,x\ns,pA\n0,1.5\n1,-2\n2,3\n", {}, r"the line after the header has the units \(s, pA\)"),
    "units, one of them 1": ("t;x\ns;1\n0;1,5\n1;-2\n2;3\n", {}, r"has the units \(s, 1\)"),
    "lines above": ("Acme 3000\nvoltage, 5, mV\n\nt,x\n0,1.5\n1,-2\n2,3\n", {"skip_rows": 3}, None),
    "Excel": ('\ufeff"t";"x"\r\n"0";"1,5"\r\n"1";"-2"\r\n"2";"3"\r\n', {}, "semicolons"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "options", "note"), ODDITIES.values(), ids=ODDITIES)
def test_files_as_they_are(write, content, options, note):
    table = read([write(content)], ["t", "x"], layout=Layout(**options))
    np.testing.assert_array_equal(table.values, [[0, 1.5], [1, -2], [2, 3]])
    assert table.columns == ["t", "x"]
    assert re.search(note, " ".join(table.notes)) if note else table.notes == ()


def test_one_column_of_decimal_commas(write):
    assert column(read([write("x\n1,5\n2,25\n3,0\n")])) == [1.5, 2.25, 3]


@pytest.mark.parametrize(("decimal", "values"), [(",", [1.234, 2.5]), (".", [1234, 2500])])
def test_numbers_that_can_be_read_in_two_ways_are_not_guessed(write, decimal, values):
    file = write("t;x\n0;1,234\n1;2,500\n")
    with pytest.raises(TableError, match=r"'1,234' could be 1.234 or 1234 in column x; choose with --decimal"):
        read([file], ["x"])
    assert column(read([file], ["x"], layout=Layout(decimal=decimal))) == values


def test_marked_values_are_missing(write):
    layout = Layout(na=("-9999", "bad"))
    assert column(read([write("t,x\n0,1\n1,-9999.0\n2,bad\n")], ["x"], layout=layout)) == [1, None, None]
    assert read([write("s\nA\nbad\nB\n")], layout=layout).symbols == ("A", "B")


def test_a_hash_may_be_a_symbol_or_part_of_one(write):
    assert read([write("A\n#\nA\nB#\n")]).symbols == ("#", "A", "B#")


# Time

TEN = np.arange(10)


def lines(header, times):
    return "\n".join([header, *(f"{time},{i % 3}.5" for i, time in enumerate(times)), ""])


def test_a_clock_is_recognised_and_left_out(write):
    table = read([write(lines("n,x", TEN + 1))])
    assert table.columns == ["x"]
    assert table.clock is None
    assert table.notes == ("Column n rises steadily, like a clock or a row number: it is left out (--time n uses it).",)
    assert read([write(lines("n,x", TEN + 1))], ["n"]).columns == ["n"]
    assert read([write(lines("n,x", TEN + 1))], ["*"]).columns == ["x"]


def test_a_clock_with_a_unit_is_the_time(write):
    for header, options in (("time (ms),x", {}), ("t,x", {"time": "t"}), ("t,x\nms,pA", {"columns": ["x"]})):
        table = read([write(lines(header, TEN / 2))], **options)
        assert table.columns == ["x"]
        assert table.clock.step == pytest.approx(0.5 if options == {"time": "t"} else 5e-4)
    note = "Column t is taken to be in seconds; if it is not, write the unit in its name, as in 'time (ms)'."
    assert note in read([write(lines("t,x", TEN))], time="t").notes


def test_each_series_has_its_own_times(write):
    table = read([write("id,t_s,x\n" + "\n".join(f"{i},{n + i},{n % 2}" for n in range(9) for i in (1, 2)))], by="id")
    np.testing.assert_array_equal(table.clock.times, [*(TEN[:9] + 1), *(TEN[:9] + 2)])


@pytest.mark.parametrize(
    "form", ["%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%d.%m.%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S", "%Y/%m/%d %H:%M"]
)
def test_dates_are_the_time(write, form):
    when = pd.date_range("2024-02-25 12:00", periods=10, freq="h")
    clock = read([write(lines("when,x", when.strftime(form)))]).clock
    np.testing.assert_array_equal(clock.dates(), when)


def test_times_of_day_are_the_time(write):
    table = read([write(lines("when,x", [f"12:59:5{i}.25" for i in TEN]))], time="when")
    assert table.clock.step == pytest.approx(1.0)


BAD_TIMES = {
    "two readings": ([f"0{i + 1}/02/2024" for i in range(9)], "can be read as %d/%m/%Y or %m/%d/%Y in column when"),
    "falls": (["3", "2", "4"], "trace.csv: times must rise, but 2.0 in row 2 is before 3.0 in row 1"),
    "missing": (["1", "", "3"], "trace.csv: the time of row 2 is missing"),
    "missing date": (["2024-01-01", "", "2024-01-03"], "trace.csv, line 3: column when is empty"),
    "text": (["noon", "evening", "night"], "trace.csv, line 2: 'noon' in column when is not a number"),
}  # fmt: skip


@pytest.mark.parametrize(("times", "message"), BAD_TIMES.values(), ids=BAD_TIMES)
def test_times_that_cannot_be_read_are_errors(write, times, message):
    with pytest.raises(TableError, match=re.escape(message)):
        read([write(lines("when,x", times))], time="when")


def test_dates_among_the_data_are_an_error_that_says_what_to_do(write):
    with pytest.raises(TableError, match=r"'2024-01-01' in column when is not a number; .* use --time when"):
        read([write("when,x\n2024-01-01,1\n2024-01-02,2\n")], ["when", "x"])


# Symbols


def test_text_is_encoded_in_alphabetical_order(write):
    table = read([write("base\nT\nA\n\nC\n")])
    assert table.symbols == ("A", "C", "T")
    assert column(table) == [2, 0, None, 1]


def test_a_file_of_symbols_needs_no_header(write):
    table = read([write("A\nC\nA\nG\n")])
    assert table.symbols == ("A", "C", "G")
    assert column(table) == [0, 1, 0, 2]


def test_booleans_are_symbols(write):
    assert read([write("open\nTrue\nFalse\n\nTrue\n")]).symbols == ("False", "True")


def test_given_symbols_keep_their_codes(write):
    table = read([write("base\nT\nA\n")], symbols=("T", "G", "A"))
    assert column(table) == [0, 2]
    assert column(read([write("x\n2\n\n1\n")], symbols=("1", "2"))) == [1, None, 0]


def test_symbols_are_collected_from_all_files(write):
    assert read([write("s\na\nc\n", "1.csv"), write("s\nb\na\n", "2.csv")]).symbols == ("a", "b", "c")


def test_mixed_text_and_numbers_are_symbols_only_if_categorical(write):
    file = write("s\na\n1\n")
    assert read([file], emission="categorical").symbols == ("1", "a")
    with pytest.raises(TableError, match=r"trace.csv, line 2: 'a' in column s is not a number"):
        read([file])


# Errors

BIG = "\n".join(["x", *(f"word {i}" for i in range(60))])
INVALID = {
    "empty": ("", {}, "trace.csv is empty"),
    "blank": ("\n\n", {}, "trace.csv is empty"),
    "header only": ("time,current\n", {"columns": ["current"]}, "trace.csv has a header but no rows"),
    "header of one column only": ("current\n", {}, "trace.csv has a header but no rows"),
    "text": ("t,x\n0,1\n1,2\n2,oops\n", {"columns": ["x"]}, "trace.csv, line 4: 'oops' in column x is not a number"),
    "text after blank lines": ("t,x\n\n0,1\n\n1,?\n", {"columns": ["x"]}, "trace.csv, line 5: '?' in column x"),
    "text in a count": ("x\nA\nB\n", {"emission": "poisson"}, "trace.csv, line 2: 'A' in column x is not a number"),
    "text everywhere": (BIG, {}, "trace.csv, line 2: 'word 0' in column x is not a number"),
    "unknown column": ("t,x\n0,1\n", {"columns": ["y"]}, "trace.csv has no column y; its columns are t, x"),
    "id only": ("cell\n1\n2\n", {"by": "cell"}, "trace.csv has no column other than cell"),
    "id pattern": ("cell,x\n1,1\n", {"columns": ["c*"], "by": "cell"}, "trace.csv has no column c*; its columns are x"),
    "wrong id of many rows": (
        "x\n" + "1\n" * 20,
        {"by": "cell"},
        "trace.csv has no column cell; its columns are x",
    ),
    "wrong id": ("t,x\n0,1\n", {"columns": ["x"], "by": "cell"}, "trace.csv has no column cell; its columns are t, x"),
    "which column": ("t,x\n0,1\n", {}, "trace.csv has the columns t, x; choose with --column"),
    "same name": ("x,x\n0,1\n", {"columns": ["x"]}, "trace.csv has 2 columns named x; column names must differ"),
    "long row": ("t,x\n0,1\n1,2,3\n", {"columns": ["x"]}, "trace.csv, line 3 has 3 cells, but the first line has 2"),
    "short row": ("t,x\n0,1\n1\n2,3\n", {"columns": ["t"]}, "trace.csv, line 3 has 1 cell, but the first line has 2"),
    "long rows": ("t,x\n0,1,2\n1,2,3\n", {"columns": ["x"]}, "trace.csv, line 2 has 3 cells, but the first line has 2"),
    "delimiter": ("t,x\n0,1\n", {"layout": Layout("::")}, "delimiter must be one character, 'tab' or 'space', got"),
    "binary": (b"\x7fELF\0\1\2", {}, "trace.csv is a binary file of unknown format; expected CSV, TSV, NPY or Parquet"),
    "latin-1": ("t,Stärke\n0,1\n".encode("latin-1"), {}, "trace.csv is not UTF-8 text (line 1)"),
    "latin-1 below": ("x\n0\né\n".encode("latin-1"), {}, "trace.csv is not UTF-8 text (line 3)"),
    "utf-16": ("t,x\n0,1\n".encode("utf-16"), {}, "trace.csv is UTF-16 text; save it as UTF-8"),
    "open quote": ('x\n1\n"2\n3\n', {}, "trace.csv cannot be read as a table: "),
    "infinite with a space": ("0\ninf ", {"layout": Layout("tab")}, "trace.csv, line 2: infinite value in column 1"),
    "name of two lines": ('"a\nb",c\n1,2\n', {"columns": ["x"]}, "trace.csv has no column x; its columns are a b, c"),
    "infinite": ("t,x\n0,1\n1,-inf\n", {"columns": ["x"]}, "trace.csv, line 3: infinite value in column x"),
    "no values": ("t,x\n0,\n1,NA\n", {"columns": ["x"]}, "all values of x in trace.csv are missing"),
    "one row": ("x\n1.5\n", {}, "trace.csv has 1 row; a series needs at least 2"),
    "one row of an id": ("id,x\na,1\na,2\nb,3\n", {"by": "id"}, "b has 1 row; a series needs at least 2"),
    "no id": ("id,x\na,1\n,2\n", {"by": "id"}, "trace.csv, line 3: column id is empty"),
    "unknown symbol": ("s\nA\nX\n", {"symbols": ("A", "C")}, "trace.csv, line 3: 'X' is not one of the symbols A, C"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "options", "message"), INVALID.values(), ids=INVALID)
def test_an_unreadable_file_is_an_error_of_one_line(write, content, options, message):
    with pytest.raises(TableError) as caught:
        read([write(content)], **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_files_and_folders_are_errors(tmp_path):
    with pytest.raises(TableError, match=r"file not found: .*nothing.csv"):
        read([tmp_path / "nothing.csv"])
    with pytest.raises(TableError, match="is a folder, not a file"):
        read([tmp_path])


def test_invalid_arrays_are_errors(write):
    np.save("cube.npy", np.zeros((2, 2, 2)))
    with pytest.raises(TableError, match=r"cube.npy has shape \(2, 2, 2\)"):
        read(["cube.npy"])
    np.save("complex.npy", np.array([1j, 2]))
    with pytest.raises(TableError, match=r"complex.npy has dtype complex128; expected real numbers or text"):
        read(["complex.npy"])
    np.save("objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    for name in ("objects.npy", write(b"garbage", "junk.npy")):
        with pytest.raises(TableError, match=f"{name} is not a NumPy array of numbers"):
            read([name])


def test_invalid_parquet_is_an_error(write):
    pytest.importorskip("pyarrow")
    with pytest.raises(TableError, match=r"junk.parquet cannot be read as Parquet"):
        read([write(b"garbage" * 100, "junk.parquet")])


def test_columns_of_several_files_are_matched_by_name(write):
    files = [write("ch1,ch2\n1,10\n2,20\n", "a.csv"), write("ch2,ch1\n10,1\n20,2\n", "b.csv")]
    table = read(files, ["ch*"])
    np.testing.assert_array_equal(table.series[0], table.series[1])


def test_large_unsigned_integers_do_not_wrap(write):
    assert column(read([write(f"x\n1\n{2**64 - 1}\n")])) == [1.0, float(2**64 - 1)]


def test_files_must_have_the_same_columns(write):
    with pytest.raises(TableError, match=r"b.csv has y, but a.csv has x"):
        read([write("x\n1\n2\n", "a.csv"), write("y\n1\n2\n", "b.csv")])


def test_a_million_rows_take_a_few_seconds(write):
    rows = "".join(f"2026-01-01 {i},{i % 7}.25\n" for i in range(1_000_000))
    file = write("time,current\n" + rows)
    begin = time.process_time()
    assert len(read([file], ["current"]).series[0]) == 1_000_000
    assert time.process_time() - begin < 5
