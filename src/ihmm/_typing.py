"""Names for the arrays that travel through the library."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Array", "ArrayLike", "BoolArray", "FloatArray", "IntArray", "Phi", "Statistics"]

Array = NDArray[Any]
FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.integer[Any]]
BoolArray = NDArray[np.bool_]

# Emission parameters of K states: an array, or a NamedTuple of arrays, each with leading axis K.
Phi = Any

# All that the parameters of K states depend on in the data, in the same form.
Statistics = Any
