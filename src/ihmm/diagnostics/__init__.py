"""Can the answer be trusted? Convergence, agreement of the chains, and fit of the model."""
