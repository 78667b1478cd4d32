"""A matrix of real results: many recognisers x every perturbation config x human clips, transcript by transcript.

    apt install asterisk-core-sounds-en asterisk-core-sounds-en-g722 ffmpeg
    python benchmarks/matrix.py corpus --out matrix --digits DIGITS --ljspeech LJSPEECH
    python benchmarks/matrix.py onnx --ort moonshine_cpp/models/base-en --to models/moonshine-base-en
    python benchmarks/matrix.py run --out matrix --models models.yaml [--clips 10] [--configs 101] [--until 17:30]
    python benchmarks/matrix.py store --out matrix --to results/matrix-2.parquet
    python benchmarks/matrix.py table --to results/matrix-2.parquet

`corpus` makes a plain-folder corpus of 61 short clips by 47 people and builds every config of it; results/README.md
says where DIGITS and LJSPEECH come from. `run` runs every system of a model file, some configs by all systems before
the next ones, so that what is finished at any moment is a matrix. `--clips` takes that many clips of each config, the
next ones in turn, so that every clip is in as many configs as any other; with more of them a second run adds those that
are missing. It can be interrupted and repeated. `store` writes what there is as one parquet file, without audio, beside
what the file has from other machines; `run --stored FILE` leaves out what a file has, to go on elsewhere. `table`
prints every system's WER, average NWERD and WERD beyond the average. `onnx` writes Moonshine's .ort graphs as .onnx
(the same texts, base-en 3.6 times as fast).
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import soundfile

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.human import SOUNDS, prompts
from srb.builders.corpora.demo import FOLDER as DEMO
from srb.builders.scenarios import SCENARIOS
from srb.cli.main import main as srb
from srb.core.categories import AVERAGED
from srb.core.names import parse
from srb.metrics.difficulty import load as load_difficulty
from srb.metrics.runs import open_run
from srb.models.config_sources import open_data
from srb.models.model_file import read_models
from srb.models.runner import RunJob, run_configs

GAP = 1920  # samples of exact silence after each digit of a string: 0.12 s
DIGITS_A_CLIP = 3
SPEAKERS = 44
PROMPTS = 10
PROMPT_S = (1.5, 2.6)
READER = ("en-reader-01", "en-reader-04", "en-reader-05", "en-reader-07")
LJ = ("LJ001-0002", "LJ001-0004", "LJ001-0008")
NORMALISER = "srb-numbers-1"
REPLICATES = 2_000
TURN = 5  # clips by which the next config's begin later
COLUMNS = ("file", "id", "text", "speaker", "gender", "age", "accent", "native", "licence")


def digit_clips(folder: Path, out: Path) -> list[dict[str, str]]:
    """The first three digits of one string each by all women and, by number, as many men as make 44 speakers.

    A string is single digits with 0.12 s of zeros after each, so it is cut where the third run of zeros begins.
    """
    with open(folder / "manifest.csv", encoding="utf-8", newline="") as file:
        strings = sorted(csv.DictReader(file), key=lambda row: row["id"])
    speakers = {row["speaker"]: row["gender"] for row in strings}
    chosen = sorted(speakers, key=lambda speaker: (speakers[speaker] != "female", speaker))[:SPEAKERS]
    rows = []
    for place, speaker in enumerate(chosen):
        row = [row for row in strings if row["speaker"] == speaker][place % 4]
        samples, rate = soundfile.read(folder / row["file"], dtype="int16")
        edges = np.flatnonzero(np.diff(np.concatenate([[0], samples == 0, [0]]).astype(np.int8)))
        gaps = [start for start, end in zip(edges[::2], edges[1::2], strict=True) if end - start >= GAP]
        text = " ".join(row["text"].split()[:DIGITS_A_CLIP])
        soundfile.write(out / row["file"], samples[: gaps[DIGITS_A_CLIP - 1]], rate, subtype="PCM_16")
        rows.append({**row, "text": text, "speaker": f"digits-{speaker}"})
    return rows


def prompt_clips(out: Path) -> list[dict[str, str]]:
    """Asterisk prompts of 4 to 12 words and 1.5 to 2.6 s, spread evenly over the list."""
    texts = prompts(1_000)
    seconds = {name: (SOUNDS / f"{name}.g722").stat().st_size / 8_000 for name in texts}
    short = [name for name in sorted(texts) if PROMPT_S[0] <= seconds[name] <= PROMPT_S[1]]
    rows = []
    for name in short[:: len(short) // PROMPTS][:PROMPTS]:
        clip = name.replace("/", "-")
        source = ["-f", "g722", "-i", str(SOUNDS / f"{name}.g722")]
        target = ["-ar", "16000", "-ac", "1", "-sample_fmt", "s16", str(out / f"prompt-{clip}.flac")]
        subprocess.run(["ffmpeg", "-v", "error", "-y", *source, *target], check=True)
        rows.append(
            {"file": f"prompt-{clip}.flac", "id": f"prompt-{clip}", "text": texts[name], "speaker": "allison"}
            | {"gender": "female", "licence": "CC-BY-SA-3.0"}
        )
    return rows


def copied_clips(folder: Path, out: Path, names: tuple[str, ...]) -> list[dict[str, str]]:
    """Some clips of a folder with a manifest, as they are."""
    with open(folder / "manifest.csv", encoding="utf-8", newline="") as file:
        rows = {Path(row["file"]).stem: row for row in csv.DictReader(file)}
    for name in names:
        (out / rows[name]["file"]).write_bytes((folder / rows[name]["file"]).read_bytes())
    return [{**rows[name], "id": name} for name in names]


def make_corpus(out: Path, digits: Path, ljspeech: Path) -> int:
    """All clips with one manifest, as `--corpus en-matrix=FOLDER` reads them."""
    out.mkdir(parents=True, exist_ok=True)
    rows = [*digit_clips(digits, out), *prompt_clips(out), *copied_clips(DEMO, out, READER)]
    rows += copied_clips(ljspeech, out, LJ)
    with open(out / "manifest.csv", "w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, extrasaction="ignore")
        table.writeheader()
        table.writerows(rows)
    return len(rows)


def in_order(names: list[str]) -> list[str]:
    """Configs in the order in which they are run: clean speech, then those of the average, severity 3 before others.

    Each category has its turn, so that what is done when the time is over is spread over all of them.
    """
    severities = {0: 0, 3: 0, 2: 1, 4: 2, 1: 3, 5: 4}
    seen: Counter[tuple[str, int]] = Counter()
    places = {}
    for name in names:
        config = parse(name)
        category, turn = SCENARIOS[config.scenario].category, severities[config.severity]
        kind = 0 if category == "clean" else 1 if category in AVERAGED else 3 if category == "reject" else 2
        places[name] = kind, turn, seen[category, turn]
        seen[category, turn] += 1
    return sorted(names, key=lambda name: places[name])


@dataclass(frozen=True)
class ClipsInTurn:
    """Some clips of each config, the next ones in turn, and all of clean speech."""

    clips: int
    order: tuple[str, ...]  # of the configs
    stored: frozenset[tuple[str, str]] = frozenset()  # level and clip of what need not be run
    label: str = "matrix"

    def choose(self, config: str, ids: Sequence[str]) -> set[str]:
        ranked = sorted(ids, key=lambda clip: hashlib.sha256(clip.encode()).digest())
        if parse(config).scenario != "clean" and self.clips < len(ranked):
            start = self.order.index(config) * TURN
            ranked = [ranked[place % len(ranked)] for place in range(start, start + self.clips)]
        return {clip for clip in ranked if (parse(config).level, clip) not in self.stored}


def run_systems(args: argparse.Namespace) -> None:
    """Some configs at a time by every system in turn, until a time of the day (UTC)."""
    chosen = [entry for entry in read_models(f"@{args.models}") if not args.system or entry.name in args.system]
    data = open_data(str(args.out / "srb"))
    names = in_order(data.names())
    stored = stored_rows(args.stored) if args.stored else []
    for start in range(0, min(args.configs, len(names)), args.at_a_time):
        configs = [data.config(name) for name in names[start : min(start + args.at_a_time, args.configs)]]
        for entry in chosen:
            if args.until and datetime.now(UTC).strftime("%H:%M") >= args.until:
                return
            folder = args.out / "runs" / entry.name
            done = frozenset((row["config"], row["clip"]) for row in stored if row["system"] == entry.name)
            suite = ClipsInTurn(args.clips, tuple(names), done)
            options = RunJob(entry.parsed, folder, str(args.out / "srb"), entry.name, suite=suite)
            run_configs(options, [config for config in configs if options.rows(config)])
            print(datetime.now(UTC).strftime("%H:%M"), entry.name, start + len(configs), flush=True)


def ort_to_onnx(folder: Path, out: Path) -> None:
    """The graphs of a Moonshine folder as .onnx, with its vocabulary.

    The weights of an .ort file stay packed in 8 bits and are unpacked at every call; those of an .onnx file when it is
    loaded.
    """
    import onnx
    import onnxruntime

    out.mkdir(parents=True, exist_ok=True)
    for name in ("encoder_model", "decoder_model_merged"):
        target = out / f"{name}.onnx"
        settings = onnxruntime.SessionOptions()
        settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        settings.optimized_model_filepath = str(target)
        settings.add_session_config_entry("session.save_model_format", "ONNX")
        onnxruntime.InferenceSession(str(folder / f"{name}.ort"), settings, providers=["CPUExecutionProvider"])
        model = onnx.load(target)
        branches = [attribute for node in model.graph.node for attribute in node.attribute if attribute.HasField("g")]
        for branch in branches:
            branch.g.name = branch.name  # onnxruntime writes none, and demands one
        onnx.save(model, target)
    (out / "tokenizer.bin").write_bytes((folder / "tokenizer.bin").read_bytes())


def stored_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a stored matrix, none if there is no such file."""
    return pq.read_table(path).to_pylist() if path.is_file() else []


def store(out: Path, to: Path) -> int:
    """Every transcript with its error counts, beside what the file has already; how many rows it has then."""
    rows: list[dict[str, Any]] = []
    for folder in sorted(path.parent for path in (out / "runs").glob("*/run.json")):
        run = open_run(folder)
        for name in run.configs:
            predictions = run.read(name)
            counts = predictions.count(NORMALISER).counts
            config = parse(name)
            for place, line in enumerate(predictions.lines):
                rows.append(
                    {
                        "system": run.model,
                        "config": config.level,
                        "category": predictions.entry["category"],
                        "clip": line["id"],
                        **{key: line[key] for key in ("speaker", "gender", "age", "accent")},
                        "reference": line["text"],
                        "transcript": line["pred_text"],
                        "words": int(counts.lengths[place]),
                        "errors": int(counts.errors[place]),
                        **{key: int(getattr(counts, key)[place]) for key in counts.totals()},
                        "audio_s": line["duration"],
                        "compute_s": line["time"],
                    }
                )
    known = {(row["system"], row["config"], row["clip"]) for row in rows}
    rows += [row for row in stored_rows(to) if (row["system"], row["config"], row["clip"]) not in known]
    rows.sort(key=lambda row: (row["system"], row["config"], row["clip"]))
    about = {"normaliser": NORMALISER, "command": "benchmarks/matrix.py store"}
    table = pa.Table.from_pylist(rows).replace_schema_metadata(about)
    to.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, to, compression="zstd")
    return len(rows)


@dataclass(frozen=True)
class SystemErrors:
    """Errors and words of a system on every clip, by config; a clip that was not run has no words."""

    counts: dict[str, np.ndarray]  # config -> (2, clips)

    def lost(self, config: str, draws: np.ndarray) -> np.ndarray:
        """WERD of a config in some draws of clips, each a row of how often every clip is taken."""
        clean = self.counts["clean"]
        return 100 * (draws @ (self.counts[config][0] - clean[0])) / (draws @ clean[1])

    def whole(self, config: str) -> bool:
        """Whether all clips of a config were run."""
        return config in self.counts and bool((self.counts[config][1] > 0).all())


def print_tables(path: Path) -> None:
    """Every system's WER on clean speech and NWERD of the average with intervals, then WERD of the other categories.

    Clips are drawn for the intervals, each with all its configs.
    """
    rows = stored_rows(path)
    clips = {clip: place for place, clip in enumerate(dict.fromkeys(row["clip"] for row in rows))}
    category = {row["config"]: row["category"] for row in rows}
    systems: dict[str, SystemErrors] = {}
    for row in rows:
        system = systems.setdefault(row["system"], SystemErrors({}))
        counts = system.counts.setdefault(row["config"], np.zeros((2, len(clips))))
        counts[:, clips[row["clip"]]] = row["errors"], row["words"]
    draws = np.random.default_rng(0).multinomial(len(clips), np.full(len(clips), 1 / len(clips)), REPLICATES)
    draws = np.vstack([np.ones(len(clips)), draws])  # first of all the clips as they are
    scores = {name: _average(system, category, draws) for name, system in systems.items()}
    order = sorted(systems, key=lambda name: (np.isnan(scores[name][0]), scores[name][0], name))
    columns = [key for key in AVERAGED if key in category.values()]
    lines = []
    for name in order:
        told, low, high, by_category = scores[name]
        average = "-" if np.isnan(told) else f"{told:.1f} ({low:.1f} to {high:.1f})"
        errors, words = systems[name].counts["clean"]
        cells = sum(int((counts[1] > 0).sum()) for counts in systems[name].counts.values())
        means = [f"{by_category[key]:.1f}" if key in by_category else "-" for key in columns]
        lines.append([name, f"{cells:,}", f"{100 * errors.sum() / words.sum():.1f}", average, *means])
    _print_markdown(("system", "transcripts", "WER, clean", "average NWERD", *columns), lines)
    others = [key for key in dict.fromkeys(category.values()) if key not in (*AVERAGED, "clean", "reject")]
    print("\nWERD of the categories beyond the average:\n")
    lines = []
    for name in order:
        cells_of = []
        for key in others:
            members = [config for config, own in category.items() if own == key]
            ran = all(systems[name].whole(config) for config in members)
            mean = np.mean([systems[name].lost(config, draws[:1])[0] for config in members]) if ran else np.nan
            cells_of.append("-" if np.isnan(mean) else f"{mean:.1f}")
        lines.append([name, *cells_of])
    _print_markdown(("system", *others), lines)


def _average(
    system: SystemErrors, category: dict[str, str], draws: np.ndarray
) -> tuple[float, float, float, dict[str, float]]:
    """NWERD on all configs of the average with its interval, not a number where one is missing; and by category."""
    table, by_category = load_difficulty(), {}
    for key in AVERAGED:
        ran = [config for config, own in category.items() if own == key and system.whole(config)]
        if ran:
            by_category[key] = np.mean(
                [100 * system.lost(config, draws) / table.of(f"en_{config}") for config in ran], axis=0
            )
    first = {key: float(values[0]) for key, values in by_category.items()}
    if not all(system.whole(config) for config, own in category.items() if own in AVERAGED):
        return np.nan, np.nan, np.nan, first
    average = np.mean(list(by_category.values()), axis=0)
    low, high = np.quantile(average[1:], [0.025, 0.975])
    return float(average[0]), float(low), float(high), first


def _print_markdown(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    print("|", " | ".join(heads), "|\n|" + "---|" * len(heads))
    for line in lines:
        print("|", " | ".join(line), "|")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("corpus", "onnx", "run", "store", "table"))
    parser.add_argument("--out", type=Path, default=Path("matrix"), metavar="DIR", help="where everything goes")
    parser.add_argument("--digits", type=Path, metavar="DIR", help="the digit strings")
    parser.add_argument("--ljspeech", type=Path, metavar="DIR", help="some clips of LJ Speech")
    parser.add_argument("--ort", type=Path, metavar="DIR", help="a Moonshine folder, of onnx")
    parser.add_argument("--models", default="models.yaml", metavar="FILE", help="the systems, as srb run --model @FILE")
    parser.add_argument("--system", action="append", default=[], metavar="NAME", help="only these systems")
    parser.add_argument("--stored", type=Path, metavar="FILE", help="leave out what this matrix has")
    parser.add_argument("--until", default="", metavar="HH:MM", help="begin nothing after this time (UTC)")
    parser.add_argument("--clips", type=int, default=61, metavar="N", help="of each config (default: all)")
    parser.add_argument("--at-a-time", type=int, default=8, metavar="N", help="configs before the next system's turn")
    parser.add_argument("--configs", type=int, default=1_000, metavar="N", help="only the first N, in their order")
    parser.add_argument(
        "--to", type=Path, default=Path("results/matrix-2.parquet"), metavar="FILE", help="of store and onnx"
    )
    args = parser.parse_args()
    if args.what == "corpus":
        print(make_corpus(args.out / "corpus", args.digits, args.ljspeech), "clips")
        corpus = ["--corpus", f"en-matrix={args.out / 'corpus'}"]
        return srb(["build", "en-matrix_*", *corpus, "--out", str(args.out / "srb")])
    if args.what == "onnx":
        ort_to_onnx(args.ort, args.to)
    elif args.what == "store":
        print(store(args.out, args.to), "transcripts")
    elif args.what == "table":
        print_tables(args.to)
    else:
        run_systems(args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
