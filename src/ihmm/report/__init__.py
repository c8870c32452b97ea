"""A posterior as a page: one HTML file that anyone can open, without Python and without a network.

Needs the extra `report`. States have the numbers of `posterior.summary()` and the colours of `ihmm.plots`.
"""

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from ihmm.posterior import Posterior

try:
    import bokeh
    import jinja2
except ImportError as error:
    raise ImportError("reports need Bokeh and Jinja2: pip install 'ihmm[report]'") from error

from bokeh.resources import Resources

from ihmm.report import _figures, _series, _words

FOLDER = Path(__file__).parent
PAGE = jinja2.Environment(
    loader=jinja2.FileSystemLoader(FOLDER),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
PAGE.policies["json.dumps_kwargs"] = {"sort_keys": False}  # Bokeh defines a model where it is first met


def write(
    posterior: Posterior,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    settings: Mapping[str, Any] | None = None,
    names: Sequence[str] | None = None,
) -> Path:
    """Write the report to a file and return its path. An older file of that name is replaced.

    It says in words what was found and whether the chains agree, and shows the series with its states, to be zoomed
    into, what the states are like, how many there are, and how all that was computed.

    Parameters
    ----------
    title
        Heading of the page.
    settings
        Anything else worth keeping, name → value, shown beside the settings of the posterior.
    names
        Of the columns of the series, such as those of the file it came from.
    """
    file = Path(path)
    if file.is_dir():
        raise IsADirectoryError(f"{file} is a folder; give the path of a file, such as {file / 'report.html'}")
    if not file.parent.is_dir():
        raise FileNotFoundError(f"the folder {file.parent} does not exist; make it first, or write elsewhere")
    file.write_text(render(posterior, title=title, settings=settings, names=names), encoding="utf-8")
    return file


def render(
    posterior: Posterior,
    *,
    title: str | None = None,
    settings: Mapping[str, Any] | None = None,
    names: Sequence[str] | None = None,
) -> str:
    """The report as a string; arguments as for `write`."""
    columns = _words.columns(posterior, names)
    return PAGE.get_template("page.html").render(
        title=title or "Hidden states",
        found=_words.found(posterior),
        check=_words.check(posterior),
        facts=_words.facts(posterior),
        states=_words.states(posterior, columns),
        transitions=_words.transitions(posterior),
        settings=_words.settings(posterior, settings or {}),
        versions=_words.versions(bokeh.__version__),
        written=datetime.now().astimezone(),
        series=_series.series(posterior, columns),
        figures=_figures.figures(posterior, columns),
        bokeh=Resources(mode="inline", components=["bokeh"], minified=True).js_raw[0],
        style=(FOLDER / "page.css").read_text("utf-8"),
        script=(FOLDER / "page.js").read_text("utf-8"),
    )
