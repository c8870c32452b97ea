"""ihmm simulate: example data as CSV."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import ihmm
from ihmm.cli._errors import Command, input_errors
from ihmm.cli._options import NOT_NEGATIVE, POSITIVE, csv_option
from ihmm.cli._runs import check_writable

if TYPE_CHECKING:
    from ihmm.model import Model

ION_CHANNEL = "ion-channel"
EMISSIONS = (ION_CHANNEL, "normal", "categorical", "poisson", "bernoulli", "multinomial", "student-t", "von-mises")


@click.command(cls=Command)
@click.option("--states", type=POSITIVE, help="Maximum number of states; unlimited by default.")
@click.option("--length", type=POSITIVE, default=4000, show_default=True, help="Number of rows.")
@click.option("--seed", type=NOT_NEGATIVE, default=0, show_default=True, help="Random seed.")
@click.option(
    "--emission",
    type=click.Choice(EMISSIONS),
    default=ION_CHANNEL,
    show_default=True,
    help="A recording of an ion channel with four levels, or the emission of the model to simulate.",
)
@csv_option
def simulate(states: int | None, length: int, seed: int, emission: str, out: Path | None) -> None:
    """Simulate a series as example data.

    The output is CSV with the values and the true state of each row.

    \b
    Examples:
      ihmm simulate --out trace.csv
      ihmm simulate --emission poisson --states 3 --length 1000 --seed 7 > counts.csv
    """
    with input_errors():
        if emission == ION_CHANNEL and states is not None:
            raise ValueError(
                "--states cannot be used with --emission ion-channel, which has four levels; choose another --emission"
            )
        check_writable(out)
        write_simulated(out, emission, states, length, seed)


def write_simulated(out: Path | None, emission: str, states: int | None, length: int, seed: int) -> None:
    import pandas

    if emission == ION_CHANNEL:
        recording = ihmm.datasets.ion_channel(length, seed)
        columns = {"current": recording.y, "state": recording.states}
    else:
        simulated = ihmm.simulate(_example_model(emission, states), length, seed)
        y = simulated.y[0]
        y = y.astype(int) if (y == y.round()).all() else y
        values = {"value": y} if y.ndim == 1 else {f"value{d}": column for d, column in enumerate(y.T)}
        columns = {**values, "state": simulated.draw.states}
    pandas.DataFrame(columns).to_csv(sys.stdout if out is None else out, index=False, float_format="%.5f")
    if out is not None:
        click.echo(f"Wrote {out}")


def _example_model(emission: str, states: int | None) -> "Model":
    families = {
        "normal": ihmm.NormalMean(noise=0.5, mean=0.0, scale=4.0),
        "categorical": ihmm.Categorical(n_symbols=6, concentration=0.3),
        "poisson": ihmm.Poisson(shape=1.0, rate=0.1),
        "bernoulli": ihmm.Bernoulli(n_features=8, a=0.5, b=0.5),
        "multinomial": ihmm.Multinomial(n_categories=5, total=20),
        "student-t": ihmm.StudentT(dof=4.0, strength=0.02, shape=10.0, rate=2.0),
        "von-mises": ihmm.VonMises(),
    }
    rows: dict[str, Any] = {"concentration": 20.0, "stickiness": 0.95}  # mean dwell time of about 20 steps
    prior = ihmm.HDPPrior(**rows) if states is None else ihmm.FinitePrior(n_states=states, gamma=None, **rows)
    return ihmm.Model(families[emission], prior)
