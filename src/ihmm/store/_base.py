"""The interface of a backend, and what it exchanges with the code that runs chains."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from ihmm._typing import Array, IntArray
from ihmm.data import Data
from ihmm.gibbs import SweepInfo
from ihmm.model import Draw, Model
from ihmm.moves import Move
from ihmm.samplers import Sampler
from ihmm.store.draw_storage import PackedDraws, StoredDraws

Phase = Literal["kept", "warmup"]
PHASES: tuple[Phase, ...] = "kept", "warmup"


@dataclass(frozen=True)
class RunSettings:
    """Everything that determines a run except the data and the initial trajectory, if one was given.

    The fields are those of ``run.json``; `init` is None if there is an initial trajectory.
    """

    model: Model
    sampler: Sampler | None
    moves: tuple[Move, ...]
    seed: int | None
    draws: int
    tune: int
    thin: int
    chains: int
    init: int | str | None
    save_warmup: bool
    order_by: str = "use"
    names: tuple[tuple[int, str], ...] = ()
    resolution: float | tuple[float, ...] | None = None

    @property
    def n_sweeps(self) -> int:
        """Sweeps per chain."""
        return self.tune + self.draws * self.thin

    def phase(self, sweep: int) -> Phase | None:
        """The phase that the draw of this sweep is stored under, None if it is discarded."""
        if sweep < self.tune:
            return "warmup" if self.save_warmup else None
        return "kept" if (sweep - self.tune + 1) % self.thin == 0 else None


class RunContents(NamedTuple):
    """Everything a posterior is made of."""

    settings: RunSettings
    data: Data
    kept: StoredDraws | None
    warmup: StoredDraws | None
    resumable: bool = False

    @property
    def sizes(self) -> list[int]:
        """Number of draws of each chain."""
        sizes = [0] * self.settings.chains
        for packed in self.kept.packed if self.kept is not None else ():
            sizes[packed.chain] = len(packed)
        return sizes

    @property
    def unfinished(self) -> str:
        """Which chains have fewer draws than requested, if the run can be resumed."""
        expected = self.settings.draws
        short = [f"chain {c} has {n} of {expected} draws" for c, n in enumerate(self.sizes) if n < expected]
        return ", ".join(short) if self.resumable else ""


class Checkpoint(NamedTuple):
    """State of a chain after a number of sweeps: its draw and its random generator."""

    sweeps: int
    draw: Draw
    generator: dict[str, Any]


class Chunk(NamedTuple):
    """Consecutive draws of one chain."""

    begin: int  # sweeps made before the first of them
    draws: dict[Phase, tuple[Array, PackedDraws]]  # states, (draws, total T), and everything else
    after: Checkpoint | None  # None in a saved posterior, which cannot be resumed


class SweepRange(NamedTuple):
    """Consecutive sweeps of one chain that have not been made yet, or whose draws were damaged."""

    chain: int
    before: Checkpoint | None  # None: from the start of the chain
    stop: int  # number of sweeps after which it ends
    chunk: int = 0  # number of the first chunk to write
    next_chunk: int | None = None  # number of the next intact chunk if damaged ones are recomputed

    @property
    def is_repair(self) -> bool:
        return self.next_chunk is not None


class ChainWriter(Protocol):
    """Stores the draws of one sweep_range."""

    def add(self, phase: Phase, draw: Draw, info: SweepInfo) -> None:
        """Add a draw made in this process."""
        ...

    def append(self, chunk: Chunk) -> None:
        """Add the draws of a chunk made by an executor, and store them with their checkpoint."""
        ...

    def due(self) -> bool:
        """Whether it is time to store the draws added since the last checkpoint."""
        ...

    def flush(self, after: Checkpoint) -> None:
        """Store the draws added since the last checkpoint, with a new checkpoint."""
        ...


class Backend(Protocol):
    """Storage of one run. Chains are run alike for every backend."""

    @property
    def settings(self) -> RunSettings: ...

    @property
    def data(self) -> Data: ...

    @property
    def trajectory(self) -> IntArray | None:
        """Initial trajectory of all chains, if one was given."""
        ...

    @property
    def resume_hint(self) -> str:
        """How to continue after an interruption, as the end of a message; empty if that is not possible."""
        ...

    def extend(self, draws: int) -> None:
        """Increase the number of draws per chain; `missing` then has the further sweeps."""
        ...

    def missing(self) -> list[SweepRange]:
        """Ranges of sweeps needed to complete the run."""
        ...

    def writer(self, sweep_range: SweepRange) -> ChainWriter: ...

    def contents(self) -> RunContents:
        """Everything stored so far."""
        ...
