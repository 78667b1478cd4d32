"""Run folders written by hand, so that scoring and reporting are tested without a model and without audio."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from speech_robust_bench.core.names import parse

TEXTS = {
    "a": "the quick brown fox",
    "b": "jumps over the lazy dog",
    "c": "and runs away",
    "d": "from all of it at once",
}
PEOPLE = {"a": ("ann", "female"), "b": ("bob", "male"), "c": ("ann", "female"), "d": ("bob", "male")}
CATEGORY = {
    "clean": "clean",
    "noise": "noise_env",
    "gaussian": "noise_white",
    "rir": "spatial",
    "opus": "codec",
    "pgd": "adv_us",
    "silence": "reject",
}


def line(config: str, clip: str, heard: str | None, text: str | None = None) -> dict:
    """One prediction."""
    speaker, gender = PEOPLE.get(clip, (None, None))
    made = {
        "id": clip,
        "audio_filepath": f"{config}/{clip}.flac",
        "duration": 2.0,
        "time": 0.1,
        "text": TEXTS.get(clip, "") if text is None else text,
        "pred_text": heard,
        "speaker": speaker,
        "gender": gender,
        "age": None,
        "accent": None,
        "language": "en",
    }
    return made | ({"error": "ValueError: no sound"} if heard is None else {})


def write_run(folder: Path, model: str, heard: Mapping[str, Sequence[str | None]]) -> Path:
    """`heard` has the transcripts of clips a, b, c, d for each config, named `<scenario>[_sev<N>]` of `en-tiny`."""
    folder.mkdir(parents=True)
    configs = {}
    for key, texts in heard.items():
        config = f"en-tiny_{key}"
        name = parse(config)
        scenario = name.scenario
        said = "" if CATEGORY[scenario] == "reject" else None
        lines = [line(config, clip, text, said) for clip, text in zip(TEXTS, texts, strict=True)]
        (folder / f"{config}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
        configs[config] = {
            "language": "en",
            "corpus": "tiny",
            "scenario": scenario,
            "severity": name.severity,
            "category": CATEGORY[scenario],
            "source": None if scenario == "clean" else "en-tiny_clean",
            "content_sha256": f"hash of {key}",
            "rows": len(lines),
            "of": len(lines),
        }
    about = {"model": model, "spec": model, "adapter": "python", "target": model, "configs": configs}
    (folder / "run.json").write_text(json.dumps(about), encoding="utf-8")
    return folder
