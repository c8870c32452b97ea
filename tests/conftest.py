"""Setup shared by all tests."""

import pickle
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import ihmm.choice


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # With several workers the longest tests come first, so that none is left with a long one at the end.
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: (not item.get_closest_marker("slow"), not item.get_closest_marker("law")))


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    """Figures made through pyplot, which is used if any test has imported it, stay open otherwise."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(autouse=True, scope="session")
def _one_pilot_fit_of_each_recording() -> Iterator[None]:
    """A fit with ``emission="auto"`` begins with a pilot fit, which takes longer than the short chains of these tests.

    It depends on the data alone, see `tests/test_pilot.py`, and many tests fit the same data: results are kept.
    """
    pilot, known = ihmm.choice.pilot, {}

    def kept(values, offsets):
        key = values.dtype.str, values.shape, values.tobytes(), np.asarray(offsets).tobytes()
        if key not in known:
            known[key] = pickle.dumps(pilot(values, offsets))
        return pickle.loads(known[key])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ihmm.choice, "pilot", kept)
        yield
