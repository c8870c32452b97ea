"""The command `ihmm`: parse options, call the library, print. One file per command; fit and resume share one."""

import click

import ihmm
from ihmm.cli._demo import demo
from ihmm.cli._errors import CommandGroup, stop_on_signals
from ihmm.cli._fit import fit, resume
from ihmm.cli._info import info
from ihmm.cli._predict import predict
from ihmm.cli._report import report
from ihmm.cli._simulate import simulate
from ihmm.cli._warmup import warmup

__all__ = ["cli", "stop_on_signals"]


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(ihmm.__version__, message="ihmm %(version)s")
def cli() -> None:
    """Hidden Markov models with an unknown number of states.

    \b
    ihmm fit trace.csv --column current    fit a model and print a summary
    ihmm demo                              run an example
    ihmm fit --help                        show all options of a command
    """


for command in (fit, resume, predict, report, info, simulate, demo, warmup):
    cli.add_command(command)
