"""Entry point of the command `ihmm` and of `python -m ihmm`."""

import contextlib
import sys
from io import TextIOWrapper


def main() -> None:
    try:
        from ihmm.cli import cli, stop_on_signals
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.exit("The command line needs click: pip install 'ihmm[cli]'")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # for terminals that cannot display every character
    stop_on_signals()
    try:
        try:
            cli(prog_name="ihmm")
        finally:
            _flush()
    except OSError as error:
        sys.stdout = None  # it would be flushed again, and fail again
        sys.exit(f"Error: the output cannot be written: {error.strerror}")


def _flush() -> None:
    with contextlib.suppress(BrokenPipeError):  # the reader has closed it, as `head` does
        sys.stdout.flush()


if __name__ == "__main__":
    main()
