"""Run the blocks of one page: `run_page.py PAGE RESULTS`. Figures are stored beside the results."""

import contextlib
import io
import json
import os
import sys
import tempfile
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from run_blocks import blocks


def main(page: Path, results: Path) -> None:
    namespace: dict[str, object] = {"__name__": page.stem}
    shown = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for i, code in enumerate(blocks(page.read_text("utf-8"))):
            text = io.StringIO()
            with contextlib.redirect_stdout(text):
                exec(compile(code, f"{page.name}, block {i + 1}", "exec"), namespace)
            shown.append((text.getvalue(), save_figures(results.parent, i)))
        os.chdir(results.parent)
    results.write_text(json.dumps(shown), "utf-8")


def save_figures(folder: Path, block: int) -> list[str]:
    names = []
    for number in pyplot.get_fignums():
        names.append(f"{block}-{number}.png")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fonts
            pyplot.figure(number).savefig(folder / names[-1], dpi=110)
    pyplot.close("all")
    return names


if __name__ == "__main__":
    main(*(Path(argument).resolve() for argument in sys.argv[1:3]))
