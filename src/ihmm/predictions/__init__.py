"""Predictions from draws: likelihoods, state probabilities, forecasts and imputation."""
