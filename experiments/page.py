"""The page with the results: a template, filled with the numbers stored by the run."""

import json
import platform
from pathlib import Path
from types import SimpleNamespace
from typing import Any

TEMPLATE = Path(__file__).with_name("page.md")


def write(numbers: Path, page: Path) -> None:
    """Fill the template with the numbers of a JSON file."""
    found = json.loads(numbers.read_text("utf-8"))
    text = TEMPLATE.read_text("utf-8").format(**{name: _dotted(value) for name, value in found.items()})
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text, "utf-8")


def save_numbers(numbers: dict[str, Any], file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(numbers, indent=1, ensure_ascii=False) + "\n", "utf-8")


def machine() -> str:
    return f"Python {platform.python_version()} on {platform.system()}, {platform.machine()}"


class _Number(float):
    """A number with a typographic minus sign."""

    def __format__(self, spec: str) -> str:
        return super().__format__(spec).replace("-", "−")


def _dotted(value: Any) -> Any:
    """Allow {four_state.pg.sweeps} in the template; booleans become yes and no."""
    if isinstance(value, dict):
        return SimpleNamespace(**{name: _dotted(part) for name, part in value.items()})
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return _Number(value)
    return value
