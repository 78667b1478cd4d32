"""How much each layer of the upstream counts in some probes, as a chart (SVG)."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

BAR, GAP, HEIGHT, LEFT, TOP = 18, 6, 120, 44, 26


def layer_chart(rows: Sequence[tuple[str, Sequence[float]]]) -> str:
    """One row of bars for each probe; layer 0 is what goes into the first block."""
    most = max((weight for _, weights in rows for weight in weights), default=0) or 1
    widest = LEFT + max(len(weights) for _, weights in rows) * (BAR + GAP) + GAP
    block = TOP + HEIGHT + 24
    parts = []
    for place, (name, weights) in enumerate(rows):
        top = place * block + TOP
        parts.append(f'<text x="{LEFT}" y="{top - 8}" font-weight="bold">{escape(name)}</text>')
        parts.append(f'<text x="{LEFT - 4}" y="{top + 10}" text-anchor="end">{most:.2f}</text>')
        parts.append(f'<text x="{LEFT - 4}" y="{top + HEIGHT}" text-anchor="end">0</text>')
        for layer, weight in enumerate(weights):
            x, height = LEFT + GAP + layer * (BAR + GAP), HEIGHT * weight / most
            parts.append(
                f'<rect x="{x}" y="{top + HEIGHT - height:.1f}" width="{BAR}" height="{height:.1f}" fill="#2f6f9f">'
                f"<title>layer {layer}: {weight:.4f}</title></rect>"
                f'<text x="{x + BAR / 2}" y="{top + HEIGHT + 14}" text-anchor="middle">{layer}</text>'
            )
    size = f'width="{max(widest, 240)}" height="{block * len(rows)}"'
    style = 'font-family="sans-serif" font-size="11"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n' + "\n".join(parts) + "\n</svg>\n"
