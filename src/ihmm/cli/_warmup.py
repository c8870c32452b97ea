"""ihmm warmup: compile ahead of the first run."""

import time
from typing import TYPE_CHECKING

import click

import ihmm
from ihmm.cli._errors import Command

if TYPE_CHECKING:
    from ihmm._typing import Array
    from ihmm.emissions import Emission


@click.command(cls=Command)
def warmup() -> None:
    """Compile all kernels now, so that the first run starts at once.

    \b
    Example:
      ihmm warmup
    """
    begin = time.perf_counter()
    y, states = ihmm.datasets.ion_channel(length=60)[:2]
    for values in (y[:, None], states[:, None], 20 * states[:, None], y.reshape(-1, 2)):
        _compile_for(values, "auto")
    _compile_for(y.reshape(-1, 2), ihmm.Independent(ihmm.Normal(), ihmm.Normal()))
    ihmm.InfiniteHMM(draws=2, tune=2, chains=1).fit(ihmm.datasets.fret(length=200).series)
    click.echo(f"Compiled in {time.perf_counter() - begin:.1f} s; compiled code is cached on disk.")


def _compile_for(values: "Array", emission: "str | Emission") -> None:
    from ihmm.model import model_for

    model = model_for(values, emission)
    for sampler in (ihmm.ParticleGibbs(), ihmm.Beam(), ihmm.DirectAssignment()):
        posterior = ihmm.sample(model, values, sampler=sampler, draws=2, tune=2, chains=1, init="auto", progress=False)
    posterior.smooth(values)
    posterior.log_likelihood(values)
