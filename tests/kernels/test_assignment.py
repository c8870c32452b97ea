"""The assignment is as good as that of SciPy, and the same where it is unique."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from ihmm.labels import one_to_one


@pytest.mark.bounds
@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (3, 3), (5, 2), (4, 9), (30, 30), (40, 25)])
@pytest.mark.parametrize("largest", [1, 5, 10**6])
def test_the_total_is_the_largest_possible(shape, largest):
    rng = np.random.default_rng([*shape, largest])
    for _ in range(30):
        counts = rng.integers(0, largest + 1, shape)
        rows, columns = one_to_one(counts)
        assert len(set(rows.tolist())) == len(set(columns.tolist())) == min(shape)
        expected = linear_sum_assignment(counts, maximize=True)
        assert counts[rows, columns].sum() == counts[expected].sum()
        if largest == 10**6:
            assert sorted(zip(rows, columns, strict=True)) == list(zip(*expected, strict=True))
