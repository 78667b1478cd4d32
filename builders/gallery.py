"""A page with every scenario of one clip: a spectrogram to look at and a player to listen with. Works offline."""

from __future__ import annotations

import html
import io
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import TypedDict

import numpy as np

from speech_robust_bench.builders.scenario import Scenario
from speech_robust_bench.core import audio
from speech_robust_bench.core.categories import CATEGORIES
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import replacing
from speech_robust_bench.core.rows import Parameters

N_FFT = 512
WIDTH, RANGE_DB = 360, 80
SHADES = 40  # steps of 2 dB: fewer compress better, and nobody sees the difference
# Anchors of matplotlib's `magma`, which is even in lightness and safe for colour-blind eyes.
_MAGMA = (
    (0, 0, 4),
    (40, 17, 89),
    (101, 26, 128),
    (159, 47, 127),
    (214, 69, 108),
    (248, 118, 92),
    (254, 187, 129),
    (252, 253, 191),
)


class FileReport(TypedDict):
    """What was done to an audio file, as `srb perturb --json` prints it."""

    input: str
    output: str
    scenario: str
    severity: float
    parameters: Parameters
    bank: str | None
    snr_db: float | None
    clipped: int
    duration: float


def make_folder(folder: Path) -> None:
    """Make the folder for the page, or say why it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot be made ({error.strerror})") from None


def write_page(folder: Path, title: str, table: Mapping[str, Scenario], reports: list[FileReport]) -> None:
    """`index.html` over the clips that the reports tell of, which lie in the same folder."""
    sections = [_section("clean", [_figure(folder / "clean.flac", "as it was read")])]
    for category in CATEGORIES:
        names = [name for name, row in table.items() if row.category == category]
        rows = [(name, [report for report in reports if report["scenario"] == name]) for name in names]
        figures = [
            f"<h3>{name}</h3><p>{html.escape(table[name].help + _material(clips))}</p><div>{_figures(clips)}</div>"
            for name, clips in rows
            if clips
        ]
        if figures:
            sections.append(_section(f"{category}: {CATEGORIES[category].label}", figures))
    page = Template(_PAGE).substitute(title=html.escape(Path(title).name), body="\n".join(sections))
    with replacing(folder / "index.html") as part:
        part.write_text(page, encoding="utf-8")


def spectrogram_png(samples: audio.Samples) -> bytes:
    """Level over time and frequency, 0 Hz at the bottom, 80 dB below the loudest is black."""
    frames = max(1, min(WIDTH, len(samples) // 64))
    padded = np.pad(samples, (N_FFT // 2, N_FFT))
    starts = np.linspace(0, len(samples), frames, endpoint=False).astype(int)
    power = np.abs(np.fft.rfft(padded[starts[:, None] + np.arange(N_FFT)] * np.hanning(N_FFT), axis=1)) ** 2
    level_db = 10 * np.log10(power[:, :-1].reshape(frames, -1, 2).mean(axis=2) + 1e-12)
    shade = np.clip(1 + (level_db - level_db.max()) / RANGE_DB, 0, 1)
    return _png((np.round(shade * SHADES) * (255 / SHADES)).astype(np.uint8).T[::-1])


def _figures(reports: list[FileReport]) -> str:
    return "".join(_figure(Path(report["output"]), _caption(report)) for report in reports)


def _material(reports: list[FileReport]) -> str:
    """Where the noises or rooms are from, which may not be where the paper's are."""
    banks = dict.fromkeys(report["bank"] for report in reports if report["bank"])
    return f"; from the {', '.join(banks)}" if banks else ""


def _caption(report: FileReport) -> str:
    facts = [f"severity {report['severity']}"] if report["severity"] else []
    facts += [f"{key} {value}" for key, value in report["parameters"].items()]
    facts += [f"{report['clipped']:,} clipped"] if report["clipped"] else []
    return ", ".join(facts) or "one level"


def _figure(path: Path, caption: str) -> str:
    image = b64encode(spectrogram_png(audio.read(path))).decode()
    return (
        f'<figure><img loading="lazy" alt="spectrogram of {path.stem}" src="data:image/png;base64,{image}">'
        f'<audio controls preload="none" src="{path.name}"></audio>'
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
    )


def _section(title: str, parts: list[str]) -> str:
    return f"<section><h2>{html.escape(title)}</h2>{''.join(parts)}</section>"


def _png(shades: np.ndarray) -> bytes:
    """An 8-bit image through the colour map, as PNG."""
    from PIL import Image

    anchors = np.array(_MAGMA, dtype=float)
    at = np.linspace(0, len(anchors) - 1, 256)
    palette = np.stack([np.interp(at, np.arange(len(anchors)), anchors[:, c]) for c in range(3)], axis=1).astype(
        np.uint8
    )
    image = Image.fromarray(np.ascontiguousarray(shades))
    image.putpalette(palette.tobytes())
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Speech Robust Bench: $title</title>
<style>
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 1560px; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .25rem; border-bottom: 1px solid #8886; }
h3 { font-size: 1rem; margin: 1rem 0 0; } p { margin: 0 0 .5rem; opacity: .75; }
section > div { display: grid; grid-template-columns: repeat(auto-fill, minmax(260px, 1fr)); gap: 1rem; }
section > figure { max-width: 480px; }
figure { margin: 0; } img { width: 100%; height: 128px; display: block; image-rendering: auto; border-radius: 4px; }
audio { width: 100%; height: 34px; margin-top: .25rem; }
figcaption { font-size: .8rem; opacity: .8; overflow-wrap: anywhere; }
</style>
<h1>$title under every scenario</h1>
<p>Spectrograms: time from left to right, 0 to 8 kHz from bottom to top, 80 dB from black to bright.</p>
$body
</html>
"""
