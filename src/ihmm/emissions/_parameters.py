"""Parameters of K states as one object: an array, or a NamedTuple of arrays, possibly nested, with leading axis K."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ihmm._typing import Array, Phi


def fields(phi: Phi) -> dict[str, Array]:
    """The arrays of φ by name, in order; a nested φ contributes its own arrays in its place."""
    if isinstance(phi, np.ndarray):
        return {"phi": phi}
    names = getattr(phi, "_fields", None) or tuple(f"phi_{i}" for i in range(len(phi)))
    named: dict[str, Array] = {}
    for name, part in zip(names, phi, strict=True):
        named |= {name: part} if isinstance(part, np.ndarray) else fields(part)
    return named


def rebuild(like: Phi, arrays: Iterable[Array]) -> Phi:
    """φ with the structure of `like`, made of other arrays."""
    left = iter(arrays)
    rebuilt = _rebuild(like, left)
    if next(left, None) is not None:
        raise ValueError(f"more arrays than {type(like).__name__} has fields")
    return rebuilt


def _rebuild(like: Phi, arrays: Iterator[Array]) -> Phi:
    if isinstance(like, np.ndarray):
        return next(arrays)
    parts = [_rebuild(part, arrays) for part in like]
    return like._make(parts) if hasattr(like, "_make") else tuple(parts)


def take(phi: Phi, index: Any) -> Phi:
    """The parameters of some of the states; `index` is anything that indexes an array."""
    if isinstance(phi, np.ndarray):
        return phi[index]
    parts = [take(part, index) for part in phi]
    return phi._make(parts) if hasattr(phi, "_make") else tuple(parts)


def join(*parts: Phi) -> Phi:
    """The parameters of several sets of states, concatenated; narrower arrays are padded with zeros."""
    return _apply(_concatenate, *parts)


def _apply(function: Callable[..., Array], *phis: Phi) -> Phi:
    """The function of the arrays of φ, or of corresponding arrays of several, in the structure of the first."""
    like = phis[0]
    if isinstance(like, np.ndarray):
        return function(*phis)
    parts = [_apply(function, *each) for each in zip(*phis, strict=True)]
    return like._make(parts) if hasattr(like, "_make") else tuple(parts)


def _concatenate(*arrays: Array) -> Array:
    if all(array.shape[1:] == arrays[0].shape[1:] for array in arrays):
        return np.concatenate(arrays)
    shape = np.max([array.shape[1:] for array in arrays], axis=0)
    out = np.zeros((sum(map(len, arrays)), *shape), arrays[0].dtype)
    begin = 0
    for array in arrays:
        out[(slice(begin, begin + len(array)), *map(slice, array.shape[1:]))] = array
        begin += len(array)
    return out


def size(phi: Phi) -> int:
    """K, the number of states."""
    while not isinstance(phi, np.ndarray):
        phi = phi[0]
    return len(phi)
