"""Gaussian rows with full or diagonal covariance; single values of a row may be missing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ihmm import _checks
from ihmm._typing import Array, FloatArray, IntArray, Phi
from ihmm.emissions._conjugate import Conjugate
from ihmm.emissions._diagonal import DiagonalNormal
from ihmm.emissions._full import FullNormal
from ihmm.emissions._protocol import ConjugateEmission, Emission
from ihmm.emissions._validation import is_covariance, plain, real_rows
from ihmm.emissions.normal import Normal, NormalPhi

Numbers = Sequence[float] | FloatArray


@dataclass(frozen=True)
class MultivariateNormal(ConjugateEmission):
    """Gaussian rows of `n_features` columns under the conjugate normal-inverse-Wishart prior.

    Single values of a row may be missing (NaN); the density of the row is then that of its observed values.

    Parameters
    ----------
    n_features
        D, the number of columns.
    mean
        Prior mean of the state means: a number, or one for each column.
    strength
        Weight of the prior mean in observations; small values let the state means spread far.
    dof, scale
        Σ ~ InverseWishart(dof, scale), with mean scale/(dof − D − 1), which equals `scale` for the default dof = D + 2.
        `scale` is a multiple of the identity (a number), a diagonal (D numbers) or a covariance matrix.
    covariance
        "full", or "diagonal" for independent columns. Each variance then has the marginal prior it has under "full",
        InvGamma((dof − D + 1)/2, scale_dd/2), and φ has `variance` (K, D) in place of `covariance` (K, D, D).
    """

    n_features: int
    mean: float | Numbers = 0.0
    strength: float = 0.1
    dof: float | None = None
    scale: float | Numbers | Sequence[Numbers] = 1.0
    covariance: str = "full"

    def __post_init__(self) -> None:
        size = _checks.count("MultivariateNormal n_features", self.n_features, most=_checks.MAX_MATRIX)
        _checks.positive("MultivariateNormal strength", self.strength)
        _checks.one_of("MultivariateNormal covariance", self.covariance, ("full", "diagonal"))
        if self.dof is not None and _checks.finite("MultivariateNormal dof", self.dof) <= size - 1:
            raise ValueError(f"MultivariateNormal dof must be above n_features − 1 = {size - 1}, got {self.dof!r}")
        object.__setattr__(self, "mean", plain("MultivariateNormal mean", self.mean, [(), (size,)]))
        shapes = [(), (size,), (size, size)] if self.covariance == "full" else [(), (size,)]
        object.__setattr__(self, "scale", plain("MultivariateNormal scale", self.scale, shapes))
        if not is_covariance(self._scale_matrix):
            raise ValueError(
                "MultivariateNormal scale must be positive, and a matrix symmetric and positive definite, "
                f"got {self.scale!r}"
            )

    def validate(self, y: Array) -> FloatArray:
        return real_rows(y, self.n_features, "MultivariateNormal")

    def log_density(self, y: FloatArray, phi: Phi) -> FloatArray:
        return self._law.log_density(y, phi)

    def log_density_at(self, y: FloatArray, states: IntArray, phi: Phi) -> FloatArray:
        return self._law.log_density_at(y, states, phi)

    def log_marginal(self, y: FloatArray) -> FloatArray:
        return self._law.log_marginal(y)

    def sample_prior(self, rng: np.random.Generator, n: int) -> Phi:
        return self._law.sample_prior(rng, n)

    def resample(self, rng: np.random.Generator, y: FloatArray, states: IntArray, n_states: int) -> Phi:
        return self._law.resample(rng, y, states, n_states)

    def update(self, rng: np.random.Generator, y: FloatArray, states: IntArray, phi: Phi) -> Phi:
        return self._law.update(rng, y, states, phi)

    def complete(self, rng: np.random.Generator, y: FloatArray, states: IntArray, phi: Phi) -> FloatArray:
        return self._law.complete(rng, y, states, phi)

    def sample_observations(self, rng: np.random.Generator, states: IntArray, phi: Phi) -> FloatArray:
        return self._law.sample_observations(rng, states, phi)

    def column(self, d: int) -> tuple[Emission, Callable[[Phi], Phi]]:
        return Normal(), lambda phi: NormalPhi(phi.mean[:, d], phi[1][:, d] if phi[1].ndim == 2 else phi[1][:, d, d])

    def log_prior(self, phi: Phi) -> FloatArray:
        return self._law.log_prior(phi)

    def log_evidence(self, y: FloatArray) -> float:
        return self._law.log_evidence(y)

    def conjugate(self, y: FloatArray) -> Conjugate | None:
        return self._law.conjugate(y)

    @cached_property
    def _law(self) -> FullNormal | DiagonalNormal:
        size = self.n_features
        dof = float(size + 2 if self.dof is None else self.dof)
        mean = np.broadcast_to(np.asarray(self.mean, np.float64), size)
        if self.covariance == "full":
            return FullNormal(mean, self.strength, dof, self._scale_matrix)
        rates = np.diag(self._scale_matrix) / 2
        columns = zip(mean.tolist(), rates.tolist(), strict=True)
        return DiagonalNormal(tuple(Normal(at, self.strength, (dof - size + 1) / 2, rate) for at, rate in columns))

    @property
    def _scale_matrix(self) -> FloatArray:
        scale = np.asarray(self.scale, np.float64)
        return scale if scale.ndim == 2 else np.diag(np.broadcast_to(scale, self.n_features))
