"""The pictures of the leaderboard in docs/images, from the systems of the matrix, whose transcripts are in results/.

    python benchmarks/leaderboard_pictures.py [--system NAME ...] [--shown NAME] [--to docs/images]

The pages are those of `srb leaderboard --export`, photographed by Chromium.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from speech_robust_bench.core.records import SubmissionRecord, SubmittedModel  # noqa: E402
from speech_robust_bench.models.run_plan import ModelEntry, parse_models  # noqa: E402
from speech_robust_bench.push import verified  # noqa: E402
from speech_robust_bench.push.leaderboard.site import export  # noqa: E402
from speech_robust_bench.push.verify import Verdict  # noqa: E402
from speech_robust_bench.scoring import results  # noqa: E402
from speech_robust_bench.scoring.runs import Run, open_run  # noqa: E402

OWNER = "matrix"


def write_entry(run: Run, entry: ModelEntry, out: Path) -> None:
    """What `srb verify --out` writes of a submission, from a run of ours."""
    size = entry.parameters and entry.parameters / 1e6
    model = SubmittedModel(owner=OWNER, name=entry.name, params_m=size, licence=entry.licence)
    facts = SubmissionRecord(schema=1, model=model, benchmark_version="1", software={}, reproduce="", files={})
    verified.write(Verdict(results=results.results(run), facts=facts, run=run), out)


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
    from support.golden_inputs import write_matrix_runs

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--system", action="append", default=[], metavar="NAME", help="only these (default: all)")
    parser.add_argument("--shown", default="moonshine-tiny", metavar="NAME", help="the system whose page is shown")
    parser.add_argument("--to", type=Path, default=ROOT / "docs" / "images")
    args = parser.parse_args()
    entries = {entry.name: entry for entry in parse_models(ROOT / "benchmarks/matrix_models.yaml")}
    with tempfile.TemporaryDirectory() as scratch:
        out, runs = Path(scratch) / "verified", Path(scratch) / "runs"
        names = [name for name in write_matrix_runs(runs, args.system) if name in entries]
        print(f"{len(names)} systems")
        for name in names:
            write_entry(open_run(runs / name), entries[name], out)
        export(str(out), str(Path(scratch) / "site"))
        photograph(Path(scratch) / "site", f"{OWNER}--{args.shown}", args.to.absolute())


if __name__ == "__main__":
    main()
