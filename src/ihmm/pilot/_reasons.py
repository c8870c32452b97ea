"""Why the pilot fit chose a model, in sentences."""

import numpy as np

from ihmm.pilot._dynamics import Dynamics
from ihmm.pilot._fit import Fit

WANDERING = 0.9  # sum of the coefficients from which noise stays away from its level for long
HEAVY = 12.0  # degrees of freedom below which tails are heavy
STANDING_OUT = (
    "{} levels stand out: far apart, visited again and again, with hardly a value in between. Values on a level "
    "follow each other smoothly, which is no reason for further levels, so their number is taken as given."
)
TREND = (
    "A slow trend or a regular wave explains the recording better than levels do, so it is taken for one level. To ask "
    "for levels around the trend, subtract it first, with scipy.signal.detrend or a running median, for example."
)
AROUND_TREND = (
    "{} levels around a baseline that changes slowly explain the recording better than more levels do. The baseline is "
    "subtracted, and levels are relative to it."
)
WITHIN_VISITS = (
    "Values rise or fall in the same way in each visit, which explains the recording with {} levels better than more "
    "levels do. This course is subtracted, and levels are the means of visits."
)
CORRELATED = "The noise of the columns is correlated, and the model allows for it."
OWN_CORRELATIONS = "The noise of the columns is correlated, in each state in its own way, and the model allows for it."


def logarithms(gain: float) -> str:
    return (
        "The noise is a factor rather than a sum: the logarithms of the values are modelled, which explains them "
        f"better by {gain:.2f} nats per value. What follows is about the logarithms."
    )


def columns_predict(gain: float) -> str:
    return (
        f"The columns predict each other's next values, by {gain:.2f} nats per value more than each its own: what the "
        "states have is dynamics, not levels."
    )


def dynamics_switch(dynamics: Dynamics, gain: float) -> str:
    return (
        f"How values follow each other changes between {dynamics.n_states} states, which explains the series better "
        f"than levels do, by {gain:.2f} nats per value: what the states have is dynamics, not levels."
    )


def levels_in_noise(fit: Fit, hum: list[float]) -> list[str]:
    """What the noise around the levels is like, and how long they last."""
    structure = fit.structure
    memory = ", ".join(f"{a:.2f}" for a in fit.coefficients.mean(axis=1)).replace("-", "−")
    steps = f"{structure.order} step{'s' * (structure.order > 1)}"
    if structure.order == 0:
        reasons = ["The noise is white: values around their level do not depend on the values before."]
    elif structure.sharp or fit.n_states == 1:
        changes = ", and levels change at once" if fit.n_states > 1 else ""
        reasons = [f"The noise has a memory of {steps} (coefficients {memory}){changes}."]
    else:
        reasons = [
            f"The recording was filtered: levels and noise have the same memory of {steps} (coefficients "
            f"{memory}), and changes of level take a few steps."
        ]
    if fit.n_states == 1 and structure.order > 0 and fit.coefficients.sum(axis=0).max() > WANDERING:
        reasons.append("Noise with so long a memory wanders as levels do: a few changes of level would look the same.")
    if fit.n_states > 1:
        ratio = np.max(fit.scale.max(axis=0) / fit.scale.min(axis=0))
        own = f"The noise differs between states, by a factor of up to {ratio:.1f}."
        reasons.append("The noise has the same scale in all states." if structure.shared else own)
        reasons.append(
            "A state lasts at least 2 steps: values on the way from one level to another are not states."
            if structure.dwell > 1
            else "There are visits of a single step."
        )
    if fit.dof < HEAVY:
        reasons.append(
            f"There are outliers: the tails are those of a Student t with about {fit.dof:.0f} degrees of freedom."
        )
    if hum:
        periods = ", ".join(f"{period:.1f}" for period in hum)
        reasons.append(f"There is hum, with a period of {periods} steps; it is no reason for further levels.")
    return reasons
