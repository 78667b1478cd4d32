"""Small dataset configs in the layout of docs/formats.md, and a little human speech."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from srb.builders.audio import RATE, encode_flac, read, to_pcm16


def write_config(
    folder: Path,
    name: str,
    clips: Sequence[np.ndarray | bytes],
    *,
    texts: Sequence[str] | None = None,
    rows_per_group: int = 4,
    language: str = "en",
) -> Path:
    """`folder/name/test-*.parquet` and its manifest; a clip given as bytes is stored as it is, broken or not."""
    count = len(clips)
    durations = [1.0 if isinstance(clip, bytes) else len(clip) / RATE for clip in clips]
    audio = [
        {"bytes": clip if isinstance(clip, bytes) else encode_flac(to_pcm16(clip)), "path": f"clip-{i:04d}.flac"}
        for i, clip in enumerate(clips)
    ]
    columns: dict[str, Any] = {
        "id": [f"clip-{i:04d}" for i in range(count)],
        "audio": pa.array(audio, pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
        "text": list(texts) if texts else [f"reference {i}" for i in range(count)],
        "language": [language] * count,
        "speaker": [f"speaker-{i % 2}" for i in range(count)],
        "gender": ["female" if i % 2 else "male" for i in range(count)],
        "age": pa.nulls(count, pa.string()),
        "accent": pa.nulls(count, pa.string()),
        "corpus": ["demo"] * count,
        "licence": ["CC0-1.0"] * count,
        "duration": durations,
        "source": ["en-demo_clean"] * count,
        "scenario": ["noise"] * count,
        "severity": pa.array([3] * count, pa.int32()),
        "parameters": ["{}"] * count,
    }
    place = folder / name
    place.mkdir(parents=True)
    pq.write_table(pa.table(columns), place / "test-00000-of-00001.parquet", row_group_size=rows_per_group)
    manifest = {
        "content_sha256": f"{len(name):064x}",
        "category": "noise (env)",
        "rows": count,
        "files": ["test-00000-of-00001.parquet"],
    }
    (place / "manifest.json").write_text(json.dumps(manifest))
    return place


@pytest.fixture
def tones(tmp_path: Path) -> Path:
    """`srb/` with two configs of 23 clips, 0.1 to 1.2 s, whose first sample tells which clip it is."""
    for name in ("en-demo_noise_sev3", "en-demo_clean"):
        write_config(tmp_path / "srb", name, [tone(i) for i in range(23)])
    return tmp_path / "srb"


def tone(number: int) -> np.ndarray:
    """A clip of pseudo-random length whose samples all say `number`."""
    length = 1600 + (number * 7919) % 17 * 1000
    return np.full(length, number / 1024, np.float32)


@pytest.fixture(scope="session")
def human_speech() -> np.ndarray:
    """44 s of a man reading Dickens, which comes with moonshine-voice."""
    pytest.importorskip("onnxruntime")
    from srb.builders.errors import UserError
    from srb.models.adapters.moonshine import assets

    try:
        return read(assets() / "two_cities.wav")
    except UserError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def prompts() -> list[tuple[np.ndarray, str]]:
    """Thirty sentences of Allison Smith's telephone prompts, with their transcripts (Debian's asterisk sounds)."""
    sounds, listing = Path("/usr/share/asterisk/sounds/en"), Path("/usr/share/doc/asterisk-core-sounds-en")
    texts = next(listing.glob("core-sounds-en.txt*"), None) if listing.is_dir() else None
    if not texts or not shutil.which("ffmpeg"):
        pytest.skip("apt-get install ffmpeg asterisk-core-sounds-en-g722")
    data = gzip.decompress(texts.read_bytes()) if texts.suffix == ".gz" else texts.read_bytes()
    found: list[tuple[Path, str]] = []
    for line in data.decode("utf-8", "replace").splitlines():
        name, _, text = line.partition(": ")
        path = sounds / f"{name}.g722"
        if 5 <= len(text.split()) <= 30 and text.replace(" ", "").translate(_PUNCTUATION).isalpha() and path.is_file():
            found.append((path, text))
    return [(_g722(path), text) for path, text in found[:30]]


_PUNCTUATION = str.maketrans("", "", ".,'?!")


def _g722(path: Path) -> np.ndarray:
    command = ["ffmpeg", "-v", "error", "-f", "g722", "-i", str(path), "-f", "s16le", "-ac", "1", "-ar", str(RATE), "-"]
    pcm = subprocess.run(command, check=True, capture_output=True).stdout
    return np.frombuffer(pcm, np.int16).astype(np.float32) / 32768
