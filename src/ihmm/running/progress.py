"""Progress bars on a terminal or in a notebook."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from ihmm._waiting import is_watched
from ihmm.kernels.compilation import Compilation, is_cold, where_kept
from ihmm.running.compiling import Kernels, kernels_of
from ihmm.running.one_chain import RunningChain

COMPILING = "Compiling for this machine, once: {task.completed} of {task.total}"
compilation = Compilation(())  # of this process
LINGER = 1.0  # seconds that the bar of compilation is shown after the last kernel, so that it does not flicker


Task = TypeVar("Task")
Progress = bool | str  # "compilation": of compilation only


@contextmanager
def progress_bars(chains: Sequence[RunningChain], progress: Progress) -> Iterator[Callable[[], None]]:
    """Show one bar per chain, if enabled and there is something to show it on. Yields a function that updates them."""
    console = _console() if progress is True else None
    settings = chains[0].task.settings
    kernels = kernels_of(settings.model, settings.sampler, settings.moves)
    if console is None:
        with compilation_bar(kernels, enabled=bool(progress)):
            yield lambda: None
        return
    from rich.console import Group
    from rich.live import Live

    compiling = CompilationBar(kernels, console)
    bars = _bars(console)
    with Live(Group(compiling.bar, bars), console=console, auto_refresh=False) as display:
        tasks = [
            bars.add_task(str(chain.task.chain), total=chain.task.settings.n_sweeps, **_status(chain))
            for chain in chains
        ]

        def refresh() -> None:
            for task, chain in zip(tasks, chains, strict=True):
                bars.update(task, **_status(chain))
            compiling.update()
            display.refresh()

        yield refresh


@contextmanager
def compilation_bar(kernels: Kernels, *, enabled: bool) -> Iterator[None]:
    """Show how far compilation is, if any of the kernels has to be compiled and there is something to show it on."""
    console = _console() if enabled and any(map(is_cold, kernels)) else None
    if console is None:
        yield
        return
    from rich.live import Live

    compiling = CompilationBar(kernels, console)

    def render() -> Any:
        compiling.update()
        return compiling.bar

    with Live(get_renderable=render, console=console, transient=True):
        yield


def _console() -> Any:
    """The terminal or notebook that is watched, if there is one."""
    if not is_watched():
        return None
    from rich.console import Console

    console = Console(stderr=True)
    return console if console.is_terminal or console.is_jupyter else None


def while_compiling(tasks: Sequence[Task]) -> Iterable[Task]:
    """The tasks one after the other, each of which compiles something, with a bar on a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    console = Console(stderr=True)
    columns = SpinnerColumn(), TextColumn(COMPILING), BarColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        yield from bar.track(tasks)


class CompilationBar:
    """How far compilation is, while somebody waits for it."""

    def __init__(self, kernels: Kernels, console: Any) -> None:
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

        self._compilation = compilation
        compilation.expect(kernels)
        folder, reason = where_kept()
        text = f"{COMPILING} (kept in {folder}: {reason})" if reason else COMPILING
        self.bar = Progress(SpinnerColumn(), TextColumn(text), BarColumn(), console=console, auto_refresh=False)
        self._task = self.bar.add_task("", visible=False)
        self._last_active = -math.inf

    def update(self) -> None:
        """Show the present state; nothing if nobody has waited for a while."""
        now = time.monotonic()
        if self._compilation.is_active:
            self._last_active = now
        visible = now - self._last_active < LINGER
        if visible:
            done = self._compilation.done
            self.bar.update(self._task, completed=done, total=self._compilation.total)
        self.bar.update(self._task, visible=visible)


def _bars(console: Any) -> Any:
    from rich.progress import BarColumn, Progress, SpinnerColumn, Task, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(TextColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{task.finished_speed or task.speed or 0:.3g}/s")

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
    )


def _status(chain: RunningChain) -> dict[str, Any]:
    phase = "tune" if chain.done < chain.task.settings.tune else "draw"
    return {"completed": chain.done, "phase": phase, "n_states": chain.n_states, "log_joint": chain.log_joint}
