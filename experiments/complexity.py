"""T15's main claim: O(TNK) per pass against O(TK²). Time to resample the trajectory as K, N and T grow."""

import numpy as np
from matplotlib.figure import Figure

import ihmm
from benchmarks.samplers import known_states, median_ms
from experiments import style
from experiments.chains import PaperGibbs
from experiments.jobs import Job, Result, Results
from experiments.settings import Settings
from ihmm._typing import FloatArray

TITLE = "Complexity: time per sweep against K, N and T"
SAMPLERS = {
    "posterior": ("posterior", "#0072B2"),
    "prior": ("prior", "#56B4E9"),
    "systematic": ("systematic", "#332288"),
    "beam": ("beam", "#D55E00"),
    "blocked": ("blocked", "#8A8A8A"),
}
USUAL = {"k": 10, "n": 10, "t": 4000}
AXES = {"k": "states K", "n": "particles N", "t": "steps T"}


def jobs(settings: Settings) -> list[Job]:
    return [
        Job(
            f"complexity/{axis}-{name}",
            grow,
            {"axis": axis, "name": name, "sizes": sizes, "repeats": settings.repeats},
            True,
        )
        for axis, sizes in _sizes(settings).items()
        for name in SAMPLERS
        if axis != "n" or name not in ("beam", "blocked")
    ]


def _sizes(settings: Settings) -> dict[str, tuple[int, ...]]:
    return {"k": settings.sizes_k, "n": settings.sizes_n, "t": settings.sizes_t}


def grow(axis: str, name: str, sizes: tuple[int, ...], repeats: int) -> Result:
    """Milliseconds per sweep, and to resample the trajectory alone, at each size; other sizes are fixed."""
    times = []
    for size in sizes:
        usual = USUAL | {axis: size}
        sampler = {
            "posterior": PaperGibbs(usual["n"]),
            "prior": PaperGibbs(usual["n"], "prior"),
            "systematic": ihmm.ParticleGibbs(usual["n"]),
            "beam": ihmm.Beam(),
            "blocked": ihmm.Blocked(),
        }[name]
        times.append(median_ms(sampler, *known_states(usual["k"], sampler, usual["t"]), repeats))
    sweep, step = np.array(times).T
    return {"sizes": np.array(sizes), "sweep": sweep, "step": step}


def exponent(sizes: FloatArray, times: FloatArray) -> float:
    """The slope of log time in log size over the larger half of the sizes."""
    half = len(sizes) // 2 if len(sizes) > 3 else 0
    return float(np.polyfit(np.log(sizes[half:]), np.log(times[half:]), 1)[0])


def numbers(results: Results, settings: Settings) -> dict[str, object]:
    out: dict[str, object] = {}
    for axis, sizes in _sizes(settings).items():
        out[axis] = {"smallest": sizes[0], "largest": sizes[-1]}
        for name in SAMPLERS:
            found = results.get(f"complexity/{axis}-{name}")
            if found is not None:
                out[axis][name] = {
                    "exponent": exponent(found["sizes"], found["step"]),
                    "last_exponent": exponent(found["sizes"][-2:], found["step"][-2:]),
                    "first": float(found["sweep"][0]),
                    "last": float(found["sweep"][-1]),
                }
    out["linear"] = out["k"]["posterior"]["exponent"] < 1.1
    out["quadratic"] = out["k"]["beam"]["exponent"] > 1.8
    return out


def figures(results: Results, settings: Settings) -> dict[str, Figure]:
    figure, axes = style.panels(1, 3, 2.9, sharey=True)
    named = []
    for ax, (axis, title) in zip(axes[0], AXES.items(), strict=True):
        ends = []
        for name, (label, colour) in SAMPLERS.items():
            found = results.get(f"complexity/{axis}-{name}")
            if found is not None:
                sizes, times = found["sizes"], found["step"]
                ax.plot(sizes, times, color=colour, linewidth=1.3, marker="o", markersize=3)
                ends.append((times[-1], f"{label} {exponent(sizes, times):.2f}", colour))
        ax.set(xscale="log", yscale="log", xlabel=title)
        ax.minorticks_off()
        ticks = sizes[:: 2 if len(sizes) > 5 else 1]
        ax.set_xticks(ticks, [str(size) if size < 10_000 else f"{size // 1000}k" for size in ticks])
        named.append((ax, ends))
    for ax, ends in named:  # the shared scale is known only now
        style.names_at_the_right(ax, ends)
    axes[0, 0].set_ylabel("ms to resample the trajectory")
    return {"complexity": figure}
