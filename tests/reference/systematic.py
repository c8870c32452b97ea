"""Twin of `ihmm.kernels.systematic`: merged particles and systematic thinning, written out.

As in `reference.csmc` every random choice goes through `choose(probabilities)`. What a grid hits changes only where one
of its points crosses a border of the line, so its offset is a choice between the intervals on which all offsets hit the
same.
"""

from itertools import pairwise

import numpy as np

from reference.csmc import tail


def one_pass(choose, chain, reference, n_particles):
    """The new path, given the old one."""
    n_steps = len(chain.density)
    masses = []  # by step: {state: mass}
    for t in range(n_steps):
        parents = [(chain.initial, 1.0)] if t == 0 else [(chain.rows[k], m) for k, m in masses[-1].items()]
        masses.append(thin(choose, chain, t, parents, reference[t], n_particles))
    path = [pick(choose, masses[-1])]
    for before in masses[-2::-1]:
        path.append(pick(choose, {k: m * chain.rows[k][path[-1]] for k, m in before.items()}))
    return tuple(reversed(path))


def thin(choose, chain, t, parents, reference, n_particles):
    """The states kept at step t, and their masses."""
    rest = tail(chain)
    mixture = [sum(mass * row[k] for row, mass in parents) for k in range(len(chain.initial))]
    weights = {k: mixture[k] * chain.density[t, k] for k in chain.explicit}
    tail_weight = sum(mixture[k] for k in rest) * chain.marginal[t]
    spacing = (sum(weights.values()) + tail_weight) / n_particles

    kept = {k: weight for k, weight in weights.items() if weight >= spacing}
    line = [k for k in chain.explicit if k not in kept]
    ends = np.cumsum([0.0, *(weights[k] for k in line), tail_weight])
    intervals = dict(zip([*line, "tail"], pairwise(ends), strict=True))
    own = "tail" if reference in rest else reference
    hits = hit_by_grid(choose, intervals, spacing, None if reference in kept else intervals[own])

    for k in line:
        if hits[k]:
            assert hits[k] == 1, "a state below the spacing is hit at most once"
            kept[k] = spacing
    draws = [reference] if own == "tail" else []
    while len(draws) < hits["tail"]:
        draws.append(rest[choose([mixture[k] for k in rest])])
    for k in draws:
        kept[k] = kept.get(k, 0.0) + spacing * chain.density[t, k] / chain.marginal[t]
    return kept


def hit_by_grid(choose, intervals, spacing, through):
    """How often a grid with a random offset hits each interval; it runs through one of them if that is given."""
    low, high = through or (0.0, spacing)
    borders = np.array([border for interval in intervals.values() for border in interval])
    shifts = spacing * np.arange(-2 - borders.max() // spacing, 3 + borders.max() // spacing)
    crossings = np.add.outer(borders, shifts).ravel()
    cells = np.unique([low, *crossings[(crossings > low) & (crossings < high)], high])
    i = choose(np.diff(cells))
    points = (cells[i] + cells[i + 1]) / 2 + shifts
    return {name: int(np.sum((points >= begin) & (points < end))) for name, (begin, end) in intervals.items()}


def pick(choose, masses):
    return list(masses)[choose(list(masses.values()))]
