"""Columns of different kinds: one family per group of columns, independent within a state."""

import re
from collections import Counter, namedtuple
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice
from keyword import iskeyword
from typing import Any, NamedTuple

import numpy as np

from ihmm._typing import Array, BoolArray, FloatArray, IntArray, Phi, Statistics
from ihmm.emissions import _protocol
from ihmm.emissions._angles import angle_fields
from ihmm.emissions._conjugate import Conjugate, conjugate
from ihmm.emissions._parameters import fields, rebuild, size
from ihmm.emissions._protocol import REQUIRED, ConjugateEmission, Emission, provides, shares_parameters
from ihmm.kernels.families import CompiledFamily

Steps = BoolArray | slice


@dataclass(frozen=True, init=False, repr=False)
class Independent(ConjugateEmission):
    """Several families side by side, each for its own columns, independent within a state.

    Parts take as many columns as they need, in the order given. Any emission without a past or components can be a
    part. Names of parts prefix the names of parameters: φ of

        ihmm.Independent(mode=ihmm.Categorical(3), speed=ihmm.Normal(), place=ihmm.MultivariateNormal(2))

    has the fields mode_probs, speed_mean, speed_variance, place_mean and place_covariance. Unnamed parts are named
    after their class. If all columns of a part are missing (NaN) at a step, the density is that of the other parts; if
    only some are, the part decides how to treat them.

    φ can be integrated out if it can be in every part.
    """

    parts: tuple[Emission, ...]
    names: tuple[str, ...]

    def __init__(self, *parts: Emission, **named: Emission) -> None:
        object.__setattr__(self, "parts", (*parts, *named.values()))
        object.__setattr__(self, "names", (*_names(parts), *named))
        if not self.parts:
            raise ValueError("Independent needs parts, such as Independent(ihmm.Categorical(3), ihmm.Normal())")
        for name, part in zip(self.names, self.parts, strict=True):
            if isinstance(part, type | Independent) or not all(provides(part, method) for method in REQUIRED):
                raise TypeError(f"Independent takes emissions such as ihmm.Normal() as its parts, got {part!r}")
            if provides(part, "with_past") or provides(part, "sliced"):
                raise TypeError(f"Independent takes emissions without a past or components as its parts, got {part!r}")
            if shares_parameters(part):
                raise TypeError(
                    f"Independent takes emissions whose states share no parameters as its parts, got {part!r}; use "
                    "numbers in place of priors on them"
                )
            if self.names.count(name) > 1 or not name.isidentifier() or iskeyword(name):
                raise ValueError(f"Independent needs a different name for every part, without spaces, got {name!r}")

    def __repr__(self) -> str:
        named = (f"{name}={part!r}" for name, part in zip(self.names, self.parts, strict=True))
        return f"Independent({', '.join(named)})"

    def validate(self, y: Array) -> FloatArray:
        values = y.reshape(len(y), -1).astype(np.float64)
        if values.shape[1] != self._n_columns:
            each = ", ".join(f"{block.columns.stop - block.columns.start} for {block.name}" for block in self._blocks)
            raise ValueError(f"Independent takes {self._n_columns} columns here ({each}), got {values.shape[1]}")
        for block in self._blocks:
            known = _known(values[:, block.columns])
            if not known.any():
                continue
            # a missing row is replaced by an observed one, so that error messages report the time steps of the user
            own = values[np.where(known, np.arange(len(y)), np.argmax(known)), block.columns]
            try:
                checked = block.part.validate(own if own.shape[1] > 1 else own[:, 0])
            except ValueError as error:
                raise ValueError(f"{block}: {error}") from error
            values[known, block.columns] = checked.reshape(own.shape)[known]
        return values

    def log_density(self, y: FloatArray, phi: Phi) -> FloatArray:
        out = np.zeros((size(phi), len(y)))
        for block, known, own in self._with_values(y):
            out[:, known] += block.part.log_density(own, block.phi(phi)).T
        return out.T

    def log_density_at(self, y: FloatArray, states: IntArray, phi: Phi) -> FloatArray:
        out = np.zeros(len(y))
        for block, known, own in self._with_values(y):
            out[known] += _protocol.log_density_at(block.part, own, states[known], block.phi(phi))
        return out

    def log_marginal(self, y: FloatArray) -> FloatArray:
        out = np.zeros(len(y))
        for block, known, own in self._with_values(y):
            out[known] += _protocol.log_marginal(block.part, own)
        return out

    def sample_prior(self, rng: np.random.Generator, n: int) -> Phi:
        return self._join(block.part.sample_prior(rng, n) for block in self._blocks)

    def resample(self, rng: np.random.Generator, y: FloatArray, states: IntArray, n_states: int) -> Phi:
        return self._renew(rng, y, states, n_states, None)

    def update(self, rng: np.random.Generator, y: FloatArray, states: IntArray, phi: Phi) -> Phi:
        return self._renew(rng, y, states, size(phi), phi)

    def complete(self, rng: np.random.Generator, y: FloatArray, states: IntArray, phi: Phi) -> FloatArray:
        out = np.where(np.isnan(y), self.sample_observations(rng, states, phi), y)
        for block, known, own in self._with_values(y):
            partly = np.isnan(own).reshape(len(own), -1).any(axis=1)
            if partly.any():
                here = np.arange(len(y))[known][partly]
                filled = _protocol.complete(block.part, rng, own[partly], states[here], block.phi(phi))
                out[here, block.columns] = filled.reshape(len(here), -1)
        return out

    def sample_observations(self, rng: np.random.Generator, states: IntArray, phi: Phi) -> FloatArray:
        out = np.empty((len(states), self._n_columns))
        for block in self._blocks:
            drawn = block.part.sample_observations(rng, states, block.phi(phi))
            out[:, block.columns] = drawn if drawn.ndim == 2 else drawn[:, None]
        return out

    def column(self, d: int) -> tuple[Emission, Callable[[Phi], Phi]] | None:
        block = next(block for block in self._blocks if d < block.columns.stop)
        if block.step.ndim == 1:
            return block.part, block.phi
        if not provides(block.part, "column") or (own := block.part.column(d - block.columns.start)) is None:
            return None
        law, pick = own
        return law, lambda phi: pick(block.phi(phi))

    def log_prior(self, phi: Phi) -> FloatArray:
        return np.asarray(np.sum([block.part.log_prior(block.phi(phi)) for block in self._blocks], axis=0))

    def log_evidence(self, y: FloatArray) -> float:
        return sum(block.part.log_evidence(own) for block, _, own in self._with_values(y))  # type: ignore[attr-defined]

    def conjugate(self, y: FloatArray) -> Conjugate | None:
        blocks, known, values = zip(*self._split(y), strict=True)
        each = [conjugate(block.part, own) for block, own in zip(blocks, values, strict=True)]
        if any(own is None for own in each):
            return None
        parts = [own for own in each if own is not None]
        compiled = [own.compiled for own in parts if own.compiled is not None]
        product = _Product(self, tuple(own.without_compiled() for own in parts))
        return Conjugate(
            product.statistics,
            product.combine,
            product.draw,
            product.log_likelihood,
            self.log_evidence,
            _compiled_product(compiled, known, len(y)) if len(compiled) == len(parts) else None,
        )

    @property
    def _n_columns(self) -> int:
        return int(self._blocks[-1].columns.stop)

    @cached_property
    def _blocks(self) -> list["_Block"]:
        blocks: list[_Block] = []
        column = array = 0
        for name, part in zip(self.names, self.parts, strict=True):
            rng = np.random.default_rng(0)
            like = part.sample_prior(rng, 1)
            step = part.sample_observations(rng, np.zeros(1, np.int64), like)
            columns, arrays = slice(column, column + step.size), slice(array, array + len(fields(like)))
            blocks.append(_Block(name, part, columns, arrays, like, step))
            column, array = columns.stop, arrays.stop
        return blocks

    def _renew(self, rng: np.random.Generator, y: FloatArray, states: IntArray, n_states: int, phi: Phi | None) -> Phi:
        drawn = []
        for block, known, own in self._split(y):
            if len(own) == 0:
                drawn.append(block.part.sample_prior(rng, n_states))
            elif phi is not None and provides(block.part, "update"):
                drawn.append(block.part.update(rng, own, states[known], block.phi(phi)))
            else:
                drawn.append(block.part.resample(rng, own, states[known], n_states))
        return self._join(drawn)

    def _split(self, y: FloatArray) -> Iterator[tuple["_Block", Steps, Array]]:
        """Every part, the steps at which it has a value, and its values there in the form it expects."""
        for block in self._blocks:
            own = y[:, block.columns]
            any_value = _known(own)
            known = slice(None) if any_value.all() else any_value
            own = own[known]
            yield block, known, own.reshape(len(own), *block.step.shape[1:]).astype(block.step.dtype)

    def _with_values(self, y: FloatArray) -> Iterator[tuple["_Block", Steps, Array]]:
        return (item for item in self._split(y) if len(item[2]))

    def _join(self, parts: Iterable[Phi], kind: str = "IndependentPhi") -> Phi:
        """Parameters or statistics of all parts as one tuple; field names are prefixed with the name of the part."""
        each = list(zip(self.names, parts, strict=True))
        named = {f"{name}_{field}": array for name, part in each for field, array in fields(part).items()}
        angles = tuple(f"{name}_{field}" for name, part in each for field in angle_fields(part))
        return _phi(tuple(named), named.values(), kind, angles)


class _Block(NamedTuple):
    """A part, the place of its columns and of its arrays in φ, and an example of its parameters and values."""

    name: str
    part: Emission
    columns: slice
    arrays: slice
    like: Phi
    step: Array

    def __str__(self) -> str:
        first, last = self.columns.start, self.columns.stop - 1
        return f"{self.name} (column {first})" if first == last else f"{self.name} (columns {first} to {last})"

    def phi(self, phi: Phi) -> Phi:
        """The parameters of this part."""
        return rebuild(self.like, phi[self.arrays])


@dataclass(frozen=True, eq=False)
class _Product:
    """Sufficient statistics of an `Independent` emission: those of its parts."""

    emission: Independent
    parts: tuple[Conjugate, ...]

    def statistics(self, y: FloatArray, states: IntArray, n_states: int) -> Statistics:
        split = zip(self.parts, self.emission._split(y), strict=True)
        return self._join(part.statistics(own, states[known], n_states) for part, (_, known, own) in split)

    def combine(self, pieces: Sequence[Statistics]) -> Statistics:
        by_part = zip(*map(self._split, pieces), strict=True)
        return self._join(part.combine(own) for part, own in zip(self.parts, by_part, strict=True))

    def draw(self, rng: np.random.Generator, statistics: Statistics) -> Phi:
        each = zip(self.parts, self._split(statistics), strict=True)
        return self.emission._join(part.draw(rng, own) for part, own in each)

    def log_likelihood(self, statistics: Statistics, phi: Phi) -> float:
        each = zip(self.parts, self.emission._blocks, self._split(statistics), strict=True)
        return sum(part.log_likelihood(own, block.phi(phi)) for part, block, own in each)

    def _join(self, each: Iterable[Statistics]) -> Statistics:
        return self.emission._join(each, "IndependentStatistics")

    def _split(self, statistics: Statistics) -> list[Statistics]:
        """The statistics of each part."""
        left = iter(statistics)
        return [rebuild(like, islice(left, len(fields(like)))) for like in self._empty]

    @cached_property
    def _empty(self) -> list[Statistics]:
        """Statistics of no data, which show the fields of each part."""
        blocks = zip(self.parts, self.emission._blocks, strict=True)
        return [part.statistics(block.step[:0], np.zeros(0, np.int64), 1) for part, block in blocks]


def _compiled_product(each: list[CompiledFamily], known: Sequence[Steps], n_steps: int) -> CompiledFamily:
    """Values side by side, priors stacked, statistics one after the other; one row of the table per part."""
    values, table = [], []
    priors = [np.atleast_2d(own.prior) for own in each]
    prior = np.zeros((len(each), *np.max([own.shape for own in priors], axis=0)))
    column, statistic = 0, 1
    for p, own in enumerate(each):
        prior[p, : priors[p].shape[0], : priors[p].shape[1]] = priors[p]
        block = own.values if own.values.ndim == 2 else own.values[:, None]
        values.append(np.full((n_steps, block.shape[1]), np.nan))
        values[-1][known[p]] = block
        columns, statistics = slice(column, column + block.shape[1]), slice(statistic, statistic + own.size)
        is_row = own.prior.ndim == 2
        table.append([own.family, is_row, columns.start, columns.stop, statistics.start, statistics.stop])
        column, statistic = columns.stop, statistics.stop
    return CompiledFamily(np.array(table), prior, np.hstack(values)[:, :, None], statistic)


def _known(y: FloatArray) -> BoolArray:
    """Rows with at least one value."""
    return np.asarray(~np.isnan(y).all(axis=1))


def _names(parts: tuple[Emission, ...]) -> list[str]:
    """Class names in snake case, numbered if a class occurs more than once."""
    names = [re.sub("(?<=[a-z])(?=[A-Z])", "_", type(part).__name__).lower() for part in parts]
    times = Counter(names)
    return [name if times[name] == 1 else f"{name}_{names[:i].count(name)}" for i, name in enumerate(names)]


def _phi(
    names: tuple[str, ...], arrays: Iterable[Array], kind: str = "IndependentPhi", angles: tuple[str, ...] = ()
) -> Phi:
    return _kind(names, kind, angles)._make(arrays)


@cache
def _kind(names: tuple[str, ...], kind: str, angles: tuple[str, ...]) -> Any:
    """A NamedTuple class that is made at run time and can still be pickled."""
    fields: Any = namedtuple(kind, names)  # type: ignore[misc]
    reduce = {"__reduce__": lambda self: (_phi, (names, tuple(self), kind, angles))}
    return type(kind, (fields,), {"__slots__": (), "angles": angles} | reduce)
