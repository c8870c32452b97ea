"""Geometry of the graph of transitions: states on a circle, and curved arrows between them."""

from typing import NamedTuple

import numpy as np

from ihmm._typing import FloatArray

BEND = 0.22  # distance of a curve's control point from the middle of its ends, as a share of the distance of the states
SLANT = 0.4  # radians between the straight line and where an arrow meets a circle
GAP = 0.02  # between an arrow and a circle
LABEL = 0.2  # place of a label between the source of its arrow, 0, and the target, 1: curves cross in the middle
BESIDE = 0.09  # distance of a label from its arrow
LEAST_LABELLED = 0.1  # share of the exits from a state that has a label if there are more than three states


class Arrow(NamedTuple):
    """A quadratic Bézier curve, and the centre of its label."""

    begin: FloatArray
    bend: FloatArray
    end: FloatArray
    label: FloatArray


def places(n: int) -> FloatArray:
    """(n, 2): centres of the circles that are the states; a single one is in the middle."""
    angle = np.pi * (1 - 2 * np.arange(n) / n)
    return np.column_stack([np.cos(angle), np.sin(angle)]) if n > 1 else np.zeros((1, 2))


def radii(shares: FloatArray) -> FloatArray:
    return np.asarray(0.1 + 0.2 * np.sqrt(shares))


def arrow(a: FloatArray, b: FloatArray, from_a: float, from_b: float) -> Arrow:
    """From a circle around a to a circle around b, with these radii, to the right of the straight line."""
    length = np.hypot(*(b - a))
    unit = (b - a) / length
    normal = np.array([unit[1], -unit[0]])
    begin = a + (from_a + GAP) * (np.cos(SLANT) * unit + np.sin(SLANT) * normal)
    end = b + (from_b + GAP) * (-np.cos(SLANT) * unit + np.sin(SLANT) * normal)
    bend = 0.5 * (begin + end) + BEND * length * normal
    return Arrow(begin, bend, end, curve(begin, bend, end, np.array([LABEL]))[0] + BESIDE * normal)


def curve(begin: FloatArray, bend: FloatArray, end: FloatArray, along: FloatArray) -> FloatArray:
    """(n, 2): points of a curve, `along` from 0, its begin, to 1, its end."""
    t = along[:, None]
    return np.asarray((1 - t) ** 2 * begin + 2 * t * (1 - t) * bend + t**2 * end)
