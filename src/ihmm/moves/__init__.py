"""Moves on the path and β, with π and φ integrated out, between Step 1 and the rest of a sweep."""

from ihmm.moves._base import Move
from ihmm.moves.greedy import GreedySplitMerge
from ihmm.moves.mixture import GroupComponents

__all__ = ["GreedySplitMerge", "GroupComponents", "Move"]
