"""Numbers as readers like them."""


def three_digits(x: float) -> str:
    """Three significant digits; an exponent only for very small and very large numbers."""
    text = f"{x:.3g}" if abs(x) < 1000 or abs(x) >= 1e6 else f"{float(f'{x:.3g}'):.0f}"
    return text.replace("-", "−")
