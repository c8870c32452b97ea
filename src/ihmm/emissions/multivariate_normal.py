"""Rows of several real numbers: normal, with full or diagonal covariance, single values of a row may be missing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ihmm import _checks
from ihmm._typing import Array, FloatArray, IntArray, Phi, Statistics
from ihmm.emissions._base import LARGEST, Collapsed, ConjugateEmission, Emission
from ihmm.emissions._diagonal import DiagonalNormal
from ihmm.emissions._full import FullNormal
from ihmm.emissions.normal import Normal, NormalPhi

Numbers = Sequence[float] | FloatArray


@dataclass(frozen=True)
class MultivariateNormal(ConjugateEmission):
    """Normal rows of `n_features` columns under the conjugate normal-inverse-Wishart prior.

    Single values of a row may be NaN: they are missing, and the row is judged by the others.

    Parameters
    ----------
    n_features
        D, the number of columns.
    mean
        Where state means are centred: a number, or one for each column.
    strength
        How many observations the prior mean is worth; small values let means spread far.
    dof, scale
        Σ ~ InverseWishart(dof, scale), of mean scale/(dof − D − 1), which is `scale` itself for the default
        dof = D + 2. A number is a multiple of the identity, D numbers are a diagonal; a matrix may be any covariance.
    covariance
        "full"; or "diagonal", with independent columns, each of whose variances has the law it has under "full",
        InvGamma((dof − D + 1)/2, scale_dd/2). Then φ holds `variance` (K, D) in place of `covariance` (K, D, D).
    """

    n_features: int
    mean: float | Numbers = 0.0
    strength: float = 0.1
    dof: float | None = None
    scale: float | Numbers | Sequence[Numbers] = 1.0
    covariance: str = "full"

    def __post_init__(self) -> None:
        size = _checks.count("MultivariateNormal n_features", self.n_features)
        _checks.positive("MultivariateNormal strength", self.strength)
        _checks.one_of("MultivariateNormal covariance", self.covariance, ("full", "diagonal"))
        if self.dof is not None and _checks.finite("MultivariateNormal dof", self.dof) <= size - 1:
            raise ValueError(f"MultivariateNormal dof must be above n_features − 1 = {size - 1}, got {self.dof!r}")
        # settings are kept as plain numbers and tuples of them, which can be compared, hashed and saved
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

    def statistics(self, y: FloatArray, states: IntArray, n_states: int) -> Statistics | None:
        return self._law.statistics(y, states, n_states)

    def combine(self, parts: Sequence[Statistics]) -> Statistics:
        return self._law.combine(parts)

    def resample_given(self, rng: np.random.Generator, statistics: Statistics) -> Phi:
        return self._law.resample_given(rng, statistics)

    def log_likelihood_given(self, statistics: Statistics, phi: Phi) -> float:
        return self._law.log_likelihood_given(statistics, phi)

    def complete(self, rng: np.random.Generator, y: FloatArray, states: IntArray, phi: Phi) -> FloatArray:
        """A copy of y with missing values drawn given the others of their rows."""
        return self._law.complete(rng, y, states, phi)

    def sample_observations(self, rng: np.random.Generator, states: IntArray, phi: Phi) -> FloatArray:
        return self._law.sample_observations(rng, states, phi)

    def column(self, d: int) -> tuple[Emission, Callable[[Phi], Phi]]:
        return Normal(), lambda phi: NormalPhi(phi.mean[:, d], phi[1][:, d] if phi[1].ndim == 2 else phi[1][:, d, d])

    def log_prior(self, phi: Phi) -> FloatArray:
        return self._law.log_prior(phi)

    def log_evidence(self, y: FloatArray) -> float:
        return self._law.log_evidence(y)

    def collapsed(self, y: FloatArray) -> Collapsed | None:
        return self._law.collapsed(y)

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


def real_rows(y: Array, size: int, family: str) -> FloatArray:
    """The values of one sequence as rows of `size` numbers, single ones of which may be NaN."""
    if y.shape[1:] != (size,) and not (size == 1 and y.ndim == 1):
        got = "one number" if y.ndim == 1 else f"{y.shape[1]} columns"
        raise ValueError(f"{family} with n_features = {size} takes rows of that length, shape (T, {size}); got {got}")
    values = y.astype(np.float64).reshape(-1, size)
    bad = np.flatnonzero(np.isinf(values).any(axis=1))
    if bad.size:
        raise ValueError(
            f"{family} expects finite values, got {bad.size} rows that have others (first at t = {bad[0]}); "
            "drop them, or write NaN for what is missing"
        )
    largest = float(np.nanmax(np.abs(values)))
    if largest > LARGEST:
        raise ValueError(f"{family} expects values within ±{LARGEST:g}, got {largest:g}; rescale the series")
    return values


def plain(name: str, value: Any, shapes: list[tuple[int, ...]]) -> Any:
    """A number, or numbers in tuples, from any kind of array."""
    try:
        array = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if isinstance(value, (bool, str)) or array.shape not in shapes or not np.isfinite(array).all():
        expected = " or ".join("a finite number" if shape == () else f"numbers of shape {shape}" for shape in shapes)
        raise ValueError(f"{name} must be {expected}, got {value!r}")
    return _tuples(array.tolist())


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def is_covariance(matrix: FloatArray) -> bool:
    """Whether a matrix is symmetric and positive definite."""
    if not (np.diag(matrix) > 0).all() or not np.allclose(matrix, matrix.T, rtol=1e-10, atol=0):
        return False
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True
