"""Versions and hashes of everything that the page was made from."""

from __future__ import annotations

from speech_robust_bench.report.html import Html, table, tag
from speech_robust_bench.report.report_data import Report
from speech_robust_bench.report.sections.parts import name, number, section
from speech_robust_bench.scoring.results import Json, all_entries


def provenance(report: Report) -> Html:
    """Versions and hashes of everything."""
    rows = []
    for model in report.models:
        results = model.results
        run = results["run"]
        rows.append(
            [
                name(model),
                run["spec"] or "",
                run["revision"] or "",
                ", ".join(f"{k} {v}" for k, v in (run["options"] or {}).items()),
                number(len(all_entries(results)), 0),
                ", ".join(f"{k} {v}" for k, v in (run["versions"] or {}).items()),
            ]
        )
    first = report.models[0].results
    difficulty = first["scoring"]["difficulty"]
    lead = (
        f"Scored by speech-robust-bench {first['software']['speech-robust-bench']}; normaliser "
        f"{first['scoring']['normaliser']}; difficulty table {difficulty['name']} (sha256 {difficulty['sha256'][:12]})"
        f"; {first['options']['replicates']} bootstrap replicates."
    )
    heads = ["model", "spec", "revision", "options", "configs", "versions"]
    hashes = [[c, e["content_sha256"] or "", e["rows"]] for c, e in _configs(report).items()]
    details = tag(
        "details", tag("summary", "Data"), table(["config", "content sha256", "clips"], hashes, class_="mono")
    )
    return section("provenance", "Provenance", lead, table(heads, rows), details)


def _configs(report: Report) -> dict[str, Json]:
    configs: dict[str, Json] = {}
    for model in report.models:
        configs |= all_entries(model.results)
    return dict(sorted(configs.items()))
