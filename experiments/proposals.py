"""T15 Fig. 5: prior and posterior proposals, with 10 and 50 particles, on the ten states."""

from matplotlib.figure import Figure

from experiments import style
from experiments.chains import chain_jobs, describe, of, recording_of, sooner, true_log_joint
from experiments.four_state import draw_traces
from experiments.jobs import Job, Results
from experiments.settings import Settings
from experiments.ten_state import DATA, INITS

TITLE = "Fig. 5: prior and posterior proposals, N = 10 and N = 50"
NAMES = ("pg", "pg_50", "prior_10", "prior_50")


def jobs(settings: Settings) -> list[Job]:
    from_the_ranking = [
        job for init in INITS for job in chain_jobs(DATA, "pg", init, settings.seeds, settings.ten_sweeps)
    ]
    return from_the_ranking + [
        job
        for init in INITS
        for name in NAMES[1:]
        for job in chain_jobs(DATA, name, init, settings.proposal_seeds, settings.shown)
    ]


def numbers(results: Results, settings: Settings) -> dict[str, object]:
    out: dict[str, object] = {"sweeps": settings.shown}
    n_states = len(recording_of(DATA).means)
    for init in INITS:
        chains = {name: _cut(of(results, DATA, name, init), settings.shown) for name in NAMES}
        out[f"from_{init}"] = {
            **{name: describe(found, n_states) for name, found in chains.items()},
            "posterior_first": sooner(chains["pg"], chains["prior_10"], n_states),
            "fifty_first_prior": sooner(chains["prior_50"], chains["prior_10"], n_states),
            "fifty_first_posterior": sooner(chains["pg_50"], chains["pg"], n_states),
        }
    out["posterior_is_better"] = all(out[f"from_{init}"]["posterior_first"]["first"] < 0.05 for init in INITS)
    return out


def _cut(chains: list[dict], sweeps: int) -> list[dict]:
    """The first sweeps of longer chains."""
    names = ("n_states", "n_large", "log_joint", "seconds")
    return [{name: one[name][:sweeps] for name in names} for one in chains]


def figures(results: Results, settings: Settings) -> dict[str, Figure]:
    figure, axes = style.panels(2, 2, 5.2)
    truth = recording_of(DATA)
    for row, init in zip(axes, INITS, strict=True):
        draw_traces(row, results, DATA, NAMES, init, labels={"pg": "posterior, N = 10"})
        row[0].set_title(f"Active states, from K = {init}")
        row[1].set_title("Joint log-likelihood")
        style.truth_line(row[0], len(truth.means))
        style.truth_line(row[1], true_log_joint(truth))
    return {"proposals": figure}
