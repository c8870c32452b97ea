"""Small pieces of HTML for notebooks. Colours and fonts are those of the notebook; all text is escaped."""

from collections.abc import Iterable, Sequence
from html import escape

RIGHT = "text-align: right; padding: 0.2em 0.8em; white-space: nowrap"
LEFT = RIGHT.replace("right", "left", 1)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column names the rows."""
    head = "".join(f'<th style="{LEFT if i == 0 else RIGHT}">{escape(cell)}</th>' for i, cell in enumerate(header))
    body = "".join(
        f'<tr><th style="{LEFT}">{escape(first)}</th>'
        + "".join(f'<td style="{RIGHT}">{escape(cell)}</td>' for cell in cells)
        + "</tr>"
        for first, *cells in rows
    )
    return f'<div style="overflow-x: auto"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def settings(rows: Iterable[tuple[str, str]]) -> str:
    """Names and values, one below the other."""
    body = "".join(
        f'<tr><th style="{LEFT}">{escape(name)}</th><td style="{LEFT}; white-space: normal">{escape(value)}</td></tr>'
        for name, value in rows
    )
    return f"<table><tbody>{body}</tbody></table>"


def paragraph(text: str, *, bold: bool = False) -> str:
    return f"<p><b>{escape(text)}</b></p>" if bold else f"<p>{escape(text)}</p>"


def marked(items: Iterable[tuple[str, str]]) -> str:
    """A list whose items have marks of their own."""
    body = "".join(f"<li>{escape(mark)}\u2002{escape(text)}</li>" for mark, text in items)
    return f'<ul style="list-style: none; padding-left: 0.5em">{body}</ul>'
