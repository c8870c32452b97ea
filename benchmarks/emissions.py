"""Time of one particle Gibbs sweep for each emission family, relative to `Normal`.

    python benchmarks/emissions.py [--steps 4000]

Each family is run on data simulated from four of its own states, with a chain that has converged to them. All are timed
in turns in the same run.
"""

import argparse
from functools import partial

import numpy as np
from scale import in_turns

import ihmm
from ihmm.data import Data
from ihmm.emissions import Emission
from ihmm.gibbs import initial_draw, sweep
from ihmm.model import Draw, Model

PRIOR = ihmm.FinitePrior(n_states=4, gamma=None, concentration=20.0, stickiness=0.9)
FAMILIES: dict[str, Emission] = {
    "Normal": ihmm.Normal(strength=0.02),
    "NormalMean": ihmm.NormalMean(noise=0.5, scale=4.0),
    "Categorical(27)": ihmm.Categorical(27, concentration=0.3),
    "Poisson": ihmm.Poisson(shape=1.0, rate=0.1),
    "Bernoulli(5)": ihmm.Bernoulli(5, a=0.5, b=0.5),
    "Multinomial(5)": ihmm.Multinomial(5, total=20),
    "MultivariateNormal(3)": ihmm.MultivariateNormal(3, strength=0.02),
    "  with diagonal covariance": ihmm.MultivariateNormal(3, strength=0.02, covariance="diagonal"),
    "Autoregressive(1)": ihmm.Autoregressive(1, strength=0.02),
    "Autoregressive(3, 3)": ihmm.Autoregressive(3, 3, precision=50.0),
    "StudentT": ihmm.StudentT(strength=0.02),
    "VonMises": ihmm.VonMises(),
    "Independent(C, N, N)": ihmm.Independent(ihmm.Categorical(3), ihmm.Normal(), ihmm.Normal()),
    "DPMixture(Normal, 0.3)": ihmm.DPMixture(ihmm.Normal(strength=0.02), concentration=0.3),
    "DPMixture(Normal, 1)": ihmm.DPMixture(ihmm.Normal(strength=0.02), concentration=1.0),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=4000)
    steps = parser.parse_args().steps
    cases = {name: settled(emission, steps) for name, emission in FAMILIES.items()}
    times = in_turns(15, *(partial(one_sweep, *case) for case in cases.values()))
    print(f"One sweep, T = {steps}, N = 10, data from four states")
    print(f"{'':<26} {'ms':>7}   vs Normal   states   components")
    for (name, (_, _, draw)), seconds in zip(cases.items(), times, strict=True):
        components = np.count_nonzero(draw.phi.weights) if hasattr(draw.phi, "weights") else ""
        print(f"{name:<26} {1e3 * seconds:7.2f} {seconds / times[0]:11.2f} {draw.n_states:8d} {components:>12}")


def settled(emission: Emission, steps: int) -> tuple[Model, Data, Draw]:
    """A chain after 20 sweeps from the true trajectory."""
    simulated = ihmm.simulate(Model(emission, PRIOR), steps, seed=2)
    model = Model(emission)
    data = model.observe(simulated.y)
    rng = np.random.default_rng(1)
    draw = initial_draw(rng, data, model, simulated.draw.states)
    for _ in range(20):
        draw, _ = sweep(rng, data, model, draw, ihmm.ParticleGibbs())
    return model, data, draw


def one_sweep(model: Model, data: Data, draw: Draw) -> None:
    sweep(np.random.default_rng(3), data, model, draw, ihmm.ParticleGibbs())


if __name__ == "__main__":
    main()
