"""Size of the experiments: the full run, and a quick one as a smoke test."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    seeds: int = 10  # chains of each sampler on the synthetic data
    four_sweeps: int = 5000  # of each chain on the four states
    ten_sweeps: int = 2500  # of each chain on the ten states
    shown: int = 1000  # sweeps shown in T15; also the length of chains outside the ranking
    proposal_seeds: int = 5
    ion_seeds: int = 5
    ion_sweeps: int = 1000
    alice_inits: tuple[int, ...] = (3, 6, 10, 20, 30)
    alice_seeds: int = 1
    alice_sweeps: int = 10_000
    alice_draws: int = 500  # kept per chain: 2500 per sampler
    tiny_sweeps: int = 40_000
    tiny_seeds: int = 3
    sizes_k: tuple[int, ...] = (4, 8, 16, 32, 64, 128, 256)
    sizes_n: tuple[int, ...] = (10, 40, 160, 640)
    sizes_t: tuple[int, ...] = (1000, 4000, 16_000, 64_000)
    repeats: int = 9
    recording: Path | None = None  # the user's ion channel recording
    text: Path | None = None  # the text of Alice


QUICK = Settings(
    seeds=2,
    four_sweeps=20,
    ten_sweeps=20,
    shown=20,
    proposal_seeds=2,
    ion_seeds=2,
    ion_sweeps=20,
    alice_inits=(3, 10),
    alice_seeds=1,
    alice_sweeps=40,
    alice_draws=4,
    tiny_sweeps=1000,
    tiny_seeds=2,
    sizes_k=(4, 8),
    sizes_n=(10, 20),
    sizes_t=(500, 1000),
    repeats=2,
)
