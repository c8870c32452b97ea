"""Run the Python blocks of the pages, and show what they print and draw below them.

Pages run in processes of their own, from top to bottom, each in an empty folder. Results are kept in docs/_results
until the code of the page or the version of the library changes; `make clean` deletes them. ``-D run_blocks=0`` builds
the pages without running anything.

Pages of the gallery also become notebooks.
"""

import hashlib
import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import logging

SKIP = "<!-- not run -->"
BLOCK = re.compile(rf"^(?P<skip>{re.escape(SKIP)}\s+)?```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
FOLDERS = ("tutorials", "how-to", "gallery", "explanation", "reference")
PROCESSES = 2
MAX_LINES = 40  # of output that are shown

logger = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("run_blocks", True, "env", types=(bool, str))
    app.connect("builder-inited", prepare)
    app.connect("source-read", insert_results)
    return {"parallel_read_safe": False, "parallel_write_safe": True}


def prepare(app: Sphinx) -> None:
    """Write the notebooks, and run every page whose results are not known yet."""
    docs = Path(app.srcdir)
    for page in sorted((docs / "gallery").glob("*.md")):
        write_notebook(page, docs / "_notebooks" / f"{page.stem}.ipynb")
    if app.config.run_blocks in (False, "0"):
        return
    pages = [page for folder in FOLDERS for page in sorted((docs / folder).rglob("*.md"))] + [docs / "index.md"]
    waiting = [page for page in pages if blocks(page.read_text("utf-8")) and not results_of(docs, page).exists()]
    with ThreadPoolExecutor(PROCESSES) as pool:
        for page, error in zip(waiting, pool.map(lambda page: run(docs, page), waiting), strict=True):
            if error:
                logger.warning("the code of %s failed:\n%s", page.relative_to(docs), error)


def blocks(text: str) -> list[str]:
    return [match["code"] for match in BLOCK.finditer(text) if not match["skip"]]


def results_of(docs: Path, page: Path) -> Path:
    """The file with the results of a page, named after its code and the version of the library."""
    import ihmm

    key = json.dumps([blocks(page.read_text("utf-8")), ihmm.__version__])
    name = page.relative_to(docs).with_suffix("").as_posix().replace("/", "-")
    return docs / "_results" / f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:12]}" / "results.json"


def run(docs: Path, page: Path) -> str:
    """Run a page in a process of its own; returns the error, if there is one."""
    file = results_of(docs, page)
    file.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, str(Path(__file__).with_name("run_page.py")), str(page), str(file)]
    done = subprocess.run(command, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr[-2000:]


def insert_results(app: Sphinx, name: str, content: list[str]) -> None:
    """What each block prints, and the figures it makes, below the block."""
    docs = Path(app.srcdir)
    page = docs / f"{name}.md"
    if app.config.run_blocks in (False, "0") or not page.exists() or not results_of(docs, page).exists():
        return
    file = results_of(docs, page)
    results = iter(json.loads(file.read_text("utf-8")))

    def with_result(match: re.Match[str]) -> str:
        if match["skip"]:
            return match[0]
        text, figures = next(results)
        lines = text.rstrip().splitlines()
        if len(lines) > MAX_LINES:
            lines = [*lines[:MAX_LINES], "…"]
        shown = "\n\n```text\n" + "\n".join(lines) + "\n```\n" if lines else ""
        where = file.parent.relative_to(docs).as_posix()
        images = "".join(f"\n\n![Figure made by the code above](/{where}/{figure})\n" for figure in figures)
        return match[0] + shown + images

    content[0] = BLOCK.sub(with_result, content[0])


def write_notebook(page: Path, file: Path) -> None:
    """The text and code of a page as a notebook."""
    text, cells, begin = page.read_text("utf-8"), [], 0
    for match in BLOCK.finditer(text):
        cells += [("markdown", text[begin : match.start()]), ("code", match["code"])]
        begin = match.end()
    cells.append(("markdown", text[begin:]))
    notebook = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
        "cells": [cell(i, kind, body) for i, (kind, body) in enumerate(cells) if plain(body)],
    }
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(notebook, indent=1, ensure_ascii=False), "utf-8")


def cell(i: int, kind: str, body: str) -> dict[str, Any]:
    made = {"cell_type": kind, "id": f"cell-{i}", "metadata": {}, "source": plain(body).splitlines(keepends=True)}
    return made | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def plain(text: str) -> str:
    """Text without the link to the notebook itself."""
    return "\n".join(line for line in text.strip().splitlines() if "{download}" not in line).strip()
