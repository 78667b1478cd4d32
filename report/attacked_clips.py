"""Attacked clips to listen to and to look at: the clean clip, the attacked one, and what was added to it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from speech_robust_bench.builders.configs import ConfigSource
from speech_robust_bench.builders.gallery import spectrogram_png
from speech_robust_bench.core.audio import encode_flac, read, to_pcm16
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import Prediction
from speech_robust_bench.core.result_records import RunResults
from speech_robust_bench.scoring.runs import Predictions, open_run

PEAK = 0.5  # of the added signal as it is played


@dataclass(frozen=True)
class AttackedClip:
    """One clip of an adversarial config; sounds and pictures are data URLs."""

    config: str
    id: str
    text: str
    clean_hypothesis: str | None
    hypothesis: str | None
    target: str | None
    clean: str
    attacked: str
    added: str
    gain_db: float  # by which the added signal was raised to be heard
    spectrograms: Mapping[str, str]  # what it shows -> PNG


def attacked_clips(folder: str | Path, results: RunResults, data: ConfigSource, most: int) -> list[AttackedClip]:
    """The most damaged clip of each adversarial config of a run whose audio is at hand, at most `most`."""
    run, there = open_run(folder), set(data.names())
    shown: list[AttackedClip] = []
    for config in run.configs:
        entry = results.configs.get(config)
        source = entry.source if entry and entry.attack and parse(config).model else None
        if source is None or not {config, source} <= there or len(shown) == most:
            continue
        predictions = run.read(config)
        worst = _worst(predictions, results.options.normaliser)
        sounds = [dict(data.config(name).stored_audio({worst.id})).get(worst.id) for name in (source, config)]
        if sounds[0] is None or sounds[1] is None:
            continue
        clean = run.read(source).lines if source in run.configs else []
        clean_texts = {line.id: line.pred_text for line in clean}
        shown.append(_clip(config, worst, clean_texts.get(worst.id), sounds[0], sounds[1]))
    return shown


def _worst(predictions: Predictions, normaliser: str) -> Prediction:
    errors = predictions.count(normaliser).counts.errors
    return predictions.lines[int(np.argmax(errors))]


def _clip(config: str, line: Prediction, clean_hypothesis: str | None, clean: bytes, attacked: bytes) -> AttackedClip:
    before, after = read(clean), read(attacked)
    length = min(len(before), len(after))
    change = after[:length] - before[:length]
    gain = PEAK / max(float(np.abs(change).max(initial=0)), 1e-9)
    pictures = {"clean": before, "attacked": after, "added": change}
    return AttackedClip(
        config,
        line.id,
        line.text or "",
        clean_hypothesis,
        line.pred_text,
        line.target,
        _url("audio/flac", clean),
        _url("audio/flac", attacked),
        _url("audio/flac", encode_flac(to_pcm16(change * np.float32(gain)))),
        20 * float(np.log10(gain)),
        {name: _url("image/png", spectrogram_png(samples)) for name, samples in pictures.items()},
    )


def _url(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{b64encode(content).decode()}"
