"""Setup shared by all tests."""

import sys
from collections.abc import Iterator

import pytest


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
