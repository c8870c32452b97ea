"""Files of a run folder that hold arrays: the data, and the chunks of each chain."""

from pathlib import Path
from typing import Any

import numpy as np

from ihmm._typing import Array, IntArray, Phi
from ihmm.data import Data
from ihmm.durations import Omega
from ihmm.emissions._parameters import fields as phi_fields
from ihmm.emissions._parameters import rebuild
from ihmm.model import Draw, Hyper, Model, Transitions
from ihmm.series.clock import Clock
from ihmm.store._base import PHASES, Checkpoint, Chunk, Phase
from ihmm.store.archive import DamagedError, from_bytes, read_archive, stored_digest, to_bytes, write_archive
from ihmm.store.draw_storage import PackedDraws
from ihmm.store.range_checks import check_baseline, check_checkpoint, check_data, check_draws, check_durations
from ihmm.trajectory import Trajectory

DATA, SUFFIX = "data.chunk", ".chunk"
PREFIX: dict[Phase, str] = {"kept": "", "warmup": "warmup_"}  # of the names of arrays


def write_data(folder: Path, data: Data, trajectory: IntArray | None) -> None:
    arrays = {"y": data.y, "offsets": data.offsets, "missing": data.missing, "init": trajectory}
    arrays["baseline"] = data.baseline
    if data.columns is not None:
        arrays["columns"] = to_bytes(data.columns)
    if data.symbols is not None:
        arrays["symbols"] = to_bytes(data.symbols)
    if data.clock is not None:
        origin = None if data.clock.origin is None else str(data.clock.origin)
        arrays |= {"clock": to_bytes({"step": data.clock.step, "origin": origin}), "times": data.clock.times}
    write_archive(folder / DATA, {name: array for name, array in arrays.items() if array is not None})


def read_data(folder: Path, model: Model, digest: Any = None) -> tuple[Data, IntArray | None]:
    """The data, and the initial trajectory if there is one. `digest` is the one recorded in the settings, if any."""
    arrays = read_archive(folder / DATA, DATA)
    if digest is not None and digest != stored_digest(folder / DATA):
        raise DamagedError(f"{DATA} is not the one that the run was started with")
    check_data(arrays["y"], arrays["offsets"], arrays.get("missing"), arrays.get("init"), model.emission)
    baseline = arrays.get("baseline")
    check_baseline(baseline, arrays["y"])
    data = model.describe(arrays["y"], arrays["offsets"], arrays.get("missing"))
    columns, symbols = _names(arrays, "columns"), _names(arrays, "symbols")
    described = data._replace(columns=columns, symbols=symbols, clock=_clock(arrays), baseline=baseline)
    return described, arrays.get("init")


def _names(arrays: dict[str, Array], name: str) -> tuple[str, ...] | None:
    return tuple(map(str, from_bytes(arrays[name]))) if name in arrays else None


def _clock(arrays: dict[str, Array]) -> Clock | None:
    if "clock" not in arrays:
        return None
    written = from_bytes(arrays["clock"])
    origin = None if written["origin"] is None else np.datetime64(written["origin"])
    return Clock(written["step"], arrays.get("times"), origin)


def write_chunk(folder: Path, identity: str, chain: int, number: int, chunk: Chunk) -> None:
    about = {"run": identity, "chain": chain, "number": number, "begin": chunk.begin}
    (folder / f"chain-{chain}").mkdir(exist_ok=True)
    write_archive(folder / _name(chain, number), {**_to_arrays(chunk), "about": to_bytes(about)})


def chunk_numbers(folder: Path, chain: int) -> list[int]:
    """Numbers of the chunks that a chain has, in any order."""
    paths = (folder / f"chain-{chain}").glob(f"*{SUFFIX}")
    return [int(path.stem) for path in paths if path.stem.isdecimal()]


def read_chunks(folder: Path, identity: str, chain: int, model: Model, n_steps: int) -> list[Chunk | DamagedError]:
    """All chunks of a chain up to the last one present; a damaged one is replaced by the error that describes it."""
    rng = np.random.default_rng(0)
    like = model.emission.sample_prior(rng, 1)
    like_durations = None if model.duration is None else model.duration.sample_prior(rng, 1)
    chunks: list[Chunk | DamagedError] = []
    for number in range(max(chunk_numbers(folder, chain), default=-1) + 1):
        name = _name(chain, number)
        try:
            arrays = read_archive(folder / name, name)
            about = from_bytes(arrays["about"])
            if (about["run"], about["chain"], about["number"]) != (identity, chain, number):
                raise DamagedError(f"{name} belongs to another run or position")
            chunk = _from_arrays(arrays, about["begin"], chain, like, like_durations)
            for states, packed in chunk.draws.values():
                check_draws(states, packed, n_steps, like, model.emission)
                check_durations(packed.durations, int(packed.n_states.sum()), like_durations)
            if chunk.after is not None:
                check_checkpoint(chunk.after, chunk.begin, n_steps, like, model.emission)
                check_durations(chunk.after.draw.durations, chunk.after.draw.n_states, like_durations)
            chunks.append(chunk)
        except DamagedError as error:
            chunks.append(error)
        except (OSError, KeyError, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            chunks.append(DamagedError(f"{name} does not fit the run: {error}"))
    return chunks


def discard_chunks(folder: Path, chain: int, first: int) -> None:
    """Remove the chunks of a chain from `first` on."""
    for number in chunk_numbers(folder, chain):
        if number >= first:
            (folder / _name(chain, number)).unlink()


def _name(chain: int, number: int) -> str:
    return f"chain-{chain}/{number}{SUFFIX}"


def _to_arrays(chunk: Chunk) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    for phase, (states, packed) in chunk.draws.items():
        each = {"states": states, **{name: getattr(packed, name) for name in ("n_states", "beta", "initial", "rows")}}
        each |= {f"phi_{name}": field for name, field in phi_fields(packed.phi).items()}
        if packed.durations is not None:
            each |= {f"duration_{name}": field for name, field in phi_fields(packed.durations).items()}
        each |= {f"trace_{name}": trace for name, trace in packed.traces.items()}
        arrays |= {PREFIX[phase] + name: array for name, array in each.items()}
    if chunk.after is not None:
        sweeps, draw, generator = chunk.after
        transitions = {f"now_{name}": array for name, array in draw.transitions._asdict().items()}
        phi = {f"now_phi_{name}": array for name, array in phi_fields(draw.phi).items()}
        arrays |= {"now_states": draw.states, "now_hyper": np.array(draw.hyper), **transitions, **phi}
        if draw.components is not None:
            arrays["now_components"] = draw.components
        if draw.durations is not None:
            arrays |= {f"now_duration_{name}": array for name, array in phi_fields(draw.durations).items()}
        arrays["after"] = to_bytes({"sweeps": sweeps, "generator": generator})
    return arrays


def _from_arrays(arrays: dict[str, Array], begin: int, chain: int, like: Phi, like_durations: Omega | None) -> Chunk:
    """`like` and `like_durations` have the structure of the parameters of the emission and of the durations."""
    draws = {}
    for phase in PHASES:
        prefix = PREFIX[phase]
        if f"{prefix}states" in arrays:
            traces = {name: array for name, array in arrays.items() if name.startswith(f"{prefix}trace_")}
            packed = PackedDraws(
                chain,
                arrays[f"{prefix}n_states"],
                arrays[f"{prefix}beta"],
                arrays[f"{prefix}initial"],
                arrays[f"{prefix}rows"],
                rebuild(like, (arrays[f"{prefix}phi_{name}"] for name in phi_fields(like))),
                {name.removeprefix(f"{prefix}trace_"): trace for name, trace in traces.items()},
                _durations(arrays, f"{prefix}duration_", like_durations),
            )
            draws[phase] = (arrays[f"{prefix}states"], packed)
    return Chunk(begin, draws, _checkpoint(arrays, like, like_durations) if "after" in arrays else None)


def _durations(arrays: dict[str, Array], prefix: str, like: Omega | None) -> Omega | None:
    return None if like is None else rebuild(like, (arrays[prefix + name] for name in phi_fields(like)))


def _checkpoint(arrays: dict[str, Array], like: Phi, like_durations: Omega | None) -> Checkpoint:
    after = from_bytes(arrays["after"])
    transitions = Transitions(*(arrays[f"now_{name}"] for name in Transitions._fields))
    phi = rebuild(like, (arrays[f"now_phi_{name}"] for name in phi_fields(like)))
    hyper, components = Hyper(*arrays["now_hyper"].tolist()), arrays.get("now_components")
    omega = _durations(arrays, "now_duration_", like_durations)
    draw = Draw(Trajectory(arrays["now_states"]), transitions, phi, hyper, components, omega)
    return Checkpoint(after["sweeps"], draw, after["generator"])
