"""Progress of work that takes longer than a second."""

import io
import sys

from ihmm import _waiting


class Terminal(io.StringIO):
    def isatty(self):
        return True


def run_on_a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert list(_waiting.with_progress(range(5), 5, "Counting")) == [0, 1, 2, 3, 4]
    return sys.stderr.getvalue()


def test_short_work_shows_nothing(monkeypatch):
    assert run_on_a_terminal(monkeypatch) == ""


def test_long_work_shows_its_progress_on_a_terminal(monkeypatch):
    monkeypatch.setattr(_waiting, "PATIENCE", -1.0)
    shown = run_on_a_terminal(monkeypatch)
    assert "Counting" in shown
    assert "100%" in shown


def test_without_a_terminal_nothing_is_shown(monkeypatch, capsys):
    monkeypatch.setattr(_waiting, "PATIENCE", -1.0)
    assert list(_waiting.with_progress(range(5), 5, "Counting")) == [0, 1, 2, 3, 4]
    assert capsys.readouterr().err == ""
