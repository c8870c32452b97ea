"""Progress bars on a terminal or in a notebook."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ihmm.one_chain import RunningChain


@contextmanager
def progress_bars(chains: Sequence[RunningChain], enabled: bool) -> Iterator[Callable[[], None]]:
    """Show one bar per chain, if enabled and there is something to show it on. Yields a function that updates them."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    if not enabled or not (terminal or "ipykernel" in sys.modules):
        yield lambda: None
        return
    bars = _bars()
    with bars:
        tasks = [
            bars.add_task(str(chain.task.chain), total=chain.task.settings.n_sweeps, **_status(chain))
            for chain in chains
        ]

        def refresh() -> None:
            for task, chain in zip(tasks, chains, strict=True):
                bars.update(task, **_status(chain))
            bars.refresh()

        yield refresh


def _bars() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, Task, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(TextColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{task.finished_speed or task.speed or 0:.3g}/s")

    console = Console(stderr=True)
    return Progress(
        SpinnerColumn(),
        TextColumn("chain {task.description} {task.fields[phase]}"),
        BarColumn(None),
        TextColumn("{task.completed}/{task.total}"),
        Rate(""),
        TextColumn("{task.fields[n_states]} states  log joint {task.fields[log_joint]:.1f}"),
        TimeRemainingColumn(compact=True),
        expand=True,
        console=console,
        auto_refresh=False,
        disable=not (console.is_terminal or console.is_jupyter),
    )


def _status(chain: RunningChain) -> dict[str, Any]:
    phase = "tune" if chain.done < chain.task.settings.tune else "draw"
    return {"completed": chain.done, "phase": phase, "n_states": chain.n_states, "log_joint": chain.log_joint}
