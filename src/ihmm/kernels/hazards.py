"""Hazards of a duration law from the ratios of its probabilities."""

from ihmm.kernels._jit import jit


@jit
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
