"""Does the default fit pass its own check? Data sets of different kinds, with no settings but the seed.

    python benchmarks/defaults.py [--only fret …] [--seed 0]

For each: true and found number of levels, accuracy after matching levels one to one, minutes, and the verdict, with the
whole check where it is not "Reliable". WRONG marks an answer that is called reliable although fewer than nine steps in
ten have the right level. The last two cannot be settled by the data, and the check should say why.
"""

import argparse
import os
import re
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from realistic import accuracy

import ihmm
from ihmm import datasets
from ihmm._typing import IntArray

TUTORIAL = Path(__file__).resolve().parents[1] / "docs" / "tutorials" / "from_csv_to_results.md"
RIGHT = 0.9  # accuracy of an answer that is called right
Case = tuple[Any, IntArray | None]  # the data, and the true level of each step if there is one


def realistic(recording: datasets.Realistic) -> Case:
    return recording.series, np.concatenate(recording.levels)


def paper(recording: datasets.Recording) -> Case:
    return recording.y, recording.states


def tutorial(seed: int) -> Case:
    """The recording that the first block of the tutorial writes."""
    import pandas

    found = re.search(r"```python\n(.*?)```", TUTORIAL.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    names: dict[str, Any] = {}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        exec(found[1].replace("default_rng(7)", f"default_rng({7 + seed})"), names)
        data = pandas.read_csv("recording.csv")[["current"]]
        os.chdir(before)
    return data, np.array(names["states"])


def overlapping(seed: int) -> Case:
    """Three levels one standard deviation apart, which 200 steps cannot tell from one or two."""
    rng = np.random.default_rng(seed)
    states = np.repeat(rng.permutation(np.repeat([0, 1, 2], 4)), 17)
    return 1.0 * states + rng.standard_normal(len(states)), states


def text(seed: int) -> Case:
    """English letters: many ways to divide them into states, and no true one."""
    letters = datasets.alice().test[1000 * (seed % 4) :][:1000]
    return [datasets.SYMBOLS[i] for i in letters], None


CASES: dict[str, Callable[[int], Case]] = {
    "tutorial": tutorial,
    "demo": lambda seed: paper(datasets.ion_channel(seed=seed)),
    "four states": lambda seed: paper(datasets.four_state(length=1000, seed=seed)),
    "fret": lambda seed: realistic(datasets.fret(seed=seed)),
    "patch clamp": lambda seed: realistic(datasets.patch_clamp(seed=seed)),
    "copy numbers": lambda seed: realistic(datasets.copy_numbers(seed=seed)),
    "returns": lambda seed: realistic(datasets.returns(seed=seed)),
    "spike counts": lambda seed: realistic(datasets.spike_counts(seed=seed)),
    "bases": lambda seed: realistic(datasets.sequence_composition(seed=seed)),
    "pump": lambda seed: realistic(datasets.pump(seed=seed)),
    "oscillators": lambda seed: realistic(datasets.oscillators(seed=seed)),
    "overlapping": overlapping,
    "text": text,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), help="data sets")
    parser.add_argument("--seed", type=int, default=0, help="another one gives other data of the same kinds")
    options = parser.parse_args()
    print(f"{'data':14}{'true':>5}{'found':>6}{'accuracy':>10}{'minutes':>9}  verdict")
    for name in options.only:
        measure(name, *CASES[name](options.seed))


def measure(name: str, data: Any, truth: IntArray | None) -> None:
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the check says the same
        fitted = ihmm.InfiniteHMM(random_state=1).fit(data)
    minutes = (time.perf_counter() - begin) / 60
    check = fitted.posterior_.check()
    share = accuracy(truth, fitted.levels_) if truth is not None else float("nan")
    number = len(np.unique(truth)) if truth is not None else "–"
    verdict = check.verdict if check else check
    wrong = "WRONG: " if check and not share >= RIGHT else ""
    print(f"{name:14}{number:>5}{fitted.n_levels_:>6}{share:>10.3f}{minutes:>9.1f}  {wrong}{verdict}", flush=True)


if __name__ == "__main__":
    main()
