"""Entry point of the command `ihmm` and of `python -m ihmm`."""

import sys
from io import TextIOWrapper


def main() -> None:
    try:
        from ihmm.cli import cli
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.exit("The command line needs click: pip install 'ihmm[cli]'")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # for terminals that cannot display every character
    cli(prog_name="ihmm")


if __name__ == "__main__":
    main()
