"""Does a front end help the words? Three recognisers behind four front ends, on human recordings under six scenarios.

    apt install asterisk-core-sounds-en asterisk-core-sounds-en-g722 ffmpeg
    pip install -e ".[demo,fronts]" faster-whisper vosk
    python benchmarks/front_ends.py --out /tmp/fronts --vosk FOLDER --whisper FOLDER [--clips 24]
    python benchmarks/front_ends.py --out /tmp/fronts --figure docs/images/front_ends.svg

The recordings are Debian's Asterisk prompts of 2 to 4 s (one woman, telephone quality). WHISPER is Whisper tiny.en for
CTranslate2, VOSK a model folder of Vosk. It can be interrupted and repeated, and done for one recogniser at a time
(`--only`). The second command draws WERD with a front end less WERD without, paired clip by clip, as `srb compare RUN
RUN --by config` has it, and prints the same as a table.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import soundfile
from human import SOUNDS, TEXTS, make_corpus

from speech_robust_bench.cli.main import main as srb
from speech_robust_bench.report.charts import Scale, fixed, marker, spanning
from speech_robust_bench.report.html import Html, tag
from speech_robust_bench.scoring.compare import Comparison, compare
from speech_robust_bench.scoring.runs import open_run

FRONT_ENDS = ("webrtc", "noisereduce", "asnr", "rnnoise")
# 5 dB: where small recognisers begin to fail and have not failed yet
SCENARIOS = ("gaussian_snr5", "noise_snr5", "music_snr5", "crosstalk_snr5", "rir_sev3", "telephone")
SHORTEST_S, LONGEST_S = 2.0, 4.0
RECOGNISERS = ("moonshine", "whisper-tiny.en", "vosk")
ROW, PANEL, LEFT, TOP, NARROWEST = 15, 210, 118, 56, 640
MOST = 90  # points: what is beyond is drawn there
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")  # the palette of Okabe and Ito


def prepare(folder: Path, clips: int) -> None:
    """The corpus, with the clips of the right length alone, and the built configs."""
    corpus = folder / "corpus"
    if not corpus.is_dir():
        make_corpus(folder / "all", 10_000)
        fitting = [
            path for path in sorted((folder / "all").glob("*.flac"))
            if SHORTEST_S <= soundfile.info(path).duration <= LONGEST_S
        ]  # fmt: skip
        part = folder / "corpus.part"
        part.mkdir(exist_ok=True)
        for path in fitting[:: max(1, len(fitting) // clips)][:clips]:
            for file in (path, path.with_suffix(".txt")):
                (part / file.name).write_bytes(file.read_bytes())
        part.rename(corpus)
    configs = [f"en-prompts_{name}" for name in ("clean", *SCENARIOS)]
    code = srb(["build", *configs, "--corpus", f"en-prompts={corpus}", "--out", str(folder / "srb"), "--workers", "1"])
    if code:
        sys.exit(code)


def compared(runs: Path, recogniser: str, front_end: str) -> dict[str, Comparison]:
    """By config: WERD with a front end and without, and WER on clean speech; nothing where it was not run."""
    folders = [runs / f"{front_end}-{recogniser}", runs / recogniser]
    if not all((folder / f"en-prompts_{name}.jsonl").is_file() for folder in folders for name in ("clean", *SCENARIOS)):
        return {}
    rows = compare(*(open_run(folder).counts(normaliser="srb-numbers-1") for folder in folders), by="config")
    return {row.name: row for row in rows}


def show(runs: Path, figure: Path) -> int:
    """The table to print, and the figure."""
    known = {(r, f): rows for r in RECOGNISERS for f in FRONT_ENDS if (rows := compared(runs, r, f))}
    print("| recogniser | front end | " + " | ".join(("clean WER", *SCENARIOS)) + " |")
    print("|---" * (3 + len(SCENARIOS)) + "|")
    for (recogniser, front_end), rows in known.items():
        cells = []
        for row in (rows[name] for name in ("en-prompts_clean", *SCENARIOS)):
            mark = {"a": " helps", "b": " hurts", None: ""}[row.better()]
            cells.append(f"{row.difference:+.1f} ({row.interval[0]:+.1f} to {row.interval[1]:+.1f}){mark}")
        print(f"| {recogniser} | {front_end} | {' | '.join(cells)} |")
    figure.write_text(drawn(known), encoding="utf-8")
    return 0


def drawn(known: dict[tuple[str, str], dict[str, Comparison]]) -> str:
    """One panel a recogniser, one group of rows a scenario: what each front end adds to WERD, with its interval."""
    names = [r for r in RECOGNISERS if any(key[0] == r for key in known)]
    ends = [end for rows in known.values() for name in SCENARIOS for end in rows[name].interval]
    parts, group = [], (len(FRONT_ENDS) + 1) * ROW
    height, width = TOP + group * len(SCENARIOS) + 34, max(NARROWEST, LEFT + (PANEL + 16) * len(names))
    for panel, recogniser in enumerate(names):
        start = LEFT + panel * (PANEL + 16)
        scale = spanning([min(max(end, -MOST), MOST) for end in ends], start, start + PANEL)
        parts.append(tag("text", recogniser, x=start + PANEL / 2, y=TOP - 10, text_anchor="middle", font_weight="bold"))
        for value in scale.ticks(4):
            at, colour = scale(value), "#444" if value == 0 else "#ddd"
            parts.append(tag("line", x1=at, x2=at, y1=TOP, y2=height - 34, stroke=colour))
            parts.append(tag("text", f"{value:+g}" if value else "0", x=at, y=height - 20, text_anchor="middle"))
        for place, scenario in enumerate(SCENARIOS):
            top = TOP + place * group
            if not panel:
                shown = scenario.replace("_snr5", ", 5 dB").replace("_sev3", ", severity 3")
                parts.append(tag("text", shown, x=LEFT - 8, y=top + group / 2, text_anchor="end"))
            for index, front_end in enumerate(FRONT_ENDS):
                row = known.get((recogniser, front_end), {}).get(scenario)
                parts += mark(row, scale, index, top + (index + 0.8) * ROW) if row else []
    for index, front_end in enumerate(FRONT_ENDS):
        at = LEFT + 10 + index * 120
        parts += [marker(index, at, 16), tag("text", front_end, x=at + 10, y=20)]
    foot = "points of WERD with the front end less without: left of 0 it helps, right it hurts (filled: beyond chance)"
    parts.append(tag("text", foot, x=LEFT, y=height - 4))
    style = "".join(f".s{i}{{fill:{c};stroke:{c};color:{c}}}" for i, c in enumerate(COLOURS))
    return tag(
        "svg",
        tag("style", Html(f"{style}.open *{{fill:#fff}}")),
        tag("rect", width=width, height=height, fill="#fff"),
        parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        width=width,
        font_family="sans-serif",
        font_size=11,
    )


def mark(row: Comparison, scale: Scale, index: int, y: float) -> list[Html]:
    """A point with its interval; open where the difference is within chance after correction."""
    low, high = row.interval
    title = f"{fixed(row.difference)} ({fixed(low)} to {fixed(high)})"
    line = tag("line", x1=scale(low), x2=scale(high), y1=y, y2=y, class_=f"s{index}")
    return [
        line,
        tag("g", marker(index, scale(row.difference), y, title, 3.5), class_=None if row.better() else "open"),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="Recognisers with and without front ends.")
    parser.add_argument("--out", type=Path, default=Path("fronts"))
    parser.add_argument("--clips", type=int, default=24)
    parser.add_argument("--whisper", help="Whisper tiny.en for CTranslate2")
    parser.add_argument("--vosk", help="a model folder of Vosk")
    parser.add_argument("--figure", type=Path, help="draw what was measured so far, and print it")
    parser.add_argument("--only", help="one recogniser: moonshine, whisper-tiny.en or vosk")
    parser.add_argument("--limit", type=int, help="run only the first clips")
    args = parser.parse_args()
    if args.figure:
        return show(args.out / "runs", args.figure)
    if not args.whisper or not args.vosk:
        parser.error("say --whisper and --vosk, or --figure")
    if not TEXTS.is_file() or not SOUNDS.is_dir():
        sys.exit("install the recordings: apt install asterisk-core-sounds-en asterisk-core-sounds-en-g722")
    prepare(args.out, args.clips)
    models = {
        "moonshine": "moonshine?threads=1",
        "whisper-tiny.en": f"faster-whisper:{args.whisper}?device=cpu&workers=1",
        "vosk": f"vosk:{args.vosk}?threads=1",
    }
    for name, spec in models.items():
        if args.only not in (None, name):
            continue
        for front_end in ("", *FRONT_ENDS):
            named = f"{front_end}-{name}" if front_end else name
            model = f"front:{front_end}|{spec}" if front_end else spec
            out = ["--name", named, "--data", str(args.out / "srb"), "--out", str(args.out / "runs"), "--quiet"]
            if code := srb(["run", "--model", model, *out, *(["--limit", str(args.limit)] if args.limit else [])]):
                return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
