"""Which speakers pay: speechocean762, children and adults, women and men, in clean speech and under six scenarios.

    python benchmarks/who_pays.py corpus --speechocean speechocean762 --out chosen
    python benchmarks/who_pays.py run --out chosen --model moonshine --noise-dir ESC-50 --rir-dir rooms
    python benchmarks/who_pays.py store --out chosen --to results/speechocean.parquet
    python benchmarks/who_pays.py table --to results/speechocean.parquet
    srb table chosen/runs/* --groups age_group
    srb fairness chosen/runs/* --groups age_group

`corpus` writes a folder of speechocean762 with one clip of every speaker (`--each N`), of four words or more, by a hash
of the ids. `run` is `srb run` on it and continues where it was interrupted. `store` keeps the transcripts. `table`
compares the groups: WER, the log2 ratio of their WER (the paper's LWERR), and how many points more a scenario costs the
first group (AequeVox), with intervals over speakers.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parent.parent))

from speech_robust_bench.cli.main import main as srb
from speech_robust_bench.scoring.runs import open_run
from speech_robust_bench.scoring.scoring import align

CORPUS = "en-speechocean762"
CONFIGS = (
    "clean",
    "gaussian_sev3",
    "noise_esc50_sev3",
    "real_rir_sev2",
    "lowpass_sev3",
    "speedup_sev2",
    "pitch_up_sev2",
)
GROUPINGS = {"gender": ("female", "male"), "age_group": ("child", "adult")}
NORMALISER = "srb-numbers-1"
REPLICATES = 2_000
SHORTEST = 4  # words


def chosen_lines(table: Path, each: int) -> list[str]:
    """The transcripts of the first clips of every speaker, whom a clip's id opens with, in the order of a hash."""
    lines = [line for line in table.read_text(encoding="utf-8").splitlines() if len(line.split()) > SHORTEST]
    by_speaker: dict[str, list[str]] = {}
    for line in sorted(lines, key=lambda line: hashlib.sha256(line.split()[0].encode()).digest()):
        by_speaker.setdefault(line[:5], []).append(line)
    return sorted(line for chosen in by_speaker.values() for line in chosen[:each])


def make_corpus(speechocean: Path, out: Path, each: int) -> int:
    """A folder of speechocean762 with the chosen transcripts; how many they are."""
    shutil.rmtree(out / "corpus", ignore_errors=True)
    count = 0
    for split in ("test", "train"):
        folder = out / "corpus" / split
        shutil.copytree(speechocean / split, folder)
        lines = chosen_lines(speechocean / split / "text", each)
        (folder / "text").write_text("\n".join(lines) + "\n", encoding="utf-8")
        count += len(lines)
    (out / "corpus" / "WAVE").symlink_to((speechocean / "WAVE").resolve())
    return count


def run(args: argparse.Namespace) -> int:
    """`srb run` of one model on clean speech and the six scenarios."""
    folders = ["--noise-dir", str(args.noise_dir), "--rir-dir", str(args.rir_dir)]
    names = [f"{CORPUS}_{config}" for config in CONFIGS]
    where = ["--corpus", f"{CORPUS}={args.out / 'corpus'}", "--follow-links", "--out", str(args.out / "runs")]
    name = ["--name", args.name] if args.name else []
    return srb(["run", "--model", args.model, *name, *names, *where, *folders])


def store(out: Path, to: Path) -> int:
    """Every transcript of the runs with its error counts and its speaker's gender and age; how many the file has then.

    Systems that only the file has stay as they are.
    """
    rows: list[dict[str, Any]] = []
    for folder in sorted({path.parent for path in (out / "runs").glob("*/*.jsonl")}):
        results = open_run(folder)
        for name in results.configs:
            for line in results.read(name).lines:
                group = "child" if int(line.age) <= 15 else "adult"
                about = {"system": results.model, "config": name.removeprefix(f"{CORPUS}_"), "clip": line.id}
                about |= {"speaker": line.speaker, "gender": line.gender, "age": int(line.age), "age_group": group}
                rows.append({**about, "reference": line.text, "transcript": line.pred_text, "audio_s": line.duration})
    texts = [row["transcript"] or "" for row in rows]
    counts = align([row["reference"] for row in rows], texts, normaliser=NORMALISER, language="en")
    columns = {key: [row[key] for row in rows] for key in rows[0]} | {"words": counts.lengths, "errors": counts.errors}
    about = {"normaliser": NORMALISER, "command": "benchmarks/who_pays.py store"}
    made = pa.table(columns).replace_schema_metadata(about)
    if to.exists():
        stored = pq.read_table(to)
        others = [system.as_py() not in columns["system"] for system in stored["system"]]
        made = pa.concat_tables([stored.filter(others).replace_schema_metadata(about).cast(made.schema), made])
    pq.write_table(made, to, compression="zstd", compression_level=19)
    return len(made)


def print_table(path: Path) -> None:
    """Every system and grouping: both groups' WER, LWERR, and the difference of their WERD, config by config."""
    cells: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for row in pq.read_table(path).to_pylist():
        for column in GROUPINGS:
            cells.setdefault((row["system"], column), {}).setdefault(row["config"], {})[row["clip"]] = row
    for (system, column), configs in cells.items():
        counts = [(name, *_rates(configs["clean"], configs[name], column)) for name in CONFIGS if name in configs]
        clips = [sum(row[column] == group for row in configs["clean"].values()) for group in GROUPINGS[column]]
        heads = [f"WER, {group} ({n} clips)" for group, n in zip(GROUPINGS[column], clips, strict=True)]
        print(f"\n{system}\n\n| config | {' | '.join(heads)} | LWERR | difference of WERD |\n|---|---|---|---|---|")
        for name, rates, ratio, difference in counts:
            values = [f"{rate[0]:.1f} ({_interval(rate, 1)})" for rate in rates]
            values.append(f"{ratio[0]:+.2f} ({_interval(ratio, 2, '+')})")
            values.append("" if name == "clean" else f"{difference[0]:+.1f} ({_interval(difference, 1, '+')})")
            print(f"| {name} | {' | '.join(values)} |")


def _rates(
    clean: dict[str, Any], config: dict[str, Any], column: str
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """WER of both groups, their log2 ratio and the difference of their WERD: the value, then those of the draws."""
    rng = np.random.default_rng(0)
    rates, losses = [], []
    for group in GROUPINGS[column]:
        clips = [clip for clip in sorted(config) if config[clip][column] == group]
        speakers, place = np.unique([config[clip]["speaker"] for clip in clips], return_inverse=True)
        equal = np.full(len(speakers), 1 / len(speakers))
        draws = rng.multinomial(len(speakers), equal, REPLICATES)[:, place]
        weights = np.vstack([np.ones(len(clips)), draws])
        words, errors, before = (
            np.array([rows[clip][name] for clip in clips])
            for rows, name in ((config, "words"), (config, "errors"), (clean, "errors"))
        )
        rates.append(100 * (weights @ errors) / (weights @ words))
        losses.append(100 * (weights @ (errors - before)) / (weights @ words))
    return rates, np.log2(rates[0] / rates[1]), losses[0] - losses[1]


def _interval(values: np.ndarray, digits: int, sign: str = "") -> str:
    low, high = np.quantile(values[1:], [0.025, 0.975])
    return f"{low:{sign}.{digits}f} to {high:{sign}.{digits}f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("corpus", "run", "store", "table"))
    parser.add_argument("--out", type=Path, default=Path("chosen"), metavar="DIR", help="where everything goes")
    parser.add_argument("--speechocean", type=Path, metavar="DIR", help="speechocean762, with WAVE, test and train")
    parser.add_argument("--each", type=int, default=1, metavar="N", help="clips of every speaker (default: 1)")
    parser.add_argument("--model", help="as in srb run")
    parser.add_argument("--name", default="", help="as in srb run")
    parser.add_argument("--noise-dir", type=Path, metavar="DIR", help="ESC-50")
    parser.add_argument("--rir-dir", type=Path, metavar="DIR", help="room responses")
    parser.add_argument("--to", type=Path, default=Path("results/speechocean.parquet"), help="file of store and table")
    args = parser.parse_args()
    if args.what == "run":
        return run(args)
    if args.what == "corpus":
        print(make_corpus(args.speechocean, args.out, args.each), "clips")
    elif args.what == "store":
        print(store(args.out, args.to), "transcripts")
    else:
        print_table(args.to)
    return 0


if __name__ == "__main__":
    sys.exit(main())
