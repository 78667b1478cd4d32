"""A visitor's clip: what is made of it, what a hostile file costs, and the page in Chromium."""

from __future__ import annotations

import base64
import io
import multiprocessing
import subprocess
import sys
import urllib.request
import wave
from pathlib import Path

import numpy as np
import pytest
from support.browser import CHROMIUM, Browser
from support.many_models import write_models

import speech_robust_bench as srb
from speech_robust_bench.core.audio import RATE, read
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.try_it import space, visitor_clip
from speech_robust_bench.extensions.try_it.visitor_clip import perturbed, scenarios


def _wav(path: Path, seconds: float, rate: int = RATE) -> Path:
    times = np.arange(round(seconds * rate)) / rate
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((8_000 * np.sin(2 * np.pi * 440 * times)).astype("<i2").tobytes())
    return path


def test_the_clip_is_what_srb_perturb_makes(tmp_path):
    clip = _wav(tmp_path / "a.wav", 1.0)
    made = perturbed(clip, "gaussian", 3)
    expected = srb.perturb(read(clip), RATE, "gaussian", 3)
    assert made.after.tolist() == np.round(expected.samples * 32_767).astype(int).tolist()
    assert made.before.tolist() == np.round(read(clip) * 32_767).astype(int).tolist()
    assert f"SNR {expected.snr_db:.1f} dB" in made.told
    assert made.after_png.startswith(b"\x89PNG")
    assert made.after_png != made.before_png


def test_every_scenario_offered_can_be_made():
    assert {"noise", "rir", "telephone", "gaussian"} <= set(scenarios())
    assert not {"amr", "pgd", "overlap"} & set(scenarios())


def test_a_long_clip_is_cut(tmp_path):
    made = perturbed(_wav(tmp_path / "long.wav", 40, 8_000), "gain", 1)
    assert len(made.before) == visitor_clip.MOST_CLIP_S * RATE
    assert "the first 30 s" in made.told


def _hostile() -> dict[str, bytes]:
    header = io.BytesIO()
    with wave.open(header, "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
    lying = bytearray(header.getvalue())
    lying[40:44] = (2**31 - 2).to_bytes(4, "little")
    return {"text.wav": b"not audio at all", "empty.wav": b"", "none.wav": header.getvalue(), "lying.wav": bytes(lying)}


@pytest.mark.parametrize("name", _hostile())
def test_a_hostile_file_is_one_line(tmp_path, name):
    (tmp_path / name).write_bytes(_hostile()[name])
    with pytest.raises(UserError) as refused:
        perturbed(tmp_path / name, "noise", 3)
    assert "\n" not in str(refused.value)
    assert str(tmp_path) not in str(refused.value)


def test_a_large_file_is_not_opened(tmp_path):
    with (tmp_path / "large.wav").open("wb") as file:
        file.truncate(visitor_clip.MOST_BYTES + 1)
    with pytest.raises(UserError, match="at most 10 MB"):
        perturbed(tmp_path / "large.wav", "noise", 3)


def test_a_clip_that_takes_too_long_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(visitor_clip, "SECONDS", 0.0)
    with pytest.raises(UserError, match="within the memory and time"):
        perturbed(_wav(tmp_path / "a.wav", 1.0), "noise", 3)
    assert multiprocessing.active_children() == []


def test_the_space_has_the_board_and_the_app(tmp_path):
    made = space.export(write_models(tmp_path / "verified", models=2, configs=30), tmp_path / "space")
    assert "sdk: gradio" in (made / "README.md").read_text(encoding="utf-8")
    assert 'href="try-it/"' in (made / "board" / "index.html").read_text(encoding="utf-8")
    compile((made / "app.py").read_text(encoding="utf-8"), "app.py", "exec")


@pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed")
def test_a_visitor_hears_and_sees_a_clip(tmp_path):
    pytest.importorskip("gradio")
    verified = write_models(tmp_path / "verified", models=2, configs=30)
    command = [sys.executable, "-m", "speech_robust_bench", "try-it", "--results", str(verified), "--port", "0"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        address = process.stdout.readline().split()[0]
        with urllib.request.urlopen(address) as answer:
            assert b'href="try-it/"' in answer.read()
        for asked in ("manifest.json", "favicon.ico"):  # a browser asks for them, and an error would be in its console
            with urllib.request.urlopen(address + asked) as answer:
                assert answer.status == 200
        clip = base64.b64encode(_wav(tmp_path / "a.wav", 1.0).read_bytes()).decode()
        with Browser() as page:
            page.size(1280, 900)
            page.open(f"{address}try-it/")
            page.wait("!!document.querySelector('input[type=file]') && !!document.querySelector('#hear')")
            page.eval(
                f"(async () => {{ const data = await (await fetch('data:audio/wav;base64,{clip}')).blob();"
                "const files = new DataTransfer(); files.items.add(new File([data], 'a.wav', {type: 'audio/wav'}));"
                "const input = document.querySelector('input[type=file]'); input.files = files.files;"
                "input.dispatchEvent(new Event('change', {bubbles: true})); })()"
            )
            page.wait("!document.querySelector('input[type=file]')")
            page.eval("document.querySelector('#hear').click()")
            page.wait("document.querySelector('#told')?.textContent.includes('noise, severity 3')")
            page.wait("document.querySelector('#after img')?.naturalWidth > 50")
            page.wait("!!document.querySelector('#heard audio, #heard .waveform-container, #heard a[download]')")
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()
