"""Can the answer be trusted? Convergence, agreement of the chains and fit of the model, with a verdict in words.

The verdict rests on what is used: the segmentation by level, the number of levels and their parameters. States of a few
steps that come and go, and hyperparameters, are reported as details and do not change it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import chdtrc

from ihmm import _html
from ihmm._typing import Array, FloatArray
from ihmm.diagnostics import convergence
from ihmm.diagnostics.agreement import Agreement, describe
from ihmm.diagnostics.remedies import Remedy, RunFacts, Slow, remedy

if TYPE_CHECKING:
    import pandas

MAX_RHAT = 1.01
MAX_NOISY_RHAT = 1.05  # if differences between the chains are no larger than their autocorrelation explains
MIN_ESS = 100  # effective sample size of all chains together, below which nothing is reliable
GOAL_ESS = 400  # that more draws should reach
MIN_DRAWS = 50  # per chain, below which nothing is diagnosed
MAX_DRIFT = 1.5  # from the first quarter of the draws to the last, in standard deviations within a quarter
CHANCE = 1e-3  # probability of a false alarm when the chains are compared
MIN_MAJORITY, MIN_SHARE = 0.6, 0.5  # of the draws that have the number of levels reported: of each chain, and of all
MIN_FACTOR = 2.0  # by which more draws are advised at once
MAX_KINETIC_RHAT = 1.1  # of the number of kinetic states
MIN_GAIN, GAIN_PER_STEP = 5.0, 0.02  # differences in log p(y | θ) that do not matter: in all, or for each step
NUMBER, LIKELIHOOD = "number of levels", "log p(y | θ)"
DETAILS = ("n_states", "log_joint", "gamma", "concentration", "stickiness", "sigma")


class Finding(NamedTuple):
    """The result of one diagnostic."""

    fine: bool
    text: str


class Criticism(NamedTuple):
    """A way in which the data contradict the model."""

    text: str
    gross: bool  # it typically creates states that do not exist
    setting: str = ""  # that answers it, such as emission="student-t"; empty if there is none
    unsettled: str = ""  # if not the model is in question but the number of levels: why, as the end of a sentence


class Evidence(NamedTuple):
    """What a verdict rests on."""

    n_levels: int  # that are reported
    n_levels_by_draw: Array  # (chains, some draws)
    n_states_by_draw: Array  # (chains, some draws): kinetic states, without those too brief to count
    quantities: Mapping[str, Array]  # name → (chains, draws): what else is used of the answer
    log_likelihood: FloatArray  # (chains, some draws): log p(y | θ)
    agreement: Agreement
    details: Mapping[str, Array]  # name → (chains, draws)
    criticisms: Sequence[Criticism]
    run: RunFacts
    tolerances: Mapping[str, float] = MappingProxyType({})  # standard deviations that are too small to matter
    n_steps: int = 1
    number_given: bool = False  # whether the model has so many states and no other number

    @property
    def small_gain(self) -> float:
        """Differences in log p(y | θ) up to this do not matter, such as those due to states that come and go."""
        return max(MIN_GAIN, GAIN_PER_STEP * self.n_steps)


@dataclass(frozen=True, eq=False)
class Check:
    """Can the answer be trusted? True if so.

    Attributes
    ----------
    findings
        (fine, text) of each diagnostic, the most important first.
    converged
        Whether further draws are unlikely to change the answer.
    stable
        Whether the chains are stationary and find the same levels.
    criticisms
        Where the data contradict the model.
    agreement
        How far the chains agree, and the modes they are in; None if there are too few draws.
    log_likelihood
        (chains, some draws): log p(y | θ), with the states summed out.
    rhat, ess_bulk, ess_tail
        By quantity. Quantities that are constant are left out.
    remedy
        What to do next; None if nothing needs to be done.
    agrees
        Whether the chains agree on everything that is used, after enough draws.
    n_levels, n_levels_share
        The number of levels reported, and the share of the draws that have so many.
    kinetics_agree
        Whether the chains also agree on the number of kinetic states, without those too brief to count.
    number_given
        Whether the number of levels was given by the model, not inferred.
    """

    findings: tuple[Finding, ...]
    converged: bool
    stable: bool
    criticisms: tuple[Criticism, ...] = ()
    agreement: Agreement | None = None
    log_likelihood: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    rhat: dict[str, float] = field(default_factory=dict)
    ess_bulk: dict[str, float] = field(default_factory=dict)
    ess_tail: dict[str, float] = field(default_factory=dict)
    remedy: Remedy | None = None
    agrees: bool = False
    n_levels: int = 1
    n_levels_share: float = 1.0
    kinetics_agree: bool = True
    number_given: bool = False

    @property
    def reliable(self) -> bool:
        """Whether the chains agree, the model is not contradicted grossly, and most draws have this many levels."""
        return self.agrees and not self.contradicted and not self.unsettled and self.n_levels_share >= MIN_SHARE

    @property
    def contradicted(self) -> bool:
        """Whether the data contradict the model in a way that typically creates states that do not exist."""
        return any(criticism.gross for criticism in self.criticisms)

    @property
    def unsettled(self) -> str:
        """Why the number of levels is not settled although the model fits; empty if it is."""
        return next((criticism.unsettled for criticism in self.criticisms if criticism.unsettled), "")

    def __bool__(self) -> bool:
        return self.reliable

    def table(self) -> "pandas.DataFrame":
        """R-hat and effective sample sizes, one row per quantity."""
        import pandas

        return pandas.DataFrame({"rhat": self.rhat, "ess_bulk": self.ess_bulk, "ess_tail": self.ess_tail})

    @property
    def verdict(self) -> str:
        """One sentence."""
        if self.reliable and self.number_given:
            number = f"there are {self.n_levels} levels" if self.n_levels > 1 else "there is a single level"
            return f"Reliable if {number}, which was taken as given: the chains agree on the rest."
        if self.reliable:
            number = f"the same {self.n_levels} levels" if self.n_levels > 1 else "a single level"
            within = "" if self.kinetics_agree else ", but not the same kinetic states within them"
            return f"Reliable: all chains find {number}{within}."
        if self.contradicted:
            agree = "The chains agree, but the" if self.agrees else "The"
            return f"{agree} model does not fit: do not trust the number of levels as it stands."
        if self.agrees and self.unsettled:
            return f"The chains agree, but {self.unsettled}."
        if self.agrees:
            share = f"{self.n_levels_share:.0%} of the draws have {self.n_levels}"
            return f"The chains agree, but the data leave the number of levels open: {share}."
        if self.stable:
            return "Not there yet: the chains find the same levels, but have not converged in all other respects."
        if self.agreement is None:
            return "Not reliable yet: there are too few draws."
        if len(self.agreement.within) == 1:
            return "Not reliable yet: a single chain cannot be compared with others."
        return "Not reliable: the chains have not converged."

    def text(self, run: str | None = None) -> str:
        """The verdict, the findings and what to do next: as a command line if the folder of a `run` is given."""
        lines = [f"  {'✓' if finding.fine else '✗'} {finding.text}" for finding in self.findings]
        if self.remedy is not None:
            lines.append(f"  → {self.remedy.text(run)}")
        return "\n".join([self.verdict, *lines])

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        items = [("✓" if finding.fine else "✗", finding.text) for finding in self.findings]
        if self.remedy is not None:
            items.append(("→", self.remedy.text()))
        return _html.paragraph(self.verdict, bold=True) + _html.marked(items)


def check(evidence: Evidence) -> Check:
    """Run all diagnostics."""
    number = np.asarray(evidence.n_levels_by_draw, float)
    as_reported = (number == evidence.n_levels).mean(axis=1)
    quantities = {NUMBER: number, **{name: np.asarray(x, float) for name, x in evidence.quantities.items()}}
    n_chains, n_draws = next(iter(evidence.details.values())).shape
    if n_draws < MIN_DRAWS:
        text = f"{n_draws} draws per chain are too few to diagnose: at least {MIN_DRAWS} are needed."
        few = Slow("a diagnosis", GOAL_ESS / n_draws)
        return Check((Finding(False, text),), False, False, remedy=remedy(evidence.run, slow=few))

    details = {name: np.asarray(x, float) for name, x in evidence.details.items()}
    varying = {name: x for name, x in (quantities | details).items() if np.isfinite(x).all() and np.ptp(x) > 0}
    rhat = {name: _rhat(x) for name, x in varying.items()}
    bulk = {name: convergence.ess_bulk(x) for name, x in varying.items()}
    tail = {name: convergence.ess_tail(x) for name, x in varying.items()}
    used = {name: varying[name] for name in varying if name in quantities}
    used = {name: x for name, x in used.items() if _usual_spread(x) > evidence.tolerances.get(name, 0.0)}
    if as_reported.min() >= MIN_MAJORITY:
        used.pop(NUMBER, None)  # extra levels that come and go do not change the number reported
    apart = differing(used)

    modes = _check_modes(evidence.agreement, evidence.log_likelihood, evidence.small_gain)
    mixing = _check_rhat(used, rhat, bulk, apart, n_chains)
    drift = _check_drift({**used, LIKELIHOOD: evidence.log_likelihood}, evidence.small_gain)
    sizes = _check_ess({name: min(bulk[name], tail[name]) for name in used})
    slowest = min(used, key=lambda name: min(bulk[name], tail[name]), default="")
    shortest = min(bulk[slowest], tail[slowest]) if slowest else np.inf
    criticisms = tuple(evidence.criticisms)
    findings = [modes, mixing, drift, sizes, *(Finding(False, criticism.text) for criticism in criticisms)]
    if not criticisms:
        findings.append(Finding(True, "No misfit of the model was found."))
    settled = [name for name in quantities if name in rhat and name not in used and name != NUMBER]
    unsettled_kinetics = _check_kinetics(np.asarray(evidence.n_states_by_draw, float))
    findings += unsettled_kinetics
    findings += _report_settled({name: rhat[name] for name in settled})
    findings += _report_details({name: rhat[name] for name in details if name in rhat}, bulk)

    stable = modes.fine and drift.fine
    agrees = stable and mixing.fine and sizes.fine
    return Check(
        findings=tuple(findings),
        converged=agrees and shortest >= GOAL_ESS and max((rhat[name] for name in used), default=1) <= MAX_RHAT,
        stable=stable,
        criticisms=criticisms,
        agreement=evidence.agreement,
        log_likelihood=evidence.log_likelihood,
        rhat=rhat,
        ess_bulk=bulk,
        ess_tail=tail,
        remedy=remedy(
            evidence.run,
            one_chain=n_chains == 1,
            stuck=not modes.fine and n_chains > 1,
            drifting=not drift.fine,
            slow=None if mixing.fine and sizes.fine else Slow(slowest, max(GOAL_ESS / shortest, MIN_FACTOR)),
            contradicted=any(criticism.gross for criticism in criticisms),
            settings=[criticism.setting for criticism in criticisms if criticism.setting],
        ),
        agrees=agrees,
        n_levels=evidence.n_levels,
        n_levels_share=float(as_reported.mean()),
        kinetics_agree=not unsettled_kinetics,
        number_given=evidence.number_given,
    )


def _usual_spread(x: FloatArray) -> float:
    """Standard deviation of a normal law with the same central 90%, so that a rare episode does not count."""
    low, high = np.quantile(x, (0.05, 0.95))
    return float(high - low) / (2 * 1.645)


def _rhat(x: FloatArray) -> float:
    """Rank-normalised split R-hat; infinite if every half chain is constant, at different values."""
    half = x.shape[1] // 2
    if np.all(np.ptp(x[:, :half], axis=1) == 0) and np.all(np.ptp(x[:, -half:], axis=1) == 0):
        return float("inf")
    value = convergence.rhat(x)
    return 1.0 if np.isnan(value) else value  # ranks have no variance: almost constant, and equal in all chains


def differing(varying: Mapping[str, FloatArray]) -> list[str]:
    """Quantities whose means differ between the chains by more than their autocorrelation explains.

    With independent draws, Σ_c (mean_c − mean)² / se_c² is χ² with one degree of freedom less than there are chains.
    """
    found = []
    for name, x in varying.items():
        if len(x) == 1:
            continue
        ess = np.array([_own_ess(chain) for chain in x])
        error = np.maximum(x.var(axis=1) / ess, 1e-4 * x.var() / x.shape[1])  # constant chains have none of their own
        weight = 1 / error
        center = (weight * x.mean(axis=1)).sum() / weight.sum()
        statistic = float((weight * np.square(x.mean(axis=1) - center)).sum())
        if chdtrc(len(x) - 1, statistic) < CHANCE / len(varying):
            found.append(name)
    return found


def _own_ess(chain: FloatArray) -> float:
    """Effective sample size of one chain, at least 2."""
    return max(convergence.ess_mean(chain[None]), 2.0)


def _check_modes(agreement: Agreement, log_likelihood: FloatArray, small_gain: float) -> Finding:
    """Whether all chains find the same levels, and explain the data equally well."""
    if len(agreement.within) == 1:
        return Finding(False, "There is only one chain, so agreement between chains cannot be checked.")
    if not agreement.agree:
        return Finding(False, f"The chains are in different modes: {describe(agreement.modes)}")
    mean, spread = log_likelihood.mean(axis=1), log_likelihood.std(axis=1)
    error = np.sqrt(np.square(spread).mean() / max(log_likelihood.shape[1] / 2, 1))
    gain = float(np.ptp(mean))
    if gain > small_gain + 5 * error:
        best, worst = int(mean.argmax()), int(mean.argmin())
        text = f"log p(y | θ) is {gain:.0f} higher in chain {best} than in chain {worst}."
        return Finding(False, f"The chains find the same levels, but {text}")
    share = float(agreement.distance.max())
    if share == 0:
        return Finding(True, "The chains find the same levels at all steps.")
    where = f"all but {share:.1%} of the steps" if share >= 0.0005 else "practically all steps"
    return Finding(True, f"The chains find the same levels at {where}.")


def _check_rhat(
    used: Mapping[str, FloatArray],
    rhat: Mapping[str, float],
    ess: Mapping[str, float],
    apart: Sequence[str],
    n_chains: int,
) -> Finding:
    """R-hat above 1.01 is a problem unless the chains differ no more than so few draws always do."""
    compared = "The chains" if n_chains > 1 else "The halves of the chain"
    high = {
        name: rhat[name]
        for name in used
        if rhat[name] > MAX_RHAT and (name in apart or rhat[name] > MAX_NOISY_RHAT or n_chains == 1)
    }
    if not used:
        return Finding(True, f"{compared} agree on the levels: means, shares and changes vary by too little to matter.")
    if not high:
        top = max(rhat[name] for name in used)
        return Finding(True, f"{compared} agree on the levels: R-hat is at most {max(top, 1.0):.3f}.")
    worst = ", ".join(f"{name} ({value:.2f})" for name, value in sorted(high.items(), key=lambda item: -item[1])[:4])
    return Finding(False, f"{compared} do not agree: R-hat is above {MAX_RHAT} for {worst}.")


def _check_drift(quantities: Mapping[str, FloatArray], small_gain: float) -> Finding:
    """Whether the last quarter of the draws differs from the first one."""
    drifting = []
    for name, least in ((NUMBER, 0.0), (LIKELIHOOD, small_gain)):
        trace = quantities.get(name)
        if trace is not None and trace.shape[1] >= 4 and np.ptp(trace) > 0:
            first, *_, last = np.array_split(trace, 4, axis=1)
            change = float(np.mean(last) - np.mean(first))
            spread = np.sqrt(0.5 * (first.var(axis=1) + last.var(axis=1)).mean())
            if abs(change) > max(MAX_DRIFT * spread, least):
                direction = "rising" if change > 0 else "falling"
                drifting.append(f"{name} is still {direction} ({change:+.3g} from the first quarter to the last)")
    if drifting:
        return Finding(False, f"The chains are not stationary: {', '.join(drifting)}.")
    return Finding(True, "The chains are stationary: log p(y | θ) and the number of levels show no trend.")


def _check_ess(smallest: dict[str, float]) -> Finding:
    if not smallest:
        return Finding(True, "All draws have practically the same levels, so more of them would not change the answer.")
    name = min(smallest, key=lambda name: smallest[name])
    size = smallest[name]
    if size >= MIN_ESS:
        return Finding(True, f"Effective sample sizes are sufficient: at least {size:.0f} ({name}).")
    return Finding(False, f"The effective sample size of {name} is {size:.0f}; at least {MIN_ESS} is needed.")


def _check_kinetics(n_states: FloatArray) -> list[Finding]:
    """Whether the chains agree on the number of kinetic states; nothing if they do."""
    if np.ptp(n_states) == 0 or _rhat(n_states) <= MAX_KINETIC_RHAT:
        return []
    mean = n_states.mean(axis=1)
    return [
        Finding(
            False,
            f"The chains do not agree on the kinetic states: they have {mean.min():.1f} to {mean.max():.1f} states on "
            "average, and dwell times within a level may differ between them.",
        )
    ]


def _report_settled(rhat: Mapping[str, float]) -> Iterable[Finding]:
    """Quantities that are used, in which the chains differ by less than matters; never a problem."""
    high = [f"{name} (R-hat {value:.2f})" for name, value in rhat.items() if value > MAX_RHAT]
    if high:
        yield Finding(True, f"The chains differ by too little to matter in {', '.join(high)}.")


def _report_details(rhat: Mapping[str, float], ess: Mapping[str, float]) -> Iterable[Finding]:
    """Quantities that the verdict does not rest on; never a problem."""
    rough = [name for name, value in rhat.items() if value > MAX_RHAT or ess[name] < GOAL_ESS]
    if rough:
        each = ", ".join(f"{name} (R-hat {rhat[name]:.2f}, effective sample size {ess[name]:.0f})" for name in rough)
        yield Finding(True, f"Estimated less precisely, with no effect on the verdict: {each}.")
