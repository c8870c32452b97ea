"""Have the chains converged, and do they agree? Answered on quantities that do not depend on labels, in plain words."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ihmm._typing import Array, FloatArray

if TYPE_CHECKING:
    import pandas

RHAT = 1.01  # above: chains have not mixed
ESS = 100  # effective draws wanted of each chain
FEWEST = 50  # draws a chain needs before anything can be said
DRIFT = 1.5  # standard deviations of a quarter between the first and the last quarter of the chains
APART = 0.1  # average distance between a chain's state probabilities and those of all chains
QUANTITIES = ("n_states", "log_joint", "gamma", "concentration", "stickiness", "sigma")


class Finding(NamedTuple):
    fine: bool
    text: str


@dataclass(frozen=True, eq=False)
class Check:
    """What the diagnostics say. It is true if nothing speaks against using the draws.

    Attributes
    ----------
    findings
        (fine, text) in order of weight.
    stable
        Whether the chains have settled and put the steps into the same states: then the segmentation and the large
        states can be relied on, even if the exact number of states cannot.
    rhat, ess_bulk, ess_tail
        By quantity; those that never vary are left out, and `findings` says so.
    """

    findings: tuple[Finding, ...]
    stable: bool
    rhat: dict[str, float]
    ess_bulk: dict[str, float]
    ess_tail: dict[str, float]

    def __bool__(self) -> bool:
        return all(finding.fine for finding in self.findings)

    def table(self) -> "pandas.DataFrame":
        import pandas

        return pandas.DataFrame({"rhat": self.rhat, "ess_bulk": self.ess_bulk, "ess_tail": self.ess_tail})

    @property
    def verdict(self) -> str:
        """One sentence."""
        if self:
            return "Nothing speaks against using these draws."
        if self.stable:
            return "Which states there are and where they change can be relied on; the finer points cannot yet."
        return "These draws should not be relied on yet."

    def __repr__(self) -> str:
        lines = [f"  {'✓' if finding.fine else '✗'} {finding.text}" for finding in self.findings]
        return "\n".join([self.verdict, *lines])


def check(traces: Mapping[str, Array], states: Array, by_chain: FloatArray) -> Check:
    """Judge chains by their traces, (chains, draws) each, their paths, (chains, draws, T), and for each chain the share
    of its draws in which a step has a label, (chains, T, labels)."""
    stats = _array_stats()
    scalars = {name: np.asarray(traces[name], float) for name in QUANTITIES if name in traces} | {
        "changes": np.array([[np.count_nonzero(path[1:] != path[:-1]) for path in chain] for chain in states], float),
        "largest share": np.array([[np.bincount(path).max() for path in chain] for chain in states]) / states.shape[2],
    }
    moving = {name: x for name, x in scalars.items() if np.isfinite(x).all() and np.ptp(x) > 0}
    n_chains, n_draws = next(iter(scalars.values())).shape
    if n_draws < FEWEST:
        text = f"{n_draws} draws a chain are too few to judge anything; take at least {FEWEST}, better 1000."
        return Check((Finding(False, text),), False, {}, {}, {})

    rhat = {name: _rhat(stats, x) for name, x in moving.items()}
    bulk = {name: float(stats.ess(x, chain_axis=0, draw_axis=1)) for name, x in moving.items()}
    tail = {name: _ess_tail(stats, x) for name, x in moving.items()}
    findings = [_mixed(rhat, moving, n_chains)]
    if n_chains > 1:
        findings.append(_same_states(by_chain, findings[0].fine))
    else:
        text = "There is one chain, so nothing shows whether another would find the same; use chains=4."
        findings.append(Finding(False, text))
    findings.append(_settled(moving))
    stable = all(finding.fine for finding in findings[1:])
    findings.append(_enough(bulk, tail, n_chains))
    still = [name for name in scalars if name not in moving]
    if still:
        values = ", ".join(f"{name} ({scalars[name].flat[0]:g})" for name in still)
        findings.append(Finding(True, f"The same in every draw of every chain, so without an R-hat: {values}."))
    return Check(tuple(findings), stable, rhat, bulk, tail)


def _array_stats() -> Any:
    try:
        return import_module("arviz_stats.base").array_stats
    except ImportError as error:
        raise ImportError("checking convergence needs ArviZ: pip install 'ihmm[arviz]'") from error


def _rhat(stats: Any, x: FloatArray) -> float:
    """Rank-normalised split R-hat; infinite if every half of a chain stands still, each at its own value."""
    half = x.shape[1] // 2
    if np.all(np.ptp(x[:, :half], axis=1) == 0) and np.all(np.ptp(x[:, -half:], axis=1) == 0):
        return float("inf")
    value = float(stats.rhat(x, chain_axis=0, draw_axis=1))
    return value if np.isfinite(value) else 1.0  # ranks without variance: almost constant, and the same everywhere


def _ess_tail(stats: Any, x: FloatArray) -> float:
    value = float(stats.ess(x, chain_axis=0, draw_axis=1, method="tail", prob=(0.05, 0.95)))
    return value if np.isfinite(value) else float(x.size)


def _mixed(rhat: dict[str, float], moving: dict[str, FloatArray], n_chains: int) -> Finding:
    whose = "The chains agree" if n_chains > 1 else "The halves of the chain agree"
    bad = {name: value for name, value in rhat.items() if value > RHAT}
    if not bad:
        return Finding(True, f"{whose}: R-hat is at most {max(rhat.values(), default=1.0):.3f}.")
    worst = ", ".join(f"{name} {value:.2f}" for name, value in sorted(bad.items(), key=lambda item: -item[1]))
    text = f"{whose.replace('agree', 'do not agree')}: R-hat is above {RHAT} for {worst}."
    if n_chains > 1 and "n_states" in moving:
        medians = np.median(moving["n_states"], axis=1)
        if np.ptp(medians) >= 1:
            text += f" They sit at {', '.join(f'{m:g}' for m in medians)} states."
    return Finding(False, f'{text} Raise tune, start with init="auto", or take more draws.')


def _same_states(by_chain: FloatArray, mixed: bool) -> Finding:
    distance = 0.5 * np.abs(by_chain - by_chain.mean(axis=0)).sum(axis=2).mean(axis=1)
    worst = int(distance.argmax())
    if distance[worst] <= APART:
        text = f"They put the steps into the same states, to within {distance[worst]:.1%} (average distance)"
        return Finding(True, text + ("." if mixed else ": what differs is small states, or two that mean the same."))
    text = f"Chain {worst} puts the steps into other states than the rest: it is {distance[worst]:.0%} away on average."
    return Finding(False, f"{text} Raise tune, or look at posterior.traces to see which chain is stuck.")


def _settled(moving: dict[str, FloatArray]) -> Finding:
    """Has the last quarter of the chains moved away from the first one?"""
    drifting = []
    for name in ("log_joint", "n_states"):
        if name in moving:
            first, *_, last = np.array_split(moving[name], 4, axis=1)
            step = float(np.mean(last) - np.mean(first))
            spread = np.sqrt(0.5 * (first.var(axis=1) + last.var(axis=1)).mean())
            if abs(step) > DRIFT * spread:
                drifting.append(
                    f"{name} is still {'rising' if step > 0 else 'falling'} ({step:+.3g} from first to last)"
                )
    if drifting:
        return Finding(False, f"The chains have not settled: {', '.join(drifting)}. Raise tune.")
    return Finding(True, "They have settled: number of states and log joint show no trend.")


def _enough(bulk: dict[str, float], tail: dict[str, float], n_chains: int) -> Finding:
    wanted = ESS * n_chains
    least = {name: min(bulk[name], tail[name]) for name in bulk}
    if not least:
        return Finding(True, "Nothing varies.")
    name = min(least, key=lambda name: least[name])
    if least[name] >= wanted:
        return Finding(True, f"There are enough draws: at least {least[name]:.0f} effective ones ({name}).")
    times = wanted / max(least[name], 1.0)
    return Finding(
        False,
        f"There are too few draws: {name} is worth {least[name]:.0f} independent ones, {wanted} are wanted; "
        f"take about {times:.0f} times as many.".replace("about 1 times", "about twice"),
    )
