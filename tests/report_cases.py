"""Posteriors to report on, and what a reader sees of a page."""

import json
import re
from functools import cache
from html import unescape

import numpy as np

import ihmm

RNG = np.random.default_rng(5)
MEANS = np.array([0.0, 5.0, 10.0])
PATH = np.repeat([0, 1, 0, 2, 1, 0], [20, 10, 15, 10, 10, 15])
Y = MEANS[PATH] + 0.3 * RNG.standard_normal(len(PATH))
MODEL = ihmm.Model(ihmm.NormalMean(noise=0.3, scale=5), ihmm.HDPPrior(concentration=1.0, stickiness=0.5))
KINDS = ["posterior", "several", "wide", "symbols", "counts", "single"]  # fixtures
NASTY = ["<script>alert(1)</script>", "$$x^2$$ @{y} $index", "</script><b>'&\"amp;"]


def draw_some(model=MODEL, y=Y, init=PATH, **settings) -> ihmm.Posterior:
    settings = {"draws": 6, "tune": 4, "chains": 2, "seed": 1, "moves": ()} | settings
    return ihmm.sample(model, y, init=init, progress=False, **settings)


@cache
def plain_page(posterior: ihmm.Posterior) -> str:
    """The page with nothing else said about it, which many tests read."""
    from ihmm import report

    return report.render(posterior)


def words(page: str) -> str:
    """The text of a page, without figures."""
    page = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.DOTALL).replace("<wbr>", "")
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def tables(page: str) -> list[list[list[str]]]:
    def parts(tag: str, text: str) -> list[str]:
        return re.findall(rf"<{tag}(?: [^>]*)?>(.*?)</{tag}>", text, re.DOTALL)

    rows = [parts("tr", table) for table in parts("table", page)]
    return [[[words(cell) for cell in parts("t[hd]", row)] for row in table] for table in rows]


def embedded(page: str) -> dict:
    """The data of the series that the page contains."""
    return json.loads(re.search(r'id="series-data">(.*?)</script>', page, re.DOTALL)[1])
