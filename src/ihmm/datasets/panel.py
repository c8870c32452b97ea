"""The panel: variants of the realistic recordings. A third is set aside, and no setting is tuned on it."""

from collections.abc import Callable
from typing import Any, NamedTuple

from ihmm.datasets import _realistic, _regimes
from ihmm.datasets._realistic import Realistic


class Variant(NamedTuple):
    kind: str
    name: str
    simulate: Callable[..., Realistic]
    arguments: dict[str, Any]
    aside: bool

    def recording(self, seed: int = 0) -> Realistic:
        """The recording; another `seed` gives another one of the same variant."""
        arguments = self.arguments | {"seed": 1000 * seed + self.arguments["seed"]}
        return self.simulate(**arguments)


def _variants(simulate: Callable[..., Realistic], kind: str, **variants: dict[str, Any]) -> list[Variant]:
    """Named variants of one kind; those whose name begins with "aside" are set aside."""
    return [
        Variant(kind, name.removeprefix("aside_").replace("_", " "), simulate, {"seed": i} | arguments, "aside" in name)
        for i, (name, arguments) in enumerate(variants.items())
    ]


PANEL: tuple[Variant, ...] = (
    *_variants(
        _realistic.fret,
        "fret",
        two_levels={},
        three_levels={"levels": (0.2, 0.5, 0.8), "length": 3000, "dwell": 25.0},
        ten_traces={"levels": (0.15, 0.5, 0.75), "traces": 10, "length": 200},
        dim_and_fast={"levels": (0.2, 0.7), "photons": 60.0, "dwell": 8.0},
        aside_four_levels={"levels": (0.1, 0.35, 0.6, 0.85), "traces": 15, "length": 250, "photons": 250.0},
        aside_short={"levels": (0.3, 0.8), "length": 300, "dwell": 15.0},
    ),
    *_variants(
        _realistic.patch_clamp,
        "patch clamp",
        two_levels={},
        subconductance={"open_levels": (1.2, 3.0), "noise": 0.25},
        strong_hum={"hum": 0.25, "flicker": 0.2, "noise": 0.25},
        aside_flickering={"closed": (200.0, 8.0), "dwell": 25.0, "noise": 0.25},
        aside_long={"open_levels": (1.5, 2.5), "length": 40000, "noise": 0.2},
    ),
    *_variants(
        _realistic.copy_numbers,
        "copy numbers",
        three_levels={},
        pure_with_waves={"purity": 1.0, "waves": 0.08},
        two_levels={"copies": (2, 3), "noise": 0.12, "probes": 1500},
        aside_four_levels={"copies": (1, 2, 3, 4), "purity": 0.9, "noise": 0.1, "probes": 4000},
        aside_noisy={"noise": 0.2, "waves": 0.08, "purity": 0.9},
    ),
    *_variants(
        _realistic.oscillators,
        "oscillators",
        three_modes={},
        two_modes={"periods": ((12.0, 35.0), (30.0, 12.0)), "length": 1500},
        aside_noisy={"noise": 0.3, "length": 3000},
    ),
    *_variants(
        _realistic.dance,
        "dance",
        turning_rate={},
        long={"length": 3000, "memory": 0.5},
        with_speed={"with_speed": True, "length": 1500},
        aside_slow={"turn": 0.09, "waggle": 35.0, "length": 2000},
        aside_smooth={"memory": 0.7, "turn": 0.15, "length": 1500},
    ),
    *_variants(
        _realistic.pump,
        "pump",
        two_faults={},
        one_fault={"faults": 1, "columns": 3, "drift": 0.5},
        three_faults={"faults": 3, "columns": 8, "length": 4000},
        aside_slow_memory={"memory": 0.8, "step": 5.0},
        aside_two_columns={"columns": 2, "faults": 1, "drift": 0.4, "step": 5.0},
    ),
    *_variants(
        _realistic.steady,
        "steady",
        white={},
        memory={"kind": "memory"},
        tails={"kind": "tails", "length": 1000},
        hum={"kind": "hum"},
        walk={"kind": "walk"},
        aside_long_walk={"kind": "walk", "length": 5000},
        aside_drift={"kind": "drift"},
        aside_columns={"kind": "memory", "columns": 4, "memory": 0.6},
    ),
    *_variants(
        _realistic.spike_counts,
        "spike counts",
        three_rates={},
        two_rates={"rates": (2.0, 12.0)},
        aside_short={"length": 500},
    ),
    *_variants(
        _realistic.sequence_composition, "bases", two_kinds={}, three_kinds={"n_kinds": 3}, aside_short={"length": 3000}
    ),
    *_variants(
        _regimes.returns,
        "returns",
        two_volatilities={},
        three_volatilities={"volatilities": (0.5, 1.3, 3.5), "length": 4000},
        aside_short={"length": 1200, "volatilities": (0.8, 2.4)},
    ),
    *_variants(
        _regimes.eruptions,
        "eruptions",
        two_waits={},
        long={"length": 1000, "spread": 7.0},
        aside_often_long={"repeat": 0.7, "length": 500},
    ),
    *_variants(
        _regimes.rhythms,
        "rhythms",
        two_memories={},
        brief={"dwell": 60.0, "length": 2000},
        aside_opposite={"memories": (0.8, -0.5), "length": 1500},
    ),
    *_variants(
        _regimes.paces,
        "paces",
        two_speeds={},
        three_speeds={"speeds": (1.4, 2.2, 3.2), "length": 1000},
        aside_slow={"dwell": 80.0, "length": 900},
    ),
)
