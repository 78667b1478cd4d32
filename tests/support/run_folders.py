"""Run folders: written by hand, so that scoring is tested without a model and without audio; by `srb run`; and read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from speech_robust_bench.cli.main import main
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


def write_spelling_run(place: Path) -> Path:
    """Run `m`, whose one transcript differs from its reference in spelling alone, with confidences."""
    folder = place / "m"
    folder.mkdir()
    line = {"id": "a", "audio_filepath": "a", "duration": 1.0, "time": 0.1, "language": "en", "speaker": None}
    line |= {"text": "eight four seven do not", "pred_text": "8, 4, 7 don't"}
    line["word_confidences"] = [
        ["8,", 0.9, 0.0, 0.3],
        ["4,", 0.8, 0.3, 0.6],
        ["7", 0.7, 0.6, 0.9],
        ["don't", 0.6, 0.9, 1.0],
    ]
    for config in ("en_clean", "en_noise_sev1"):
        (folder / f"{config}.jsonl").write_text(json.dumps(line) + "\n")
    about = {"en_clean": {"category": "clean"}, "en_noise_sev1": {"category": "noise_env", "source": "en_clean"}}
    (folder / "run.json").write_text(json.dumps({"model": "m", "configs": about}))
    return folder


def srb_run(model: str, data: Path, out: Path, *more: str) -> int:
    """`srb run` in this process: its exit code."""
    return main(["run", "--model", model, "--data", str(data), "--out", str(out), "--quiet", *more])


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def run_json(folder: Path) -> dict:
    return json.loads((folder / "run.json").read_text(encoding="utf-8"))


def without_time(path: Path) -> list[dict]:
    """Prediction lines without the one field that two runs never share."""
    return [{key: value for key, value in line.items() if key != "time"} for line in lines(path)]
