"""Setup shared by all tests."""

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # With several workers the longest tests come first, so that none is left with a long one at the end.
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: (not item.get_closest_marker("slow"), not item.get_closest_marker("law")))
