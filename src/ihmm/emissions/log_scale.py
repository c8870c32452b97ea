"""Positive values whose logarithms have another law: lengths, speeds, powers, concentrations, waiting times.

log y ~ f(· | φ),     so that the density of y is f(log y | φ) / y
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ihmm._typing import Array, BoolArray, FloatArray, IntArray, Phi
from ihmm.emissions import _protocol as protocol
from ihmm.emissions._parameters import fields, rebuild, size
from ihmm.emissions._protocol import Emission, has_past, provides

if TYPE_CHECKING:
    from ihmm.kernels.memory import AfterChange


CENTERS = ("mean", "location")  # parameters whose exponential is the median


@dataclass(frozen=True)
class LogScale(Emission):
    """Positive values whose logarithms follow another family of real values: noise that is a factor, not a sum.

    Its parameters φ, and the numbers in their priors, are those of the logarithms. Summaries have the median of each
    state, exp(mean), in the units of the values, in place of the mean of the logarithms.

    Parameters
    ----------
    emission
        The family of the logarithms, such as ``ihmm.NoisyLevels(1)``, ``ihmm.Normal()`` or ``ihmm.Autoregressive(2)``.
    """

    emission: Emission

    def __post_init__(self) -> None:
        own = self.emission
        if isinstance(own, type) or not all(callable(getattr(own, name, None)) for name in protocol.REQUIRED):
            raise TypeError(f"LogScale takes an emission such as ihmm.NoisyLevels(1), got {own!r}")
        if isinstance(own, LogScale) or provides(own, "sliced") or getattr(own, "circular", False):
            raise TypeError(f"LogScale takes a family of real values, such as ihmm.Normal(), got {own!r}")

    @property
    def memory(self) -> int | None:
        """As in other emissions; 0 if the law of the logarithms does not depend on the past."""
        return protocol.memory(self.emission) if provides(self.emission, "with_past") else 0

    @property
    def order(self) -> int:
        return int(getattr(self.emission, "order", 0))

    def without_memory(self) -> "LogScale":
        return LogScale(self.emission.without_memory())

    def validate(self, y: Array) -> FloatArray:
        values = np.asarray(y, np.float64)
        bad = np.flatnonzero((values <= 0).reshape(len(values), -1).any(axis=1))
        if bad.size:
            raise ValueError(
                f"LogScale expects positive values, got {bad.size} time step(s) with others (first at t = {bad[0]}); "
                "use NaN for missing values, and another emission if 0 or negative values mean something"
            )
        return values.reshape(self.emission.validate(np.log(values)).shape)

    def with_past(self, y: FloatArray, offsets: IntArray, missing: BoolArray | None) -> tuple[FloatArray, BoolArray]:
        """The rows of the logarithms, with Σ_d log y_td as a last entry."""
        logs = np.log(y)
        rows, unknown = self.emission.with_past(logs, offsets, missing)
        return np.column_stack([rows.reshape(len(rows), -1), _sum(logs)]), unknown

    # Densities

    def log_density(self, y: FloatArray, phi: Phi) -> FloatArray:
        logs, jacobian = self._split(y)
        table = self.emission.log_density(logs, phi).T
        table -= jacobian
        return np.asarray(table.T)

    def log_density_at(self, y: FloatArray, states: IntArray, phi: Phi) -> FloatArray:
        logs, jacobian = self._split(y)
        return protocol.log_density_at(self.emission, logs, states, phi) - jacobian

    def after_change(self, y: FloatArray, phi: Phi) -> "AfterChange | None":
        logs, jacobian = self._split(y)
        after = self.emission.after_change(logs, phi)
        return None if after is None else after._replace(offset=after.offset - jacobian)

    def log_marginal(self, y: FloatArray) -> FloatArray:
        logs, jacobian = self._split(y)
        return protocol.log_marginal(self.emission, logs) - jacobian

    def _split(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The logarithms as their family expects them, and (n,) Σ_d log y_td."""
        if has_past(self):
            return y[:, :-1], y[:, -1]
        logs = np.log(y)
        return logs, _sum(logs)

    # Parameters

    def sample_prior(self, rng: np.random.Generator, n: int) -> Phi:
        return self.emission.sample_prior(rng, n)

    def sample_new(self, rng: np.random.Generator, n: int, phi: Phi) -> Phi:
        return protocol.sample_new(self.emission, rng, n, phi)

    def resample(self, rng: np.random.Generator, y: FloatArray, states: IntArray, n_states: int) -> Phi:
        return self.emission.resample(rng, self._split(y)[0], states, n_states)

    def update(self, rng: np.random.Generator, y: FloatArray, states: IntArray, phi: Phi) -> Phi:
        logs = self._split(y)[0]
        if provides(self.emission, "update"):
            return self.emission.update(rng, logs, states, phi)
        return self.emission.resample(rng, logs, states, size(phi))

    def log_prior(self, phi: Phi) -> FloatArray:
        return self.emission.log_prior(phi)

    def describe(self, phi: Phi) -> dict[str, FloatArray]:
        """What a summary reports of each state: its median, and the other parameters as they are."""
        return {
            "median" if name in CENTERS else name: np.exp(values) if name in CENTERS else values
            for name, values in fields(phi).items()
        }

    def pool(self, phi: Phi) -> Phi:
        """The average of several states."""
        return rebuild(phi, (values.mean(axis=0, keepdims=True) for values in fields(phi).values()))

    # Observations

    def sample_observations(
        self, rng: np.random.Generator, states: IntArray, phi: Phi, past: FloatArray | None = None, *before: IntArray
    ) -> FloatArray:
        history = () if past is None and not before else (None if past is None else np.log(past), *before)
        return np.exp(self.emission.sample_observations(rng, states, phi, *history))

    def complete(self, rng: np.random.Generator, y: FloatArray, states: IntArray, phi: Phi) -> FloatArray:
        return np.exp(protocol.complete(self.emission, rng, np.log(y), states, phi))

    def column(self, d: int) -> tuple[Emission, Callable[[Phi], Phi]] | None:
        found = self.emission.column(d) if provides(self.emission, "column") else None
        return None if found is None else (LogScale(found[0]), found[1])


def _sum(logs: FloatArray) -> FloatArray:
    """(n,): sum over the columns that are not missing."""
    return np.asarray(np.nansum(logs.reshape(len(logs), -1), axis=1))
