"""The dataset card of a built folder: README.md, generated from the manifests of the complete configs.

Its YAML header lists every config with its data files, which is what `load_dataset("srb", "en_noise_sev3")` reads. It
has no `dataset_info`: with hundreds of configs that makes loading several times slower.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from speech_robust_bench.builders.manifests import edition, manifests
from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.core.about import BIBTEX
from speech_robust_bench.core.categories import CATEGORIES
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.escape import for_markdown
from speech_robust_bench.core.files import replacing
from speech_robust_bench.core.records import Manifest

TITLE = "Speech Robust Bench"
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def write_card(out: Path) -> None:
    """Write the card of the configs that are complete in `out`."""
    complete = list(manifests(out).values())
    if complete:
        with replacing(out / "README.md") as part:
            part.write_text(make_card(complete), encoding="utf-8")


def check_card_place(out: Path) -> None:
    """Refuse to write the card over a README.md that is somebody's own."""
    path = out / "README.md"
    if path.exists() and not _is_card(path):
        raise UserError(f"{path}: is no dataset card that `srb build` wrote; use another --out, or move it away")


def _is_card(path: Path) -> bool:
    try:
        with path.open(encoding="utf-8") as file:
            return file.readline() == "---\n" and file.readline() == f"pretty_name: {TITLE}\n"
    except (OSError, UnicodeDecodeError):
        return False


def _parquet_of(manifest: Manifest) -> str:
    return f"{manifest.config}/test-*.parquet"


def make_card(manifests: list[Manifest], files_of: Callable[[Manifest], str] = _parquet_of) -> str:
    """The card's text; `files_of` says where the rows of a config are."""
    import yaml

    header = {
        "pretty_name": TITLE,
        "language": sorted({manifest.language for manifest in manifests}),
        "license": _licence(manifests),
        "task_categories": ["automatic-speech-recognition"],
        "tags": ["robustness", "benchmark", "speech"],
        "size_categories": [_size(sum(manifest.rows for manifest in manifests))],
        "configs": [
            {
                "config_name": manifest.config,
                "data_files": [{"split": "test", "path": files_of(manifest)}],
                "description": f"edition {edition(manifest)}",
            }
            for manifest in manifests
        ],
    }
    parts = [
        f"---\n{yaml.safe_dump(header, sort_keys=False, allow_unicode=True)}---\n",
        f"# {TITLE}\n",
        "How much accuracy does a speech recogniser lose when the world is not clean? Every config is one scenario at "
        "one severity, made from (or compared with) a clean config.\n",
        "```python\nfrom datasets import load_dataset\n\n"
        f'load_dataset("srb", "{manifests[-1].config}", split="test")\n```\n'
        "\nReading a row decodes its audio, which needs `torchcodec` (the extra `[audio]`). The light way is "
        '`.cast_column("audio", datasets.Audio(decode=False))`: each row then has the bytes of a FLAC file, which '
        "`soundfile` reads.\n",
        f"## Sources\n\n{_sources(manifests)}\n",
        f"## Configs\n\n{_configs(manifests)}\n",
        "## How it was made\n\n"
        "Each clip is decoded to mono at 16 kHz, put under the scenario by a pure function, clipped to [-1, 1] and "
        "stored as 16-bit FLAC. The random stream of a clip is a function of the benchmark version "
        f"({manifests[0].benchmark_version}), corpus, clip id, scenario and severity, so anyone can make the same "
        "samples again; the column `sha256` and the manifests' `content_sha256` prove it. A row tells what was drawn "
        "(`parameters`), the SNR reached and how many samples were clipped.\n",
        f"## Citation\n\n```bibtex\n{BIBTEX}```\n",
    ]
    return "\n".join(parts)


def _licence(manifests: list[Manifest]) -> str:
    """The Hub knows one licence or `other`; the table of sources says which is whose."""
    licences = {(manifest.corpus.licence or "").lower() for manifest in manifests}
    only = licences.pop()
    return only if not licences and only and " " not in only else "other"


def _size(rows: int) -> str:
    return next((name for limit, name in SIZES if rows < limit), "n>1M")


def _sources(manifests: list[Manifest]) -> str:
    corpora = {manifest.corpus.name: manifest.corpus for manifest in manifests}
    lines = ["| corpus | licence | where | note |", "|---|---|---|---|"]
    for corpus in corpora.values():
        note = corpus.note or ("" if corpus.derivatives_allowed else "no derivatives: not to be published")
        cells = (corpus.title, corpus.licence, corpus.url, note)
        lines.append(f"| {' | '.join(for_markdown(str(cell)) for cell in cells)} |")
    banks = sorted({for_markdown(manifest.bank) for manifest in manifests if manifest.bank})
    return "\n".join(lines) + (f"\n\nNoises and rooms: {'; '.join(banks)}." if banks else "")


def _configs(manifests: list[Manifest]) -> str:
    lines = ["| config | category | parameters | clips | hours |", "|---|---|---|---|---|"]
    order = list(CATEGORIES)
    for manifest in sorted(manifests, key=lambda item: (order.index(item.category), item.config)):
        value = ", ".join(f"{key} {given}" for key, given in manifest.parameters.items())
        what = value or (SCENARIOS[manifest.scenario].help if manifest.scenario in SCENARIOS else "")
        hours = manifest.seconds / 3600
        lines.append(f"| `{manifest.config}` | {manifest.category} | {what} | {manifest.rows} | {hours:.2f} |")
    return "\n".join(lines)
