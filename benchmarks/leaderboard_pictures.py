"""The pictures of the leaderboard in docs/, from the systems of the matrix.

    python benchmarks/leaderboard_pictures.py --matrix matrix [--system NAME ...] [--to docs]

The configs that all systems have are scored with the normaliser of the matrix, each system on all its clips: those of
one are the first of the others'. The pages are those of `srb leaderboard --export`, photographed by Chromium.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from benchmarks.matrix import NORMALISER  # noqa: E402
from speech_robust_bench.core.errors import UserError  # noqa: E402
from speech_robust_bench.models.model_file import ModelEntry, parse_models  # noqa: E402
from speech_robust_bench.push.leaderboard.site import export  # noqa: E402
from speech_robust_bench.push.verified import compact, stem  # noqa: E402
from speech_robust_bench.scoring import aggregate, results  # noqa: E402
from speech_robust_bench.scoring.runs import (  # noqa: E402
    Run,
    digest,
    open_run,
)

OWNER = "matrix"
OPTIONS = results.ScoreOptions(normaliser=NORMALISER)


def part_of(run: Run, configs: set[str], folder: Path) -> Run:
    """The run on some configs, in a folder of its own, and not marked as a part."""
    folder.mkdir(parents=True)
    entries = {}
    for config in configs:
        (folder / f"{config}.jsonl").write_bytes((run.folder / f"{config}.jsonl").read_bytes())
        entries[config] = {key: value for key, value in run.about["configs"][config].items() if key != "suite"}
    (folder / "run.json").write_text(json.dumps({**run.about, "configs": entries}), encoding="utf-8")
    return open_run(folder)


def write_entry(run: Run, entry: ModelEntry, out: Path) -> None:
    """What `srb verify --out` writes of a submission, from a run of ours."""
    model = {"owner": OWNER, "name": entry.name, "id": None, "licence": entry.licence, "url": None}
    model |= {"params_m": entry.parameters and entry.parameters / 1e6, "training_data": None}
    facts = {"model": model, "benchmark_version": "1", "reproduce": f"srb run --model '{entry.spec}' 'en-matrix_*'"}
    content = compact(results.results(run, OPTIONS), facts, None)
    scores = aggregate.score([run.read(c).count(NORMALISER) for c in run.configs], table=OPTIONS.difficulty)
    summary = aggregate.summarise(scores)["en"]
    rows = {**summary.categories, "overall": summary.overall}
    draws = io.BytesIO()
    np.savez_compressed(
        draws, **{f"en/{name}/nwerd": row.replicates["nwerd"].astype("f4") for name, row in rows.items()}
    )
    content |= {"draws_sha256": hashlib.sha256(draws.getvalue()).hexdigest(), "flags": [], "version": 1, "history": []}
    path = out / f"{stem(model)}.json"
    path.with_suffix(".npz").write_bytes(draws.getvalue())
    path.write_text(json.dumps({**content, "sha256": digest(content)}), encoding="utf-8")


def photograph(site: Path, model: str, to: Path) -> None:
    from support.browser import Browser

    with Browser() as page:
        for name, url, size in (
            ("leaderboard", "index.html", (1280, 560, False)),
            ("leaderboard_model", f"model/{model}.html", (1280, 860, False)),
            ("leaderboard_phone", "index.html", (390, 680, True)),
        ):
            page.size(*size)
            page.open((site / url).as_uri())
            page.wait("document.readyState === 'complete' && !!document.querySelector('.srb table')")
            page.screenshot(to / f"{name}.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--matrix", type=Path, required=True, metavar="DIR", help="what benchmarks/matrix.py wrote")
    parser.add_argument("--system", action="append", default=[], metavar="NAME", help="only these (default: all)")
    parser.add_argument("--shown", default="moonshine-tiny", metavar="NAME", help="the system whose page is shown")
    parser.add_argument("--to", type=Path, default=ROOT / "docs")
    args = parser.parse_args()
    entries = {entry.name: entry for entry in parse_models(ROOT / "benchmarks/matrix_models.yaml")}
    names = args.system or sorted(path.name for path in (args.matrix / "runs").iterdir())
    if unknown := set(names) - set(entries):
        raise UserError(f"no system {unknown} in matrix_models.yaml")
    runs = [open_run(args.matrix / "runs" / name) for name in names]
    configs = set.intersection(*(set(run.configs) for run in runs))
    print(f"{len(names)} systems, {len(configs)} configs")
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "verified"
        out.mkdir()
        for run, name in zip(runs, names, strict=True):
            write_entry(part_of(run, configs, Path(scratch) / "runs" / name), entries[name], out)
        export(str(out), str(Path(scratch) / "site"))
        photograph(Path(scratch) / "site", f"{OWNER}--{args.shown}", args.to.absolute())


if __name__ == "__main__":
    main()
