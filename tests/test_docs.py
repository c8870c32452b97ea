"""The README and the documentation: their code runs, and their links lead somewhere."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts)]
SKIP = "<!-- not run -->"  # on a line of its own before a block
BLOCK = re.compile(rf"^(?P<skip>{re.escape(SKIP)}\s+)?```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
OUTPUT = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CHAIN = re.compile(r"(?P<name>\b(?:draws|tune)(?:=|\": ))(?P<length>\d+)")  # numbers of draws in the code
SHORT = 40
DIRECTIVE = re.compile(r"\{(toctree|eval-rst)\}")
LINK = re.compile(r"\]\((?!\w+:|#)(?P<target>[^)#\s]+)[^)]*\)")
CODE = re.compile(r"^```sh\n(.*?)^```$|`([^`\n]+)`", re.MULTILINE | re.DOTALL)
PATH = re.compile(r"(?<![\w./<-])(?:[\w.-]+/)+[\w.-]*|(?<![\w./<-])[\w-]+\.(?:cff|md|py|toml)\b")
ROOTS = (ROOT, ROOT / "src", ROOT / "src" / "ihmm")  # where a path in the text may start
NOT_IN_THE_REPOSITORY = (".venv/", "docs/_build", "runs/", "settings.toml", "src/ihmm/kernels/__pycache__")

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


def blocks(text: str) -> list[tuple[int, str]]:
    """The code to run, with the number of lines above it."""
    found = BLOCK.finditer(text)
    return [(text.count("\n", 0, match.start("code")), match["code"]) for match in found if not match["skip"]]


@pytest.mark.slow
@every_page
def test_the_code_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch, capsys):
    """With shorter chains than on the page, since only the first block of the README is held to what it prints."""
    from matplotlib import pyplot

    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": page.stem}
    text, printed = page.read_text("utf-8"), []
    for line, code in blocks(text):
        if "ihmm.compare(" not in text:  # which refuses short chains
            code = CHAIN.sub(lambda match: f"{match['name']}{min(int(match['length']), SHORT)}", code)
        exec(compile("\n" * line + code, page, "exec"), namespace)  # a traceback then shows the page's own lines
        printed.append(capsys.readouterr().out)
        pyplot.close("all")  # as the documentation does, once a block's figures are shown
    if page.name == "README.md":  # its chains are as long as they have to be; in words: digits depend on the processor
        found, shown = (without_numbers(part) for part in (printed[0], re.findall(OUTPUT, text)[0]))
        assert found[:1] + found[7:13] == shown[:1] + shown[7:13]


def without_numbers(text: str) -> list[str]:
    return [re.sub(r"[\d.]+|\(.*\)", "", line).strip() for line in text.strip().splitlines()]


@pytest.mark.slow
def test_the_documentation_builds_without_a_warning(tmp_path):
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "--fresh-env"]
    command += ["-D", "run_blocks=0"]  # the code is run by the test above
    done = subprocess.run([*command, ROOT / "docs", tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    estimator = (tmp_path / "reference" / "estimator.html").read_text("utf-8")
    assert "InfiniteHMM" in estimator
    assert "<strong>n_states_" in estimator  # with its underscore
    assert list((tmp_path / "_downloads").rglob("fret.ipynb"))


def test_results_of_the_code_are_shown_below_it(tmp_path):
    (tmp_path / "gallery").mkdir()
    draws = "from matplotlib import pyplot\n\npyplot.plot([1, 2])"
    text = f"# A page\n\n```python\nprint(6 * 7)\n```\n\n```python\n{draws}\n```\n"
    (tmp_path / "gallery" / "page.md").write_text(text + "{download}`x <../_notebooks/page.ipynb>`\n", "utf-8")
    (tmp_path / "index.md").write_text("# Index\n\n```{toctree}\ngallery/page\n```\n", "utf-8")
    (tmp_path / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(ROOT / 'docs' / '_extensions')!r})\n"
        "extensions = ['myst_parser', 'run_blocks']\nexclude_patterns = ['_results', '_notebooks']\n",
        "utf-8",
    )
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--quiet", tmp_path, tmp_path / "out"]
    subprocess.run(command, check=True, capture_output=True)
    page = (tmp_path / "out" / "gallery" / "page.html").read_text("utf-8")
    assert page.index("42") > page.index("print")
    assert "<img" in page
    (notebook,) = (tmp_path / "out" / "_downloads").rglob("page.ipynb")
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code", "code"]
    assert cells[1]["source"] == ["print(6 * 7)"]


@every_page
def test_every_relative_link_leads_somewhere(page):
    broken = [link for link in LINK.findall(page.read_text("utf-8")) if not (page.parent / link).exists()]
    assert not broken


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "README.md"])
def test_every_path_that_is_named_exists(name):
    """In backticks and in shell commands; files that are made while the library is used are left out."""
    code = " ".join(max(found) for found in CODE.findall((ROOT / name).read_text("utf-8")))
    paths = {path for path in PATH.findall(code) if not path.startswith(NOT_IN_THE_REPOSITORY)}
    assert paths
    assert not {path for path in paths if not any((root / path).exists() for root in ROOTS)}


@every_page
def test_every_fence_names_its_language(page):
    """A block without a name would go untested."""
    fences = re.findall(r"^```(.*)$", page.read_text("utf-8"), re.MULTILINE)
    assert len(fences) % 2 == 0
    assert {name for name in fences[0::2] if not DIRECTIVE.fullmatch(name)} <= {"python", "sh", "text"}
    assert set(fences[1::2]) <= {""}


def test_blocks_are_found_unless_marked():
    marked = f"{SKIP}\n```python\ntwo\n```\n\n{SKIP}\n\n```python\nthree\n```\n"
    text = f"a\n```python\none\n```\n{marked}```sh\nfour\n```\n```python\nfive\n```\n"
    assert blocks(text) == [(2, "one\n"), (text.count("\n") - 2, "five\n")]


@pytest.mark.slow
def test_every_public_name_is_what_it_says_whatever_was_imported_before():
    """A module of the same name would take the place of a function once it is imported."""
    code = """
import importlib, pkgutil, ihmm
for module in pkgutil.walk_packages(ihmm.__path__, "ihmm."):
    importlib.import_module(module.name)
modules = {"datasets", "distributed", "durations", "testing", "plots"}
assert all(callable(getattr(ihmm, name)) for name in ihmm.__all__ if name not in modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
