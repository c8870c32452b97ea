"""The command `ihmm`, also as `python -m ihmm`."""

import sys


def main() -> None:
    try:
        from ihmm.cli import cli
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.exit("The command line needs click: pip install 'ihmm[cli]'")
    cli(prog_name="ihmm")


if __name__ == "__main__":
    main()
