"""What the commands print and write stays what it was: the files of tests/golden, made from measured transcripts.

After an intended change of a number or a text, write them again and read the diff before it is committed:

    pytest tests/test_golden.py --update-golden

Point values (WER, WERD, NWERD, counts) are in other files than intervals, tests and verdicts, so that a change of the
statistics leaves them alone. Everything goes through the command line.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import io
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from support import golden_inputs as inputs
from support.page_text import page_text

from speech_robust_bench.cli.main import main

GOLDEN = Path(__file__).parent / "golden"
LARGEST_FOLDER = 500_000  # bytes
SHOWN_LINES = 60  # of the diff of one file
SHOWN_REASONS = 4  # of one refused submission
MEASURES = ("wer", "nwer", "werd", "nwerd")
COUNTS = ("utterances", "hits", "substitutions", "deletions", "insertions", "empty", "failed")
GROUPS = ("clean", "categories", "scenarios", "corpora")
PAIRS = (
    ("moonshine-base", "moonshine-tiny"),
    ("moonshine-tiny", "asnr-moonshine-tiny"),
    ("moonshine-base", "vosk-small"),
    ("vosk-zamia", "pocketsphinx"),
)
REPORTED = ("moonshine-base", "moonshine-tiny", "vosk-small")
REPORTED_CONFIGS = ("clean", *(f"{name}_sev{n}" for name in ("noise", "gaussian", "rir", "opus") for n in (1, 2, 3, 4)))
INTERVAL = re.compile(r"\(?[-–]?\d+(\.\d+)? to [-–]?\d+(\.\d+)?\)?")
HASH = re.compile(r"\b[0-9a-f]{40,64}\b")
VERSION = re.compile(r"(srb|speech-robust-bench) \d+\.\d+\.\d+")


@pytest.fixture
def compare_golden(request) -> Any:
    """Compare texts with the golden files of these names, or write them with `--update-golden`."""
    update = request.config.getoption("--update-golden")

    def compare(texts: Mapping[str, str]) -> None:
        if update:
            for name, text in texts.items():
                (GOLDEN / name).parent.mkdir(exist_ok=True)
                (GOLDEN / name).write_text(text, encoding="utf-8")
        different = [diff for name, text in texts.items() if (diff := _diff(name, text))]
        assert not different, "\n".join([*different, "intended? pytest tests/test_golden.py --update-golden"])

    return compare


def _diff(name: str, text: str) -> str:
    path = GOLDEN / name
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    lines = list(
        difflib.unified_diff(before.splitlines(), text.splitlines(), f"golden/{name}", "now", n=0, lineterm="")
    )
    more = [f"... {len(lines) - SHOWN_LINES} more lines"] if len(lines) > SHOWN_LINES else []
    return "\n".join([*lines[:SHOWN_LINES], *more])


@pytest.fixture
def srb(tmp_path, monkeypatch) -> Any:
    """Run a command in an empty folder; returns what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")

    def run(*words: str, code: int = 0) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            assert main(list(words)) == code, printed.getvalue()
        return "".join(line.rstrip() + "\n" for line in printed.getvalue().splitlines())

    return run


def test_results_tables_and_comparisons_of_the_matrix(srb, compare_golden):
    """Every measured system: its scores, the table of all, and some against each other."""
    systems = inputs.write_matrix_runs(Path("runs"))
    folders = [f"runs/{system}" for system in systems]
    printed = {"scored.txt": srb("score", *folders), "table.txt": srb("table", *folders)}
    printed["table_intervals.txt"] = srb("table", "--intervals", *folders)
    results = {system: json.loads(Path("runs", system, "results.json").read_text()) for system in systems}
    points = {f"results/{system}.tsv": _points(content) for system, content in results.items()}
    compare_golden(printed | points | _interval_files(results) | _comparisons(srb))


def _points(results: dict[str, Any]) -> str:
    """The scores and counts of one system, a line for each config and group."""
    rows: list[Iterable[Any]] = [("config", *MEASURES, "wer_lenient", *COUNTS, "difficulty", "slices")]
    for config, entry in results["configs"].items():
        scores = [_value(score) for score in (*(entry[m] for m in MEASURES), entry["measures"]["wer_lenient"])]
        counts = [entry[count] for count in COUNTS]
        rows.append((config, *scores, *counts, entry["difficulty"], _slices(entry["slices"])))
    rows.append(("group", *MEASURES, "members", "missing"))
    for name, group in _groups(results):
        rows.append((name, *(_value(group[measure]) for measure in MEASURES), len(group["members"]), *group["missing"]))
    english = results["languages"]["en"]
    rows.append(("hallucination", *english["hallucination"].values()))
    rows.append(("slices", _slices(english["slices"])))
    rows.append(("failed, reject", results["failed"], results["reject"]))
    rows.append(("speed", *results["speed"].values()))
    return _lines(rows)


def _groups(results: dict[str, Any]) -> Iterable[tuple[str, dict[str, Any]]]:
    english = results["languages"]["en"]
    for kind in GROUPS:
        for name, group in english[kind].items():
            yield f"{kind} {name}", group
    for kind in ("overall", "median", "adversarial"):
        yield kind, english[kind]


def _value(score: dict[str, Any] | None) -> float | None:
    return score and score["value"]


def _slices(slices: Any) -> str:
    """A digest of the scores of all groups of speakers, without their intervals."""

    def points(node: Any) -> Any:
        return {k: points(v) for k, v in node.items() if k != "interval"} if isinstance(node, dict) else node

    return hashlib.sha256(json.dumps(points(slices), sort_keys=True).encode()).hexdigest()[:8]


def _interval_files(results: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """The intervals of groups, and of all configs the sums of both ends; and what a results file consists of."""
    rows: list[Iterable[Any]] = []
    for system, content in results.items():
        named = [(name, group) for name, group in _groups(content) if not name.startswith(("scenarios", "corpora"))]
        rows += [(system, name, *map(_ends, (group[m] for m in MEASURES))) for name, group in named]
        for measure in MEASURES:
            both = [entry[measure]["interval"] for entry in content["configs"].values() if entry[measure]]
            ends = zip(*filter(None, both), strict=True)
            without = f"{both.count(None)} without"
            rows.append((system, f"sums over configs, {measure}", *(f"{sum(values):.1f}" for values in ends), without))
    one = results["moonshine-base"]
    keys = {"results": one, "language": one["languages"]["en"], "config": one["configs"]["en-human_noise_sev3"]}
    keys |= {"run": one["run"], "scoring": one["scoring"], "group": one["languages"]["en"]["overall"]}
    structure = _lines((name, *content) for name, content in keys.items())
    return {
        "intervals.tsv": _lines(rows),
        "results_keys.tsv": structure + _lines([("options", json.dumps(one["options"]))]),
    }


def _ends(score: dict[str, Any] | None) -> str:
    return "{:.1f} to {:.1f}".format(*score["interval"]) if score and score["interval"] else "-"


def _comparisons(srb: Any) -> dict[str, str]:
    """The text of each comparison; and apart from the test, the scores that were compared."""
    printed = {pair: srb("compare", *(f"runs/{system}" for system in pair)) for pair in PAIRS}
    rows = [
        (*pair, *line.split()[:4])  # name, measure, A, B
        for pair, text in printed.items()
        for line in text.splitlines()
        if re.match(r"\S+ +N?WERD ", line)
    ]
    return {"compare.txt": "\n".join(printed.values()), "compare_points.tsv": _lines(rows)}


def _lines(rows: Iterable[Iterable[Any]]) -> str:
    return "".join("\t".join("-" if cell is None else str(cell) for cell in row) + "\n" for row in rows)


def test_verdicts_of_submissions_and_the_board_of_those_accepted(srb, compare_golden):
    """Good submissions, a copy and forgeries; and the static pages made from what was accepted."""
    data = inputs.write_built_data(Path("srb"))
    names = inputs.write_submission_runs(Path("runs"), data)
    for name in names:
        facts = ("--params-m", "39", "--model-id", f"acme/{name}")
        srb("submit", f"runs/{name}", "--data", "srb", "--dry-run", "--out", f"sent/{name}", *facts)
    forged = inputs.forge(Path("sent", names[0]), Path("forged"))
    printed = srb("verify", *(f"sent/{name}" for name in names), "--data", "srb", "--out", "verified")
    printed += srb("verify", *(f"forged/{name}" for name in forged), "--data", "srb", "--out", "verified", code=1)
    verdicts = re.findall(r"^(\S+: (?:accepted|refused))$", printed, re.MULTILINE)
    verified = {path.name: json.loads(path.read_text()) for path in sorted(Path("verified").glob("*.json"))}
    srb("leaderboard", "--results", "verified", "--export", "site")
    site = "".join(
        f"\n#### {path.relative_to('site')}\n" + (page_text(path.read_text()) if path.suffix == ".html" else "")
        for path in sorted(Path("site").rglob("*"))
        if path.is_file()
    )
    texts = {
        "verdicts.txt": "\n".join(verdicts) + "\n",
        "reasons.txt": _first_reasons(printed),
        "verified.tsv": _lines(row for name, content in verified.items() for row in _verified_points(name, content)),
    }
    compare_golden(texts | _with_intervals_apart("board", site))


def _first_reasons(printed: str) -> str:
    """The reasons of each refusal, the first few of them."""
    kept, reasons = [], 0
    for line in printed.splitlines():
        reasons = reasons + 1 if line.startswith("  ") else 0
        if reasons <= SHOWN_REASONS:
            kept.append(HASH.sub("HASH", line))
    return "\n".join(kept) + "\n"


def _verified_points(name: str, content: dict[str, Any]) -> Iterable[Iterable[Any]]:
    yield name, *content
    for config, entry in content["configs"].items():
        yield (
            name,
            config,
            *(entry[m][0] if entry.get(m) else None for m in MEASURES),
            entry["utterances"],
            entry["empty"],
        )
    for category, scores in content["languages"]["en"]["categories"].items():
        yield name, category, *(scores[m][0] if scores.get(m) else None for m in MEASURES)
    yield name, "overall", content["languages"]["en"]["overall"]["nwerd"][0]
    yield name, "reject", json.dumps(content["reject"])


def test_report_of_three_systems(srb, compare_golden):
    """Its sections, tables and charts, as text."""
    systems = inputs.write_matrix_runs(Path("runs"), REPORTED, REPORTED_CONFIGS)
    Path("models.csv").write_text(
        "model,parameters,hours,architecture\nmoonshine-base,61M,200000,seq2seq\nmoonshine-tiny,27M,200000,seq2seq\n"
    )
    srb("report", *(f"runs/{system}" for system in systems), "--meta", "models.csv", "--out", "report.html")
    compare_golden(_with_intervals_apart("report", page_text(Path("report.html").read_text(encoding="utf-8"))))


def _with_intervals_apart(name: str, text: str) -> dict[str, str]:
    """A text without its intervals, and the intervals, those of one line of it in a line."""
    lines = VERSION.sub(r"\1 VERSION", HASH.sub("HASH", text)).splitlines()
    points = [INTERVAL.sub("INTERVAL", line) for line in lines]
    intervals = [" ".join(match[0] for match in INTERVAL.finditer(line)) for line in lines]
    return {f"{name}.txt": "\n".join(points) + "\n", f"{name}_intervals.txt": "\n".join(filter(None, intervals)) + "\n"}


def test_golden_files_stay_small():
    assert sum(path.stat().st_size for path in GOLDEN.rglob("*") if path.is_file()) < LARGEST_FOLDER
