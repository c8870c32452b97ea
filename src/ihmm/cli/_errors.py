"""Errors as one line on stderr, and exit codes: 2 for invalid input, 1 for a bug in ihmm, 130 after Ctrl-C."""

import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click


class InternalError(click.ClickException):
    """A bug in ihmm."""

    exit_code = 1


class InputError(click.ClickException):
    """Invalid options or data."""

    exit_code = 2


class Interruption(click.ClickException):
    """Ctrl-C, or a signal that asks to end."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.exit_code = 128 + _received[-1]  # type: ignore[misc]


_received: list[int] = [signal.SIGINT]


def stop_on_signals() -> None:
    """End as after Ctrl-C when the terminal closes or the process is asked to end, unless that is ignored (nohup)."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)


def _interrupt(number: int, _: Any) -> None:
    _received.append(number)
    raise KeyboardInterrupt


@contextmanager
def input_errors() -> Iterator[None]:
    """Report exceptions raised in this block as errors of the user's input."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of our output has closed it, as `head` does
    except OSError as error:
        raise InputError(describe(error)) from error
    except (ValueError, TypeError, ImportError, RuntimeError) as error:
        raise InputError(str(error)) from error


def describe(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)


@contextmanager
def resumable(run: Path) -> Iterator[None]:
    """On Ctrl-C, explain how to continue the run."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise Interruption(f"interrupted; draws are saved, continue with 'ihmm resume {run}'") from error


class Command(click.Command):
    """A command with the option --debug that reports unexpected exceptions in one line."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        debug = click.Option(["--debug"], is_flag=True, expose_value=False, help="Show the traceback of an error.")
        debug.callback = _store_debug
        self.params.append(debug)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except KeyboardInterrupt as error:
            raise Interruption("interrupted") from error
        except OSError as error:  # a full disk, a folder without permission to write
            raise InputError(describe(error)) from error
        except MemoryError as error:
            raise InputError("not enough memory; use fewer draws or chains, or a shorter series") from error
        except Exception as error:
            if ctx.meta.get("debug"):
                click.echo(traceback.format_exc(), err=True)
            summary = f"{type(error).__name__}: {error}".splitlines()[0]
            advice = "this is a bug in ihmm; run with --debug for the traceback and report it"
            raise InternalError(f"{summary} ({advice})") from error


def _store_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.meta["debug"] = value


class CommandGroup(click.Group):
    command_class = Command
