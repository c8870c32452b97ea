"""Kernels that are broken on purpose, to see tests fail."""

import importlib.util


def broken(module, folder, *changes):
    """The module with some of its text replaced, compiled anew; every change is (text, what stands there instead)."""
    with open(module.__file__, encoding="utf-8") as file:
        source = file.read()
    for text, replacement in changes:
        assert source.count(text) == 1, f"{module.__name__} should have this once: {text}"
        source = source.replace(text, replacement)
    file = folder / "broken.py"
    file.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("broken", file)
    out = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(out)
    return out


# Passes of `kernels.systematic` that keep the reference, and are wrong all the same
OWN = "own = weight[chosen] if chosen < n_explicit else 0.0"
GRID = "point = u * spacing if is_sure else through_reference(u, weight, chosen, tail_weight, spacing)"
OWN_HIT = "end += 1\n            point += spacing\n\n"
HITS = "while point < line + tail_weight:\n            point += spacing"
SYSTEMATIC = {
    "a grid that is not conditioned on the reference": [(GRID, "point = u * spacing")],
    "a spacing that depends on the reference": [
        (OWN, f"{OWN}\n        spacing = (everything - own) / (n_particles - 1)"),
    ],
    "a tail without f/g": [("if first_tail < end and needed == NOTHING:", "if False:")],
    "a tail that is hit once at most": [
        (OWN_HIT, OWN_HIT.replace("point += spacing", "point = math.inf")),
        (HITS, HITS.replace("point += spacing", "point = math.inf")),
    ],
}
