"""Suspicious values and priors of another scale are named."""

import numpy as np
import pytest

import ihmm
from ihmm.running.data_checks import concerns

RECORDING = ihmm.datasets.ion_channel(length=500).y
NORMAL = ihmm.Model(ihmm.Normal())


def said(values, model=NORMAL):
    return concerns(model, model.observe(values))


def with_values(value, *steps):
    values = RECORDING.copy()
    values[list(steps)] = value
    return values


@pytest.mark.parametrize("marker", [-9999, 99999, -999.9, 1e35, 32767])
def test_a_value_that_marks_missing_ones_is_named(marker):
    (sentence,) = said(with_values(marker, 3, 40))
    assert sentence.startswith(f"2 values are {marker:.6g}".replace("-", "−") + ", far from all others, -0.944 to 6.24")
    assert f"make them NaN (--na {marker:.6g})" in sentence


@pytest.mark.parametrize("limit", [5.0, 430.0])
def test_a_saturated_sensor_is_named(limit):
    values = np.minimum(RECORDING, 5) if limit == 5 else np.clip(np.round(100 * RECORDING), -2000, 430)
    (sentence,) = said(values)
    assert f"values equal the largest one, {limit:g}" in sentence


@pytest.mark.parametrize(
    "values",
    [
        RECORDING,
        np.round(RECORDING, 1),
        100 * RECORDING,
        np.concatenate([with_values(99, 3), [150.0, -80.0]]),
        np.maximum(RECORDING, 0.0),
        np.repeat([1.0, 2.0], 50),
        np.random.default_rng(0).standard_t(2, 500),
    ],
    ids=["plain", "rounded", "wide", "outlier", "zeros", "levels", "tails"],
)
def test_ordinary_data_raise_no_concern(values):
    assert said(values) == []


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (1e-9 * RECORDING, "it expects values to vary by about 0.74 within a state, but all together vary by 1.4e-09"),
        (1e5 * RECORDING, r"it expects values from -8.5 to 7.9, but they are about 4.7e\+05"),
        (1e4 + RECORDING, r"it expects values from -8.5 to 7.9, but they are about 1e\+04 ± 1.4"),
    ],
)
def test_a_prior_of_another_scale_is_reported_before_sampling(values, words):
    with pytest.warns(UserWarning, match=f"the prior of Normal does not fit the scale of the data: {words}"):
        ihmm.sample(NORMAL, values, draws=1, tune=0, chains=1, progress=False)


def test_the_column_is_named():
    model = ihmm.Model(ihmm.MultivariateNormal(2))
    (sentence,) = said(np.column_stack([RECORDING, 1e-6 * RECORDING]), model)
    assert "of the data of column 1" in sentence


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("emission", ["normal", "student-t", "levels"])
def test_priors_chosen_from_the_data_fit(emission, scale):
    values = scale * RECORDING
    assert said(values, ihmm.model.model_for(values[:, None], emission)) == []
