"""ihmm warmup: compile ahead of the first run."""

import time
from typing import TYPE_CHECKING

import click
import numpy as np

import ihmm
from ihmm.cli._errors import Command

if TYPE_CHECKING:
    from ihmm._typing import Array
    from ihmm.emissions import Emission
    from ihmm.samplers import Sampler

    Task = tuple[Array, str | Emission, Sampler]


@click.command(cls=Command)
def warmup() -> None:
    """Compile all kernels now, so that the first run starts at once.

    Kernels are compiled for numbers, symbols, counts, rows and columns of different types, and for the samplers that
    are not the default.

    \b
    Example:
      ihmm warmup
    """
    from ihmm.kernels.compilation import where_kept
    from ihmm.running.progress import while_compiling

    begin = time.perf_counter()
    for values, emission, sampler in while_compiling(_tasks()):
        _compile_for(values, emission, sampler)
    folder, reason = where_kept()
    click.echo(
        f"Compiled in {time.perf_counter() - begin:.1f} s, kept in {folder}" + (f" ({reason})" if reason else "")
    )


def _tasks() -> "list[Task]":
    y, states = ihmm.datasets.ion_channel(length=60)[:2]
    rows, number = y.reshape(-1, 2), y[:, None]
    data: list[tuple[Array, str | Emission]] = [(number, "normal"), (rows, "normal")]
    data += [(states[:, None], "auto"), (20 * states[:, None], "auto")]
    data += [(rows, ihmm.Independent(ihmm.Normal(), ihmm.Normal()))]
    samplers = (ihmm.ParticleGibbs(), ihmm.Beam(), ihmm.DirectAssignment())
    tasks: list[Task] = [(*each, sampler) for sampler in samplers for each in data]
    return [(ihmm.datasets.fret(length=200).series[0], "auto", samplers[0]), *tasks, (number, "student-t", samplers[0])]


def _compile_for(values: "Array", emission: "str | Emission", sampler: "Sampler") -> None:
    from ihmm.choice import ModelOptions, choose_model

    given = ModelOptions(emission, sampler=sampler)
    choice = choose_model(values.reshape(len(values), -1), np.array([len(values)]), given)
    posterior = ihmm.sample(
        choice.model, values, sampler=sampler, draws=2, tune=2, chains=1, init=choice.init, progress=False
    )
    posterior.smooth(values)
    posterior.log_likelihood(values)
