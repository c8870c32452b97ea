"""An estimator of scikit-learn that imports it when it is needed: it takes a second and 100 MB, and few fits need it.

Until then the class has what it defines itself, which is enough to fit and to predict. Whatever else it is asked for,
such as `get_params`, `set_output` or its look in a notebook, makes it inherit from the classes of scikit-learn. If
scikit-learn has been imported before, that happens at once.
"""

import sys
from threading import RLock
from typing import Any

import numpy as np

from ihmm._typing import Array

LOCK = RLock()


class EstimatorOnDemand:
    """Stands for the base classes of scikit-learn until they are needed."""

    def __init_subclass__(cls) -> None:
        is_derived = EstimatorOnDemand not in cls.__bases__  # by a user, from one of our estimators
        if "sklearn" in sys.modules or is_derived:
            inherit(cls)
        if is_derived:
            super(cls, cls).__init_subclass__()

    def __getattr__(self, name: str) -> Any:
        inherit(type(self))
        return getattr(self, name)

    def __repr__(self) -> str:
        inherit(type(self))
        return repr(self)

    def __dir__(self) -> list[str]:
        inherit(type(self))
        return dir(self)

    def __sklearn_tags__(self) -> Any:
        inherit(type(self))
        return type(self).__sklearn_tags__(self)


def inherit(estimator: type) -> None:
    """Make an estimator inherit from the classes of scikit-learn."""
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, DensityMixin, TransformerMixin

    with LOCK:
        for each in estimator.__mro__:
            if EstimatorOnDemand in each.__bases__:
                each.__bases__ = (ClassNamePrefixFeaturesOutMixin, TransformerMixin, DensityMixin, BaseEstimator)
                super(each, each).__init_subclass__()  # type: ignore[arg-type]


def not_fitted(estimator: Any) -> Exception:
    """The error of scikit-learn for methods that need a fit."""
    from sklearn.exceptions import NotFittedError

    name = type(estimator).__name__
    error: Exception = NotFittedError(f"This {name} instance is not fitted yet. Call 'fit' before using this method.")
    return error


def checked(estimator: Any, X: Any, values: Any, *, reset: bool) -> Array:
    """The `values` of X, (T, D), NaN where missing, after the checks of scikit-learn.

    Numbers and names of columns are stored with `reset`, or else compared with those of the fit. An array that passes
    is not shown to scikit-learn; it has the words for one that does not.
    """
    known = vars(estimator)
    if _is_plain(values) and not hasattr(X, "columns"):
        if reset:
            known.pop("feature_names_in_", None)
            estimator.n_features_in_ = values.shape[1]
        if "feature_names_in_" not in known and known["n_features_in_"] == values.shape[1]:
            return np.asarray(values)
    from sklearn.utils import check_array
    from sklearn.utils.validation import validate_data

    inherit(type(estimator))
    array: Array = check_array(values, ensure_all_finite="allow-nan", estimator=estimator, input_name="X")
    validate_data(estimator, X if hasattr(X, "columns") else array, reset=reset, skip_check_array=True)
    return array


def _is_plain(values: Any) -> bool:
    """Whether an array is what every check of scikit-learn expects."""
    is_table = isinstance(values, np.ndarray) and values.ndim == 2 and values.dtype.kind in "iuf" and values.size > 0
    return is_table and not np.isinf(values).any()


def as_random_state(seed: Any) -> np.random.RandomState:
    """The generator that scikit-learn makes of a `random_state`: a seed, a generator, or None for NumPy's own."""
    if seed is None:
        return np.random.mtrand._rand
    if isinstance(seed, np.random.RandomState):
        return seed
    if isinstance(seed, (int, np.integer)):
        return np.random.RandomState(seed)
    raise ValueError(f"random_state must be a whole number, a numpy.random.RandomState or None, got {seed!r}")
