"""Reports: a posterior as one self-contained HTML file.

Needs the extra `report`. States are numbered as in `posterior.summary()` and coloured as in `ihmm.plots`.
"""

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from ihmm.posterior import Posterior
from ihmm.store.archive import write_atomically

try:
    import bokeh
    import jinja2
except ImportError as error:
    raise ImportError("reports need Bokeh and Jinja2: pip install 'ihmm[report]'") from error

from bokeh.resources import Resources

from ihmm.report import _figures, _series, _text

FOLDER = Path(__file__).parent
PAGE = jinja2.Environment(
    loader=jinja2.FileSystemLoader(FOLDER),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
PAGE.policies["json.dumps_kwargs"] = {"sort_keys": False}  # Bokeh models must be defined before they are referenced


def write(
    posterior: Posterior,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    settings: Mapping[str, Any] | None = None,
    names: Sequence[str] | None = None,
) -> Path:
    """Write the report to a file and return its path. An existing file is replaced.

    The report has the levels and their kinetic states, the verdict and what it rests on, a zoomable figure of the
    series and its states, tables and figures of the states, and the settings of the run.

    Parameters
    ----------
    title
        Heading of the page.
    settings
        Further settings to list, name → value, after those of the posterior.
    names
        Names of the columns of the series.
    """
    file = Path(path)
    if file.is_dir():
        raise IsADirectoryError(f"{file} is a directory; pass the path of a file, such as {file / 'report.html'}")
    if not file.parent.is_dir():
        raise FileNotFoundError(f"the directory {file.parent} does not exist; create it first, or choose another path")
    page = render(posterior, title=title, settings=settings, names=names).encode()
    if file.exists() and not file.is_file():
        file.write_bytes(page)  # a device or a pipe
    else:
        write_atomically(file.resolve(), page)
    return file


def render(
    posterior: Posterior,
    *,
    title: str | None = None,
    settings: Mapping[str, Any] | None = None,
    names: Sequence[str] | None = None,
) -> str:
    """The report as a string; arguments as for `write`."""
    columns = _text.columns(posterior, names)
    return PAGE.get_template("page.html").render(
        title=title or "Hidden states",
        headline=_text.headline(posterior),
        check=posterior.check(),
        facts=_text.facts(posterior),
        levels=_text.levels(posterior),
        states=_text.states(posterior, columns),
        transitions=_text.transitions(posterior),
        order_by=posterior.order_by,
        settings=_text.settings(posterior, settings or {}),
        versions=_text.versions(bokeh.__version__),
        written=datetime.now().astimezone(),
        series=_series.series(posterior, columns),
        figures=_figures.figures(posterior, columns),
        bokeh=Resources(mode="inline", components=["bokeh"], minified=True).js_raw[0],
        style=(FOLDER / "page.css").read_text("utf-8"),
        script=(FOLDER / "page.js").read_text("utf-8"),
    )
