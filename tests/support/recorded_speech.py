"""Small dataset configs in the layout of docs/concepts/files.md, and a little human speech."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.small_configs import tone, write_config

from speech_robust_bench.core.audio import RATE, read


@pytest.fixture
def tones(tmp_path: Path) -> Path:
    """`srb/` with two configs of 23 clips, 0.1 to 1.2 s, whose first sample tells which clip it is."""
    for name in ("en-demo_noise_sev3", "en-demo_clean"):
        write_config(tmp_path / "srb", name, [tone(i) for i in range(23)])
    return tmp_path / "srb"


@pytest.fixture(scope="session")
def human_speech() -> np.ndarray:
    """44 s of a man reading Dickens, which comes with moonshine-voice."""
    pytest.importorskip("onnxruntime")
    from speech_robust_bench.core.errors import UserError
    from speech_robust_bench.models.adapters.moonshine import assets

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
