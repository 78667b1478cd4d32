"""A matrix of real results: many recognisers x the paper's 101 configs x clips of LibriSpeech, with all transcripts.

    python benchmarks/matrix.py corpus --out matrix --librispeech LibriSpeech --noise-dir ESC-50 --rir-dir rooms
    python benchmarks/matrix.py run --out matrix --models benchmarks/matrix_models.yaml [--system NAME] [--until 17:30]
    python benchmarks/matrix.py store --out matrix --to results/matrix-3.parquet
    python benchmarks/matrix.py table --to results/matrix-3.parquet

Clean speech, all 2,620 clips, in the same way:

    python benchmarks/matrix.py corpus --out whole --librispeech LibriSpeech --each 0 --configs clean
    python benchmarks/matrix.py run --out whole --models FILE --stored results/librispeech.parquet
    python benchmarks/matrix.py store --out whole --to results/librispeech.parquet

`corpus` chooses the clips (`chosen_clips`) and builds the configs. `run` runs every system of a model file and can be
interrupted and repeated; with `--stored FILE` it leaves out what the file has, to go on elsewhere. `store` writes what
there is as one parquet file, without audio, beside what the file has already. `table` prints every system's WER and
NWERD. `onnx` writes Moonshine's .ort graphs as .onnx (the same texts, base-en 3.6 times as fast). results/README.md
says where models, noises and rooms come from.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import soundfile

sys.path.insert(0, str(Path(__file__).parent.parent))

from speech_robust_bench.builders.config_sources import open_data
from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.cli.main import main as srb
from speech_robust_bench.core.categories import AVERAGED
from speech_robust_bench.core.names import parse
from speech_robust_bench.models.run_plan import read_models
from speech_robust_bench.models.runner import RunJob, run_configs
from speech_robust_bench.scoring.difficulty import load as load_difficulty
from speech_robust_bench.scoring.runs import open_run
from speech_robust_bench.scoring.scoring import align

CLIP_S = (3, 12)  # no longer, so that many systems can be run; the choice knows lengths and ids, no results
PAPER = tuple(row.name for row in SCENARIOS.values() if row.category in AVERAGED and row.perturbs)
NORMALISER = "srb-paper-1"
NORMALISERS = {"": NORMALISER, "_open_asr": "open-asr-1"}  # suffix of the columns
REPLICATES = 2_000
FEWEST = 40  # clips of a mean: one of every speaker
COLUMNS = ("system", "config", "category", "clip", "speaker", "gender", "reference", "transcript")


def rank(clip: str) -> bytes:
    """What the clips of a speaker are sorted by."""
    return hashlib.sha256(f"matrix-3/{clip}".encode()).digest()


def by_speaker(clips: Iterable[str]) -> dict[str, list[str]]:
    """Clip ids of each speaker, in the order in which they are chosen."""
    speakers: dict[str, list[str]] = {}
    for clip in sorted(clips, key=rank):
        speakers.setdefault(clip.split("-")[0], []).append(clip)
    return speakers


def chosen_clips(split: Path, each: int) -> list[Path]:
    """`each` clips of every speaker, of 3 to 12 s, in the order of a hash of their ids; all clips where it is 0.

    Two of every speaker are 80 clips of test-clean, and the first of the 200 that five of every speaker are.
    """
    paths = {path.stem: path for path in sorted(split.rglob("*.flac"))}
    if not each:
        return list(paths.values())
    chosen = []
    for clips in by_speaker(paths).values():
        short = (clip for clip in clips if CLIP_S[0] <= soundfile.info(paths[clip]).duration <= CLIP_S[1])
        chosen += [paths[clip] for clip in islice(short, each)]
    return sorted(chosen)


def make_corpus(librispeech: Path, out: Path, each: int) -> int:
    """A LibriSpeech folder of the chosen clips, linked, each with its line of the transcripts; how many they are."""
    split = librispeech.resolve() / "test-clean"
    shutil.rmtree(out, ignore_errors=True)
    clips = chosen_clips(split, each)
    for path in clips:
        folder = out / path.parent.relative_to(split.parent)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / path.name).symlink_to(path)
        transcripts = "-".join(path.stem.split("-")[:2]) + ".trans.txt"
        lines = (path.parent / transcripts).read_text(encoding="utf-8").splitlines()
        with open(folder / transcripts, "a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines if line.split(" ")[0] == path.stem)
    shutil.copy(split.parent / "SPEAKERS.TXT", out)
    return len(clips)


def build(args: argparse.Namespace) -> int:
    """The configs of the chosen clips. ESC-50 is for `noise_esc50` alone, the rooms for `real_rir`."""
    print(make_corpus(args.librispeech, args.out / "corpus", 2 if args.each is None else args.each), "clips")
    folders = {"noise_esc50": ("--noise-dir", args.noise_dir), "real_rir": ("--rir-dir", args.rir_dir)}
    scenarios = ["clean", *PAPER]
    names: dict[tuple[str, ...], list[str]] = {}
    for name in scenarios:
        flag, folder = folders.get(name, ("", None))
        wanted = "en_clean" if name == "clean" else f"en_{name}_sev*"
        if any(fnmatch(name, pattern) for pattern in args.configs or ["*"]):
            names.setdefault((flag, str(folder)) if folder else (), []).append(wanted)
    where = ["--corpus", f"en=links:{args.out / 'corpus'}", "--out", str(args.out / "srb")]
    return max(srb(["build", *wanted, *where, *more]) for more, wanted in names.items())


def in_order(names: Sequence[str]) -> list[str]:
    """Configs in the order in which they are run: clean speech, then severity 3 before others.

    Each category has its turn, so that what is done when the time is over is spread over all of them.
    """
    severities = {0: -1, 3: 0, 2: 1, 4: 2, 1: 3}
    seen: Counter[tuple[str, int]] = Counter()
    places = {}
    for name in names:
        config = parse(name)
        category, turn = SCENARIOS[config.scenario].category, severities[config.severity]
        places[name] = turn, seen[category, turn]
        seen[category, turn] += 1
    return sorted(names, key=lambda name: places[name])


@dataclass(frozen=True)
class NotStored:
    """Of each config, the first clips of every speaker that a stored matrix does not have."""

    stored: frozenset[tuple[str, str]]  # level and clip
    each: int = 0  # clips of a speaker; 0: all
    label: str = "matrix"

    def choose(self, config: str, ids: Sequence[str]) -> set[str]:
        first = (clip for clips in by_speaker(ids).values() for clip in clips[: self.each or None])
        return {clip for clip in first if (parse(config).level, clip) not in self.stored}


def run_systems(args: argparse.Namespace) -> None:
    """Some configs at a time by every system in turn, until a time of the day (UTC)."""
    systems = [entry for entry in read_models(f"@{args.models}") if not args.system or entry.name in args.system]
    data = open_data(str(args.out / "srb"))
    patterns = args.configs or ["*"]
    names = [name for name in in_order(data.names()) if any(fnmatch(parse(name).level, one) for one in patterns)]
    stored = stored_rows(args.stored) if args.stored else []
    for start in range(0, len(names), args.at_a_time):
        configs = [data.config(name) for name in names[start : start + args.at_a_time]]
        for entry in systems:
            if args.until and datetime.now(UTC).strftime("%H:%M") >= args.until:
                return
            done = frozenset((row["config"], row["clip"]) for row in stored if row["system"] == entry.name)
            suite = NotStored(done, args.each or 0)
            folder = args.out / "runs" / entry.name
            job = RunJob(entry.parsed, folder, str(args.out / "srb"), entry.name, suite=suite)
            run_configs(job, [config for config in configs if job.rows(config)])
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


def run_rows(out: Path) -> list[dict[str, Any]]:
    """Every transcript of the finished configs of all systems."""
    rows = []
    for folder in sorted({path.parent for path in (out / "runs").glob("*/*.jsonl")}):
        run = open_run(folder)
        for name in run.configs:
            predictions = run.read(name)
            for line in predictions.lines:
                known = {"system": run.model, "config": parse(name).level, "category": predictions.entry.category}
                known |= {"clip": line.id, "speaker": line.speaker, "gender": line.gender}
                known |= {"reference": line.text, "transcript": line.pred_text}
                rows.append({**known, "audio_s": line.duration, "compute_s": line.time})
    return rows


def store(out: Path, to: Path) -> int:
    """Every transcript with its error counts, beside what the file has already; how many rows it has then."""
    rows = {(row["system"], row["config"], row["clip"]): row for row in [*stored_rows(to), *run_rows(out)]}
    ordered = [rows[key] for key in sorted(rows)]
    references, transcripts = [row["reference"] for row in ordered], [row["transcript"] or "" for row in ordered]
    columns: dict[str, Any] = {key: [row[key] for row in ordered] for key in COLUMNS}
    for suffix, normaliser in NORMALISERS.items():
        counts = align(references, transcripts, normaliser=normaliser, language="en")
        columns |= {f"words{suffix}": counts.lengths, f"errors{suffix}": counts.errors}
        if not suffix:
            columns |= {key: getattr(counts, key) for key in counts.totals()}
    columns |= {key: [row[key] for row in ordered] for key in ("audio_s", "compute_s")}
    about = {"normaliser": NORMALISER, "command": "benchmarks/matrix.py store"}
    to.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns).replace_schema_metadata(about), to, compression="zstd", compression_level=19)
    return len(rows)


@dataclass(frozen=True)
class SystemErrors:
    """Errors and words of a system on every clip, by config; a clip that was not run has no words."""

    counts: dict[str, np.ndarray]  # config -> (2, clips)

    def wer(self, config: str, draws: np.ndarray) -> np.ndarray:
        """WER in some draws of clips, each a row of how often every clip is taken."""
        errors, words = self.counts[config]
        return 100 * (draws @ errors) / (draws @ words)

    def werd(self, config: str, draws: np.ndarray) -> np.ndarray:
        """WERD of a config in some draws of clips."""
        clean = self.counts["clean"]
        return 100 * (draws @ (self.counts[config][0] - clean[0])) / (draws @ clean[1])

    def run_on(self, configs: Sequence[str]) -> np.ndarray | None:
        """Which clips were run in all of some configs; none where they are fewer than one of every speaker."""
        if not all(config in self.counts for config in configs):
            return None
        common = np.all([self.counts[config][1] > 0 for config in configs], axis=0)
        return common if common.sum() >= FEWEST else None


def read_errors(rows: Sequence[dict[str, Any]]) -> tuple[dict[str, SystemErrors], np.ndarray]:
    """Each system's counts, and the draws of clips: all of them first, then speakers with all their clips."""
    clips = {clip: place for place, clip in enumerate(dict.fromkeys(row["clip"] for row in rows))}
    systems: dict[str, SystemErrors] = {}
    for row in rows:
        system = systems.setdefault(row["system"], SystemErrors({}))
        counts = system.counts.setdefault(row["config"], np.zeros((2, len(clips))))
        counts[:, clips[row["clip"]]] = row["errors"], row["words"]
    of_clip = {row["clip"]: row["speaker"] for row in rows}
    speakers, place = np.unique([of_clip[clip] for clip in clips], return_inverse=True)
    equal = np.full(len(speakers), 1 / len(speakers))
    draws = np.random.default_rng(0).multinomial(len(speakers), equal, REPLICATES)
    return systems, np.vstack([np.ones(len(clips)), draws[:, place]])


def category_mean(system: SystemErrors, configs: Sequence[str], draws: np.ndarray, measure: str) -> np.ndarray | None:
    """The mean NWER, WERD or NWERD of some configs in each draw, over the clips that were run in all of them."""
    common = system.run_on(("clean", *configs))
    if common is None:
        return None
    hard = load_difficulty()
    scales = [100 / hard.of(f"en_{config}") if measure.startswith("N") else 1 for config in configs]
    rate = system.wer if measure == "NWER" else system.werd
    return np.mean(
        [scale * rate(config, draws * common) for scale, config in zip(scales, configs, strict=True)], axis=0
    )


def category_configs() -> dict[str, list[str]]:
    """The paper's configs by category."""
    members: dict[str, list[str]] = {}
    for scenario in map(SCENARIOS.__getitem__, PAPER):
        levels = range(1, len(scenario.severities) + 1)
        members.setdefault(scenario.category, []).extend(f"{scenario.name}_sev{level}" for level in levels)
    return members


def print_tables(path: Path) -> None:
    """Every system's WER on clean speech, with NWER, which ranks, NWERD and WERD; intervals are over speakers."""
    rows = stored_rows(path)
    members = category_configs()
    systems, draws = read_errors(rows)
    for measure in ("NWER", "NWERD", "WERD"):
        lines: list[tuple[float, list[str]]] = []
        for name, system in systems.items():
            cells = sum(int((counts[1] > 0).sum()) for counts in system.counts.values())
            means = [category_mean(system, configs, draws, measure) for configs in members.values()]
            average = None if any(mean is None for mean in means) else np.mean(np.stack(means), axis=0)
            clean = system.run_on(["clean"])
            wer = None if clean is None else system.wer("clean", draws * clean)
            line = [name, f"{cells:,}", *map(_with_interval, (wer, average, *means))]
            lines.append((np.inf if average is None or measure != "NWER" else float(average[0]), line))
        print(f"\n{measure}:\n")
        ordered = [line for _, line in sorted(lines, key=lambda entry: entry[0])]
        _print_markdown(("system", "transcripts", "WER, clean", "average", *members), ordered)


def _with_interval(draws: np.ndarray | None) -> str:
    """The value, which is the first draw, and its interval of 95 %."""
    if draws is None:
        return "-"
    low, high = np.quantile(draws[1:], [0.025, 0.975])
    return f"{draws[0]:.1f} ({low:.1f} to {high:.1f})"


def _print_markdown(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    print("|", " | ".join(heads), "|\n|" + "---|" * len(heads))
    for line in lines:
        print("|", " | ".join(line), "|")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("corpus", "onnx", "run", "store", "table"))
    parser.add_argument("--out", type=Path, default=Path("matrix"), metavar="DIR", help="where everything goes")
    parser.add_argument("--librispeech", type=Path, metavar="DIR", help="LibriSpeech, with test-clean and SPEAKERS.TXT")
    parser.add_argument("--each", type=int, metavar="N", help="clips of every speaker (corpus: 2; 0: all)")
    parser.add_argument("--noise-dir", type=Path, metavar="DIR", help="ESC-50, for noise_esc50")
    parser.add_argument("--rir-dir", type=Path, metavar="DIR", help="room responses, for real_rir")
    parser.add_argument("--configs", nargs="*", metavar="PATTERN", help="only these: clean, 'lowpass_*'")
    parser.add_argument("--ort", type=Path, metavar="DIR", help="a Moonshine folder, to write as .onnx")
    parser.add_argument("--models", default="models.yaml", metavar="FILE", help="the systems, as srb run --model @FILE")
    parser.add_argument("--system", action="append", default=[], metavar="NAME", help="only these systems")
    parser.add_argument("--stored", type=Path, metavar="FILE", help="leave out what this matrix has")
    parser.add_argument("--until", default="", metavar="HH:MM", help="start nothing after this time (UTC)")
    parser.add_argument("--at-a-time", type=int, default=101, metavar="N", help="configs before the next system's turn")
    parser.add_argument("--to", type=Path, default=Path("results/matrix-3.parquet"), help="file of store and table")
    args = parser.parse_args()
    if args.what == "corpus":
        return build(args)
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
