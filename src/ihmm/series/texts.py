"""Numbers and times written as text: decimal points and commas, dates and times of day."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ihmm._typing import Array, FloatArray

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "-nan", "NULL", "null", "None")
MINUS = "\N{MINUS SIGN}"
SIGN_AND_EXPONENT = r"[-+−]?{}(?:[eE][-+]?\d+)?"
WITH_COMMA = re.compile(SIGN_AND_EXPONENT.format(r"(?:\d+|\d{1,3}(?:\.\d{3})+)?,?\d*"))  # 1.234,5
WITH_POINT = re.compile(SIGN_AND_EXPONENT.format(r"(?:\d{1,3}(?:,\d{3})+)\.?\d*"))  # 1,234.5
DATE_FORMATS = ("ISO8601", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y")
TIME_FORMATS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f")
TIME_OF_DAY = re.compile(r"\d{1,3}:\d{2}(?::\d{2}(?:[.,]\d+)?)?")


class NotANumberError(ValueError):
    """A text is not a number; `place` is its position."""

    def __init__(self, place: int, message: str) -> None:
        super().__init__(message)
        self.place = place


def is_number(text: str) -> bool:
    """Whether a text is a number with a decimal point."""
    try:
        float(text.replace(MINUS, "-"))
    except ValueError:
        return False
    return "_" not in text


def is_number_with_comma(text: str) -> bool:
    """Whether a text is a number, with a decimal point or a decimal comma."""
    return is_number(text) or (any(map(str.isdigit, text)) and bool(WITH_COMMA.fullmatch(text.strip())))


def parse_numbers(texts: Sequence[Any], decimal: str | None = None) -> FloatArray:
    """Numbers from texts, NaN for what is not a text.

    With ``decimal=","`` the comma is the decimal mark. By default all texts must have a decimal point, or all a decimal
    comma; if both readings are possible, as for "1,234", neither is chosen.
    """
    distinct = list(dict.fromkeys(text for text in texts if isinstance(text, str)))
    if decimal is None:
        decimal = _decimal_mark(distinct)
    value_of = {text: _number(text, decimal) for text in distinct}
    values = np.array([value_of[text] if isinstance(text, str) else np.nan for text in texts], object)
    wrong = np.flatnonzero([value is None for value in values])
    if len(wrong):
        raise NotANumberError(int(wrong[0]), f"{texts[int(wrong[0])]!r}")
    return values.astype(np.float64)


def _number(text: str, decimal: str) -> float | None:
    plain = text.strip().replace(MINUS, "-")
    if decimal == "," and WITH_COMMA.fullmatch(plain):
        plain = plain.replace(".", "").replace(",", ".")
    elif decimal == "." and WITH_POINT.fullmatch(plain):
        plain = plain.replace(",", "")
    elif decimal == "," and "." in plain:
        return None
    return float(plain) if is_number(plain) else np.nan if text in MISSING else None


def _decimal_mark(texts: Sequence[str]) -> str:
    """The decimal mark of numbers; a comma before three digits could also separate thousands."""
    commas = [text.strip().lstrip("+-−") for text in texts if "," in text]
    if not commas or not all(WITH_COMMA.fullmatch(text) for text in commas):
        return "."
    # Not thousands: other than three digits after the comma, nothing or 0 before it, or thousands with points
    if any(not re.fullmatch(r"[1-9]\d{0,2},\d{3}", text) for text in commas):
        return "," if not any("." in text and "," not in text for text in texts) else "."
    raise AmbiguousError(
        f"{commas[0]!r} could be {commas[0].replace(',', '.')} or {commas[0].replace(',', '')}",
    )


class AmbiguousError(ValueError):
    """Texts that can be read in more than one way."""


def parse_times(texts: Sequence[str]) -> Array | None:
    """Dates, or times of day as time differences, from texts; None if they are neither.

    A format that is ambiguous, such as 03/04/2024, is used only if the dates rise in one of its readings alone.
    """
    import pandas

    first = texts[0].strip()
    if TIME_OF_DAY.fullmatch(first):
        parts = [text.strip().replace(",", ".") for text in texts]
        padded = [text if text.count(":") == 2 else f"{text}:00" for text in parts]
        found = pandas.to_timedelta(pandas.Series(padded), errors="coerce")
        return None if found.isna().any() else np.asarray(found)
    if not re.match(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}", first):
        return None
    readings = []
    for date in DATE_FORMATS:
        for time in ("",) if date == "ISO8601" else TIME_FORMATS:
            dates = pandas.to_datetime(pandas.Series(texts), format=date + time, errors="coerce", utc=True)
            if not dates.isna().any():
                readings.append((date, np.asarray(dates.dt.tz_convert(None))))
    rising = [(date, dates) for date, dates in readings if bool(np.all(np.diff(dates) >= np.timedelta64(0)))]
    if len({dates.tobytes() for _, dates in rising}) > 1:
        raise AmbiguousError(f"{first!r} can be read as {' or '.join(date for date, _ in rising[:2])}")
    return rising[0][1] if rising else readings[0][1] if readings else None
