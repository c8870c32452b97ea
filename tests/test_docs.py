"""The README and the documentation: their code runs, and their links lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SKIP = "<!-- not run -->"  # on a line of its own before a block
BLOCK = re.compile(rf"^(?P<skip>{re.escape(SKIP)}\s+)?```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!\w+:|#)(?P<target>[^)#\s]+)[^)]*\)")

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


def blocks(text: str) -> list[tuple[int, str]]:
    """The code to run, with the number of lines above it."""
    found = BLOCK.finditer(text)
    return [(text.count("\n", 0, match.start("code")), match["code"]) for match in found if not match["skip"]]


@pytest.mark.slow
@every_page
def test_the_code_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": page.stem}
    for line, code in blocks(page.read_text("utf-8")):
        exec(compile("\n" * line + code, page, "exec"), namespace)  # a traceback then shows the page's own lines


@every_page
def test_every_relative_link_leads_somewhere(page):
    broken = [link for link in LINK.findall(page.read_text("utf-8")) if not (page.parent / link).exists()]
    assert not broken


@every_page
def test_every_fence_names_its_language(page):
    """A block without a name would go untested."""
    fences = re.findall(r"^```(.*)$", page.read_text("utf-8"), re.MULTILINE)
    assert len(fences) % 2 == 0
    assert set(fences[0::2]) <= {"python", "sh"}
    assert set(fences[1::2]) <= {""}


def test_blocks_are_found_unless_marked():
    marked = f"{SKIP}\n```python\ntwo\n```\n\n{SKIP}\n\n```python\nthree\n```\n"
    text = f"a\n```python\none\n```\n{marked}```sh\nfour\n```\n```python\nfive\n```\n"
    assert blocks(text) == [(2, "one\n"), (text.count("\n") - 2, "five\n")]
