"""The card and `eval.yaml` of the published data set: the built folder's card, with the terms of every source.

`eval.yaml` is what makes a dataset on the Hub a benchmark: name, description, and tasks with `id`, `config`, `split`,
which `.eval_results` in a model repository name (huggingface/hub-docs, docs/hub/eval-results.md). That page lists
`evaluation_framework` too, "could be your own": a new benchmark writes its own name and asks for it to be added to the
list in huggingface.js, packages/tasks/src/eval.ts, after which the Hub shows the dataset as a benchmark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from speech_robust_bench.builders.dataset_card import TITLE, make_card
from speech_robust_bench.push.licences import LicenceTerms, bank_names, hub_licence

FRAMEWORK = "speech-robust-bench"  # what makes the scores: `srb score`
Manifest = dict[str, Any]


def dataset_card(repo: str, manifests: Sequence[Manifest], terms: Mapping[str, LicenceTerms]) -> str:
    """The README of the dataset repository."""
    import yaml

    card = make_card(list(manifests))
    _, header, body = card.split("---\n", 2)
    about = yaml.safe_load(header)
    about["license"] = hub_licence(licence for each in terms.values() for licence in each.licences)
    if about["license"] == "other":
        about["license_name"] = "per-source"
    body = body.replace('load_dataset("srb"', f'load_dataset("{repo}"')
    before, heading, after = body.partition("## Configs\n")
    attribution = f"## Licences and attribution\n\n{_attribution(manifests, terms)}\n\n"
    header = yaml.safe_dump(about, sort_keys=False, allow_unicode=True)
    return f"---\n{header}---\n{before}{attribution}{heading}{after}"


def _attribution(manifests: Sequence[Manifest], terms: Mapping[str, LicenceTerms]) -> str:
    lines = []
    for corpus in {manifest["corpus"]["name"]: manifest["corpus"] for manifest in manifests}.values():
        note = f" {corpus['note']}" if corpus.get("note") else ""
        lines.append(f"- **{corpus['title']}**, {corpus['licence']}, <{corpus['url']}>: {corpus['citation']}{note}")
    banks = {name: licence for each in terms.values() for name, licence in each.sources.items()}
    for name in sorted({bank for manifest in manifests for bank in bank_names(manifest)}):
        lines.append(f"- **{name}** (noises, music or rooms), {banks[name]}")
    lines.append("")
    lines.append(
        "The audio was changed: each config says how. The terms of a source hold for every config made from it."
    )
    shared: dict[str, list[str]] = {}
    for config, each in terms.items():
        for licence in each.share_alike:
            shared.setdefault(licence, []).append(f"`{config}`")
    for licence, configs in sorted(shared.items()):
        lines.append(f"\n**Share alike.** These configs are under {licence}: {', '.join(sorted(configs))}.")
    return "\n".join(lines)


def eval_yaml(manifests: Sequence[Manifest]) -> str:
    """The benchmark's tasks: WER on each config, and the mean NWERD of each language."""
    import yaml

    configs = [manifest["config"] for manifest in manifests]
    first: dict[str, str] = {}  # a mean is over all configs of a language; a task names one, so its clean one
    for manifest in sorted(manifests, key=lambda manifest: manifest["scenario"] != "clean"):
        first.setdefault(f"{manifest['language']}_nwerd", manifest["config"])
    named = [*sorted(first.items()), *((config, config) for config in configs)]
    tasks = [{"id": task, "config": config, "split": "test"} for task, config in named]
    about = {
        "name": TITLE,
        "description": "Word error rate of speech recognisers under noise, rooms, effects, accents and attacks. A task "
        "named after a config is its WER in per cent; <language>_nwerd is the mean normalised WER degradation. Lower "
        "is better. Scored with `srb score`.",
        "evaluation_framework": FRAMEWORK,
        "tasks": tasks,
    }
    return yaml.safe_dump(about, sort_keys=False, allow_unicode=True)
