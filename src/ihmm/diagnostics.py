"""Convergence diagnostics of quantities that do not depend on state labels, with a verdict in plain English."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ihmm._typing import Array, FloatArray

if TYPE_CHECKING:
    import pandas

MAX_RHAT = 1.01
MIN_ESS = 100  # effective sample size recommended per chain
MIN_DRAWS = 50  # per chain, below which nothing is diagnosed
MAX_DRIFT = 1.5  # from the first quarter of the draws to the last, in standard deviations within a quarter
MAX_DISTANCE = 0.1  # mean total variation distance between the state probabilities of one chain and of all chains
QUANTITIES = ("n_states", "log_joint", "gamma", "concentration", "stickiness", "sigma")


class Finding(NamedTuple):
    """The result of one diagnostic."""

    fine: bool
    text: str


@dataclass(frozen=True, eq=False)
class Check:
    """Results of the convergence diagnostics. True if no problems were found.

    Attributes
    ----------
    findings
        (fine, text) of each diagnostic, the most important first.
    stable
        Whether the chains are stationary and assign the same states to the steps. The segmentation and the large
        states are then reliable, even if the exact number of states is not.
    rhat, ess_bulk, ess_tail
        By quantity. Quantities that are constant are left out and listed in `findings`.
    """

    findings: tuple[Finding, ...]
    stable: bool
    rhat: dict[str, float]
    ess_bulk: dict[str, float]
    ess_tail: dict[str, float]

    def __bool__(self) -> bool:
        return all(finding.fine for finding in self.findings)

    @property
    def converged(self) -> bool:
        """Whether further draws are unlikely to change the answer."""
        return bool(self)

    def table(self) -> "pandas.DataFrame":
        """R-hat and effective sample sizes, one row per quantity."""
        import pandas

        return pandas.DataFrame({"rhat": self.rhat, "ess_bulk": self.ess_bulk, "ess_tail": self.ess_tail})

    @property
    def verdict(self) -> str:
        """One sentence."""
        if self:
            return "No problems found."
        if self.stable:
            return "The segmentation is reliable; details such as the exact number of states are not yet."
        return "These draws are not reliable yet."

    def __repr__(self) -> str:
        lines = [f"  {'✓' if finding.fine else '✗'} {finding.text}" for finding in self.findings]
        return "\n".join([self.verdict, *lines])


def check(traces: Mapping[str, Array], states: Array, label_shares: FloatArray) -> Check:
    """Run all diagnostics.

    Parameters
    ----------
    traces
        Name → (chains, draws).
    states
        (chains, draws, T): state sequences.
    label_shares
        (chains, T, labels): share of a chain's draws in which a step has a label.
    """
    stats = _array_stats()
    scalars = {name: np.asarray(traces[name], float) for name in QUANTITIES if name in traces} | {
        "changes": np.array([[np.count_nonzero(path[1:] != path[:-1]) for path in chain] for chain in states], float),
        "largest share": np.array([[np.bincount(path).max() for path in chain] for chain in states]) / states.shape[2],
    }
    varying = {name: x for name, x in scalars.items() if np.isfinite(x).all() and np.ptp(x) > 0}
    n_chains, n_draws = next(iter(scalars.values())).shape
    if n_draws < MIN_DRAWS:
        text = f"{n_draws} draws per chain are too few to diagnose; use at least {MIN_DRAWS}, preferably 1000."
        return Check((Finding(False, text),), False, {}, {}, {})

    rhat = {name: _rhat(stats, x) for name, x in varying.items()}
    bulk = {name: float(stats.ess(x, chain_axis=0, draw_axis=1)) for name, x in varying.items()}
    tail = {name: _ess_tail(stats, x) for name, x in varying.items()}
    mixing = _check_rhat(rhat, varying, n_chains)
    labels = _check_labels(label_shares, mixing.fine)
    drift = _check_drift(varying)
    findings = [mixing, labels, drift, _check_ess(bulk, tail, n_chains)]
    constant = [name for name in scalars if name not in varying]
    if constant:
        values = ", ".join(f"{name} ({scalars[name].flat[0]:g})" for name in constant)
        findings.append(Finding(True, f"Constant in all chains, so R-hat is undefined: {values}."))
    return Check(tuple(findings), labels.fine and drift.fine, rhat, bulk, tail)


def _array_stats() -> Any:
    try:
        return import_module("arviz_stats.base").array_stats
    except ImportError as error:
        raise ImportError("convergence diagnostics need ArviZ: pip install 'ihmm[arviz]'") from error


def _rhat(stats: Any, x: FloatArray) -> float:
    """Rank-normalised split R-hat; infinite if every half chain is constant, at different values."""
    half = x.shape[1] // 2
    if np.all(np.ptp(x[:, :half], axis=1) == 0) and np.all(np.ptp(x[:, -half:], axis=1) == 0):
        return float("inf")
    value = float(stats.rhat(x, chain_axis=0, draw_axis=1))
    return value if np.isfinite(value) else 1.0  # ranks have no variance: almost constant, and equal in all chains


def _ess_tail(stats: Any, x: FloatArray) -> float:
    value = float(stats.ess(x, chain_axis=0, draw_axis=1, method="tail", prob=(0.05, 0.95)))
    return value if np.isfinite(value) else float(x.size)


def _check_rhat(rhat: dict[str, float], varying: dict[str, FloatArray], n_chains: int) -> Finding:
    compared = "The chains" if n_chains > 1 else "The halves of the chain"
    high = {name: value for name, value in rhat.items() if value > MAX_RHAT}
    if not high:
        return Finding(True, f"{compared} agree: R-hat is at most {max(rhat.values(), default=1.0):.3f}.")
    worst = ", ".join(f"{name} {value:.2f}" for name, value in sorted(high.items(), key=lambda item: -item[1]))
    text = f"{compared} do not agree: R-hat is above {MAX_RHAT} for {worst}."
    if n_chains > 1 and "n_states" in varying:
        medians = np.median(varying["n_states"], axis=1)
        if np.ptp(medians) >= 1:
            text += f" Their median numbers of states are {', '.join(f'{m:g}' for m in medians)}."
    return Finding(False, f'{text} Increase tune, start with init="auto", or take more draws.')


def _check_labels(label_shares: FloatArray, mixed: bool) -> Finding:
    """Whether all chains assign the same states to the steps."""
    if len(label_shares) == 1:
        return Finding(False, "There is only one chain, so agreement between chains cannot be checked; use chains=4.")
    distance = 0.5 * np.abs(label_shares - label_shares.mean(axis=0)).sum(axis=2).mean(axis=1)
    worst = int(distance.argmax())
    if distance[worst] <= MAX_DISTANCE:
        text = f"The chains assign the same states to the steps (mean distance at most {distance[worst]:.1%})"
        return Finding(True, text + ("." if mixed else "; they differ in small or redundant states only."))
    text = f"Chain {worst} assigns other states to the steps than the rest (mean distance {distance[worst]:.0%})."
    return Finding(False, f"{text} Increase tune, or inspect posterior.traces to see which chain is stuck.")


def _check_drift(varying: dict[str, FloatArray]) -> Finding:
    """Whether the last quarter of the draws differs from the first one."""
    drifting = []
    for name in ("log_joint", "n_states"):
        if name in varying:
            first, *_, last = np.array_split(varying[name], 4, axis=1)
            change = float(np.mean(last) - np.mean(first))
            spread = np.sqrt(0.5 * (first.var(axis=1) + last.var(axis=1)).mean())
            if abs(change) > MAX_DRIFT * spread:
                direction = "rising" if change > 0 else "falling"
                drifting.append(f"{name} is still {direction} ({change:+.3g} from the first quarter to the last)")
    if drifting:
        return Finding(False, f"The chains are not stationary: {', '.join(drifting)}. Increase tune.")
    return Finding(True, "The chains are stationary: n_states and log_joint show no trend.")


def _check_ess(bulk: dict[str, float], tail: dict[str, float], n_chains: int) -> Finding:
    recommended = MIN_ESS * n_chains
    smallest = {name: min(bulk[name], tail[name]) for name in bulk}
    if not smallest:
        return Finding(True, "All quantities are constant, so there is no effective sample size to check.")
    name = min(smallest, key=lambda name: smallest[name])
    size = smallest[name]
    if size >= recommended:
        return Finding(True, f"Effective sample sizes are sufficient: at least {size:.0f} ({name}).")
    factor = max(round(recommended / max(size, 1.0)), 2)
    return Finding(
        False,
        f"Effective sample size of {name} is {size:.0f}; at least {recommended} is recommended. "
        f"Take about {factor} times as many draws.",
    )
