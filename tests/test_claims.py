"""The page of claims: every test and every script that it names exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "explanation" / "claims.md").read_text("utf-8")
CLAIMS = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| claim")]
TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py(?:::\w+)+)`", PAGE)))
SCRIPTS = sorted(set(re.findall(r"`python (\S+\.py)\b", PAGE)))
TARGETS = sorted(set(re.findall(r"`make (\w+)`", PAGE)))


@pytest.mark.parametrize("test", TESTS)
def test_every_test_that_is_named_exists(test):
    file, *names = test.split("::")
    body = ast.parse((ROOT / file).read_text("utf-8")).body
    for name in names:
        found = [node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name]
        assert found, f"{file} has no {name}"
        body = found[0].body


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_that_is_named_exists(script):
    assert (ROOT / script).is_file()


@pytest.mark.parametrize("target", TARGETS)
def test_every_make_target_that_is_named_exists(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)


def test_every_claim_has_a_test_or_a_benchmark():
    assert len(CLAIMS) > 40
    assert not [claim for claim in CLAIMS if not re.search(r"`(?:tests/|python |make )", claim)]
