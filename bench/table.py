"""Plain text tables, aligned."""

from collections.abc import Sequence


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return the table as text; figures (and dashes) stand to the right, words to the left."""
    columns = list(zip(header, *rows, strict=True))
    widths = [max(len(cell) for cell in column) for column in columns]
    to_right = [all(_is_figure(cell) for cell in column[1:]) for column in columns]
    rule = ["-" * width for width in widths]
    lines = []
    for row in (header, rule, *rows):
        cells = zip(row, widths, to_right, strict=True)
        padded = (
            cell.rjust(width) if right else cell.ljust(width) for cell, width, right in cells
        )
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def _is_figure(cell: str) -> bool:
    return cell in ("", "-") or cell[0].isdigit()


def figure(value: float | None, digits: int = 3) -> str:
    """Return a number with some significant digits, or a dash for none."""
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}"
