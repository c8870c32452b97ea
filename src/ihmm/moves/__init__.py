"""Moves on the trajectory and β, with π integrated out, between Step 1 and the rest of the sweep."""

from ihmm.moves._base import Move, MoveInfo
from ihmm.moves.greedy import GreedySplitMerge
from ihmm.moves.mixture import GroupComponents
from ihmm.moves.pairs import PairGibbs
from ihmm.moves.split_merge import SplitMerge
from ihmm.moves.twins import MergeTwins

__all__ = ["GreedySplitMerge", "GroupComponents", "MergeTwins", "Move", "MoveInfo", "PairGibbs", "SplitMerge"]
