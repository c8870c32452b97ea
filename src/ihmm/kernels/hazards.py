"""Hazards of a duration law."""

from ihmm.kernels._jit import in_place


@in_place
def fill_hazards(ratio, last, hazard):
    """h(g) = p(g)/S(g), S(g) = p(g) + p(g+1) + …, for each row, from ratio(g) = p(g+1)/p(g) and the last S/p.

    S(g)/p(g) = 1 + ratio(g) S(g+1)/p(g+1), from the last g backwards: all terms are positive.
    """
    for k in range(hazard.shape[0]):
        inverse = last[k]
        for g in range(hazard.shape[1] - 1, -1, -1):
            if g < hazard.shape[1] - 1:
                inverse = 1.0 + ratio[k, g] * inverse
            hazard[k, g] = 1.0 / inverse


@in_place
def fill_residual_hazards(hazard, last, residual):
    """1/m(a) for each row, m(a) = E[D − a + 1 | D ≥ a] = 1 + (1 − h(a)) m(a+1), from the last m backwards."""
    for k in range(hazard.shape[0]):
        mean = last[k]
        for a in range(hazard.shape[1] - 1, -1, -1):
            if a < hazard.shape[1] - 1:
                mean = 1.0 + (1.0 - hazard[k, a]) * mean
            residual[k, a] = 1.0 / mean
