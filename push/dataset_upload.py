"""`srb push data`: a built folder to a dataset repository, config by config.

A commit holds whole configs, so that a config is never half there, and the card, which is what `load_dataset` reads,
is written last and lists the configs whose files are all in the repository. Only what changed goes up: files are
compared by hash. An interrupted upload continues, because the Hub keeps what it has received.

The card is that of the built folder, with the terms of every source.
`eval.yaml` is what makes a dataset on the Hub a benchmark: name, description, and tasks with `id`, `config`, `split`,
which `.eval_results` in a model repository name (huggingface/hub-docs, docs/hub/eval-results.md). That page lists
`evaluation_framework` too, "could be your own": a new benchmark writes its own name and asks for it to be added to the
list in huggingface.js, packages/tasks/src/eval.ts, after which the Hub shows the dataset as a benchmark.

A config is made from a corpus and sometimes from a bank of noises or rooms; the terms of each hold for what is made
from it. No derivatives (ND) means that it must stay here; an unknown licence means the same until somebody knows it;
share-alike (SA) goes with the data, and cannot be met together with non-commercial (NC). The corpora's licences are in
the manifests, those of the banks are here; docs/concepts/licences.md says where each was read.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from speech_robust_bench.builders.manifests import (
    MANIFEST,
    TITLE,
    make_card,
    parquet_paths,
    parse_manifest,
    read_manifest,
)
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.records import Manifest
from speech_robust_bench.core.secrets import has_secret, texts, without_folders
from speech_robust_bench.core.untrusted_files import damage_named, row_groups
from speech_robust_bench.push import expected_rows
from speech_robust_bench.push.hub import Hub, Remote, git_blob
from speech_robust_bench.push.model_results import MEANS

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete


BANKS = {
    "built-in bank (synthesised)": "Apache-2.0",
    "MS-SNSD": "CC-BY-SA-3.0",  # its noises are from DEMAND, and CC0 ones from Freesound
    "ESC-50": "CC-BY-NC-3.0",
    "MUSAN (OpenSLR 17)": "CC-BY-4.0",
    "RIRS_NOISES (OpenSLR 28)": "Apache-2.0",
    "WHAM!": "CC-BY-NC-4.0",
}
_UNKNOWN = {"", "unknown", "other", "none", "null", "n/a"}
# The identifiers that the Hub's cards know, of those that occur here.
_HUB = {
    "apache-2.0",
    "mit",
    "cc0-1.0",
    "cc-by-2.0",
    "cc-by-3.0",
    "cc-by-4.0",
    "cc-by-sa-3.0",
    "cc-by-sa-4.0",
    "cc-by-nc-3.0",
    "cc-by-nc-4.0",
    "cc-by-nc-sa-4.0",
}


@dataclass(frozen=True)
class LicenceTerms:
    """What a config is made from, and the licence of each: source -> licence."""

    config: str
    sources: Mapping[str, str]
    forbids_derivatives: bool
    banks: tuple[str, ...] = ()  # those of the sources that are banks

    def refusal(self) -> str | None:
        """Why the config may not be published, None if it may."""
        for source, licence in self.sources.items():
            if is_unknown(licence):
                return f"the licence of {source} is unknown; {self._way_out(source)}"
            if no_derivatives(licence):
                return f"{source} is {licence}, which forbids publishing what is made from it"
        closed = [licence for licence in self.licences if _has("NC", licence)]
        free = [licence for licence in self.share_alike if licence not in closed]
        if closed and free:
            return f"it is made from {free[0]} and {closed[0]}, which cannot both be kept"
        if self.forbids_derivatives:
            return f"{next(iter(self.sources))} forbids publishing what is made from it"
        return None

    def _way_out(self, source: str) -> str:
        if source in self.banks:
            return f"name it with --bank-licence '{source}=LICENCE'"
        return "give every clip one in the column 'licence' of the corpus' manifest, and build the config again"

    @property
    def licences(self) -> list[str]:
        return list(dict.fromkeys(self.sources.values()))

    @property
    def share_alike(self) -> list[str]:
        """The licences under which the config itself must be shared."""
        return [licence for licence in self.licences if _has("SA", licence)]


def bank_names(manifest: Manifest) -> list[str]:
    """The banks that a config was made with: none, one, or, of a chain, several. Rows have the terms of voices."""
    names = manifest.bank.split(" + ") if manifest.bank else []
    return [name for name in names if not name.endswith("text-to-speech)")]


def terms(manifest: Manifest, rows: Iterable[str] = (), banks: Mapping[str, str] | None = None) -> LicenceTerms:
    """The terms of a config: of its corpus, of its rows where they have their own, and of its bank."""
    corpus, own = manifest.corpus, str(manifest.corpus.licence or "")
    others = sorted(set(rows) - {own, *(part.strip() for part in own.split(" AND "))})
    by_clip = is_unknown(own) and bool(others) and own not in rows  # every clip has a licence of its own
    sources = {} if by_clip else {corpus.title: next(filter(is_unknown, others), own)}
    for licence in others:
        name = f"some clips of {corpus.title}" if sources else corpus.title
        sources[f"{name} ({licence})" if name in sources else name] = licence
    names = bank_names(manifest)
    sources |= {bank: {**BANKS, **(banks or {})}.get(bank, "unknown") for bank in names}
    return LicenceTerms(manifest.config, sources, not (corpus.derivatives_allowed or by_clip), tuple(names))


def row_licences(files: Iterable[Path]) -> set[str]:
    """The licences that the rows of a config name."""
    import pyarrow.parquet as pq

    licences: set[str] = set()
    for path in files:
        with damage_named(path):
            if "licence" in pq.read_schema(path).names:
                for table in row_groups(path, ["licence"]):
                    licences |= {str(value or "") for value in table["licence"].unique().to_pylist()}
    return licences


def is_unknown(licence: str) -> bool:
    return licence.strip().lower() in _UNKNOWN


def no_derivatives(licence: str) -> bool:
    """Whether a licence forbids derivatives, as `CC-BY-NC-ND-3.0` does."""
    return _has("ND", licence) or "noderiv" in licence.lower()


def _has(clause: str, licence: str) -> bool:
    return bool(re.search(rf"\b{clause}\b", licence, re.IGNORECASE))


def hub_licence(licences: Iterable[str]) -> str | list[str]:
    """What the card's header says: one identifier, a list of them, or `other` where the Hub has no name for one."""
    parts = sorted({part.strip().lower() for licence in licences for part in licence.split(" AND ")})
    if not parts or not set(parts) <= _HUB:
        return "other"
    return parts[0] if len(parts) == 1 else parts


FRAMEWORK = "speech-robust-bench"  # what makes the scores: `srb score`


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
    for corpus in {manifest.corpus.name: manifest.corpus for manifest in manifests}.values():
        note = f" {corpus.note}" if corpus.note else ""
        lines.append(f"- **{corpus.title}**, {corpus.licence}, <{corpus.url}>: {corpus.citation}{note}")
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
    """The benchmark's tasks: WER on each config, and the mean NWER and NWERD of each language."""
    import yaml

    configs = [manifest.config for manifest in manifests]
    first: dict[str, str] = {}  # a mean is over all configs of a language; a task names one, so its clean one
    for manifest in sorted(manifests, key=lambda manifest: manifest.scenario != "clean"):
        for measure in MEANS:
            first.setdefault(f"{manifest.language}_{measure}", manifest.config)
    named = [*sorted(first.items()), *((config, config) for config in configs)]
    tasks = [{"id": task, "config": config, "split": "test"} for task, config in named]
    about = {
        "name": TITLE,
        "description": "Word error rate of speech recognisers under noise, rooms, effects, accents and attacks. A task "
        "named after a config is its WER in per cent; <language>_nwer is the mean WER over difficulty, which ranks, "
        "and <language>_nwerd the mean normalised WER degradation. Lower is better. Scored with `srb score`.",
        "evaluation_framework": FRAMEWORK,
        "tasks": tasks,
    }
    return yaml.safe_dump(about, sort_keys=False, allow_unicode=True)


KIND = "dataset"
# A commit holds whole configs, and about so much: what the progress bar advances by, and what an error costs.
CONFIGS_PER_COMMIT = 40
BYTES_PER_COMMIT = 500_000_000


@dataclass
class Change:
    """What has to go up for one config: path in the repository -> file here; and what has to go."""

    config: str
    add: dict[str, Path] = field(default_factory=dict)
    delete: list[str] = field(default_factory=list)
    new: bool = False

    @property
    def size(self) -> int:
        return sum(path.stat().st_size for path in self.add.values())

    def __bool__(self) -> bool:
        return bool(self.add or self.delete)


@dataclass
class Plan:
    """What a push would do."""

    repo: str
    revision: str
    manifests: dict[str, Manifest]
    terms: dict[str, LicenceTerms]
    refused: dict[str, str]
    changes: list[Change]

    @property
    def todo(self) -> list[Change]:
        return [change for change in self.changes if change]

    @property
    def size(self) -> int:
        return sum(change.size for change in self.todo)


def choose(folder: Path, patterns: Sequence[str]) -> dict[str, Manifest]:
    """The manifests of the configs that were asked for; no pattern means all."""
    known = {path.parent.name: path for path in sorted(folder.glob(f"*/{MANIFEST}"))}
    if not known:
        raise UserError(f"{folder}: no built config in it (<config>/{MANIFEST}); srb build makes them")
    chosen: dict[str, Path] = {}
    for pattern in patterns or ["*"]:
        matching = fnmatch.filter(known, pattern)
        if not matching:
            from speech_robust_bench.core.errors import did_you_mean

            raise UserError(f"no config '{pattern}' in {folder}; {did_you_mean(pattern, list(known))}")
        chosen.update({name: known[name] for name in matching})
    return {name: _manifest(path) for name, path in chosen.items()}


def _manifest(path: Path) -> Manifest:
    manifest = read_manifest(path.parent)
    content = json.loads(path.read_bytes())  # with keys that the record does not know
    if without_folders(json.dumps(content)) != json.dumps(content):
        raise UserError(f"{path}: names folders of this machine; remove {path.parent} and build the config again")
    if any(map(has_secret, texts(content))):
        raise UserError(f"{path}: holds what looks like a secret key; build the config again without it")
    parquet_paths(path.parent, manifest)
    return manifest


def plan(
    folder: Path,
    repo: str,
    patterns: Sequence[str],
    there: Mapping[str, Remote],
    revision: str = "main",
    banks: Mapping[str, str] | None = None,
) -> Plan:
    """Compare the folder with what the repository holds."""
    manifests = choose(folder, patterns)
    terms_of = {
        name: terms(manifest, row_licences(folder / name / file for file in manifest.files), banks)
        for name, manifest in manifests.items()
    }
    refused = {name: reason for name, each in terms_of.items() if (reason := each.refusal())}
    changes = [_change(folder, manifests[name], there) for name in manifests if name not in refused]
    return Plan(repo, revision, manifests, terms_of, refused, changes)


def _change(folder: Path, manifest: Manifest, there: Mapping[str, Remote]) -> Change:
    name = manifest.config
    wanted = {f"{name}/{file}": folder / name / file for file in (*manifest.files, MANIFEST)}
    known = [path for path in there if path.startswith(f"{name}/")]
    return Change(
        name,
        add={path: local for path, local in wanted.items() if not same(local, there.get(path))},
        delete=[path for path in known if path not in wanted],
        new=not known,
    )


def same(local: Path, remote: Remote | None) -> bool:
    """Whether a file's content is what the repository has."""
    if remote is None or local.stat().st_size != remote.size:
        return False
    if remote.sha256:
        with local.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == remote.sha256
    return git_blob(local.read_bytes()) == remote.blob


def batches(changes: Sequence[Change]) -> list[list[Change]]:
    """Whole configs, as many as a commit takes well."""
    groups: list[list[Change]] = []
    for change in changes:
        last = groups[-1] if groups else []
        full = len(last) >= CONFIGS_PER_COMMIT or sum(c.size for c in last) + change.size > BYTES_PER_COMMIT
        if last and not full:
            last.append(change)
        else:
            groups.append([change])
    return groups


def push(
    hub: Hub,
    plan: Plan,
    folder: Path,
    progress: Callable[[str, int], Callable[[int], None]],
    banks: Mapping[str, str] | None = None,
) -> str:
    """Send what changed, then the card; returns the commit that has it all."""
    advance = progress("uploading", plan.size)
    for group in batches(plan.todo):
        _send(hub, plan, group, advance)
    return _send_card(hub, plan, folder, banks)


def _send(hub: Hub, plan: Plan, group: Sequence[Change], advance: Callable[[int], None]) -> None:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    names = [change.config for change in group]
    # The same operations are uploaded and committed: the client remembers in them what has arrived.
    adds = [
        CommitOperationAdd(path_in_repo=path, path_or_fileobj=local)
        for change in group
        for path, local in change.add.items()
    ]
    gone = [CommitOperationDelete(path_in_repo=path) for change in group for path in change.delete]
    shards = [operation for operation in adds if operation.path_in_repo.endswith(".parquet")]
    hub.ask(
        f"{plan.repo}/{names[0]}",
        lambda: hub.api.preupload_lfs_files(
            plan.repo, shards, repo_type=KIND, revision=plan.revision, num_threads=4, free_memory=False
        ),
    )
    message = f"Add {names[0]}" + (f" and {len(names) - 1} more configs" if len(names) > 1 else "")
    hub.commit(plan.repo, KIND, lambda: [*adds, *gone], message, revision=plan.revision)
    advance(sum(change.size for change in group))


def _send_card(hub: Hub, plan: Plan, folder: Path, banks: Mapping[str, str] | None) -> str:
    """Card, eval.yaml and benchmark.json of what is in the repository now; again if somebody else was faster."""
    from huggingface_hub import CommitOperationAdd

    for attempt in range(3):
        info = hub.info(plan.repo, KIND, plan.revision)
        if info is None:
            raise UserError(f"{plan.repo}: gone from the Hub while it was being written")
        there = hub.files(plan.repo, KIND, info.sha)
        files = _front(hub, plan, folder, there, info.sha, banks)
        changed = {
            path: data for path, data in files.items() if path not in there or there[path].blob != git_blob(data)
        }
        if not changed:
            return str(info.sha)

        def operations(changed: dict[str, bytes] = changed) -> list[CommitOperationAdd | CommitOperationDelete]:
            return [CommitOperationAdd(path_in_repo=path, path_or_fileobj=data) for path, data in changed.items()]

        try:
            return hub.commit(plan.repo, KIND, operations, "Update the card", revision=plan.revision, parent=info.sha)
        except UserError as error:
            if attempt == 2 or "somebody else" not in str(error):
                raise
    raise AssertionError("unreachable")


def _front(
    hub: Hub, plan: Plan, folder: Path, there: Mapping[str, Remote], sha: str, banks: Mapping[str, str] | None
) -> dict[str, bytes]:
    """The files at the top of the repository, of the configs that are complete in it."""
    known: dict[str, expected_rows.Expected] = {}
    if expected_rows.NAME in there:
        known = expected_rows.from_json(hub.read(plan.repo, KIND, expected_rows.NAME, sha))
    manifests: list[Manifest] = []
    expected: dict[str, expected_rows.Expected] = {}
    for path in sorted(there):
        name, _, file = path.partition("/")
        if file != MANIFEST:
            continue
        local = folder / name / MANIFEST
        ours = local.is_file() and same(local, there[path])
        manifest = parse_manifest(local.read_bytes() if ours else hub.read(plan.repo, KIND, path, sha), name)
        if not all(f"{name}/{shard}" in there for shard in manifest.files):
            continue
        manifests.append(manifest)
        fits = name in known and known[name].content_sha256 == manifest.content_sha256
        if name in plan.manifests and name not in plan.refused:
            expected[name] = expected_rows.of_config(folder / name)
        elif fits:
            expected[name] = known[name]
    if not manifests:
        return {}
    terms_of = {
        manifest.config: plan.terms.get(manifest.config) or terms(manifest, (), banks) for manifest in manifests
    }
    return {
        "README.md": dataset_card(plan.repo, manifests, terms_of).encode(),
        "eval.yaml": eval_yaml(manifests).encode(),
        expected_rows.NAME: expected_rows.to_json(expected).encode(),
    }
