"""A submission: a run folder's predictions and results, with hashes and what the leaderboard says about the model.

One flat folder: `<config>.jsonl` (or `.parquet`, the same packed), `run.json`, `results.json` (docs/concepts/files.md),
and `submission.json`: `schema`, `model` (owner, name, id, params_m, licence, url, training_data),
`benchmark_version`, `software`, `reproduce` (the command), and `files`: name -> sha256 and size. Hashes and scores in
`run.json` and `results.json` are of the `.jsonl`, packed or not.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Container, Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import replacing_folder
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import (
    MODEL_NAME,
    OWNER_NAME,
    RunRecord,
    SubmissionRecord,
    SubmittedModel,
    decode,
    parse_line,
    read,
    to_json,
)
from speech_robust_bench.core.secrets import has_secret, texts, without_folders
from speech_robust_bench.core.seeding import BENCHMARK_VERSION
from speech_robust_bench.models.interface import mode_of
from speech_robust_bench.push import submitted_files
from speech_robust_bench.push.hub import Hub
from speech_robust_bench.push.submitted_files import NAME, file_facts
from speech_robust_bench.scoring import results
from speech_robust_bench.scoring.runs import Run, open_run

SCHEMA: Literal[1] = 1
LOCAL_OWNER = "local"  # of a submission that is never sent
SCANNED = ("model", "spec", "target", "asked", "options", "data")  # of run.json: what a user wrote


def choose(run_folder: str | Path, expected: Container[str]) -> tuple[list[str], list[str]]:
    """The configs of a run to submit, and those that are left out because the benchmark does not have them.

    A model's own adversarial configs belong to it, not to the benchmark; those of another model say nothing about it.
    """
    run = open_run(run_folder)
    own = [config for config in run.configs if parse(config).model in (None, run.folder.name)]
    submitted = [config for config in own if config in expected or parse(config).model]
    if not submitted:
        raise UserError(f"{run.folder}: none of its configs is in the benchmark; run its configs first")
    return submitted, [config for config in own if config not in submitted]


def make(
    run_folder: str | Path,
    out: Path,
    model: Mapping[str, Any],
    configs: Iterable[str] = (),
    parquet: bool = False,
    verified: Callable[[Path], None] = lambda folder: None,
) -> Path:
    """Write the submission of a run into a new folder; scores are computed anew with the leaderboard's options.

    `verified` raises an error if the submission is not to be kept; the folder appears once it has returned.
    """
    run = open_run(run_folder)
    run.refuse_anchors()
    # Another model's adversarial configs say nothing about this one.
    chosen = sorted(configs) or [config for config in run.configs if parse(config).model in (None, run.folder.name)]
    entries = {config: (run.about.configs or {}).get(config) for config in chosen}
    about = run.about.replace(configs=entries, perturbed=None)  # the folders of a machine
    about = decode(without_folders(to_json(about).decode()), RunRecord, run.folder / "run.json")
    name = model.get("name") or run.model
    if not re.fullmatch(MODEL_NAME, name):
        raise UserError(f"'{name}': a model's name here has letters, digits and ._+- (no --); give another with --name")
    owner = model.get("owner") or LOCAL_OWNER
    if not re.fullmatch(OWNER_NAME, owner):
        raise UserError(f"'{owner}': an owner is a user or an organisation of the Hub; give one with --owner")
    if any(has_secret(value) for value in texts({key: getattr(about, key) for key in SCANNED})):
        raise UserError(
            f"{run.folder / 'run.json'}: holds what looks like a secret key; take it out of the file, and do not use "
            "the key again"
        )
    with replacing_folder(out) as part:
        _fill(part, run, about, SubmittedModel(**{**model, "owner": owner, "name": name}), parquet)
        if out.exists() and not _same_submission(out, part):
            raise UserError(f"{out}: is there already, with something else; name another folder with --out")
        verified(part)
    return out


def _same_submission(one: Path, other: Path) -> bool:
    """Whether two folders hold the same submission: the hashes of all other files are in its `submission.json`."""
    return (one / NAME).is_file() and (one / NAME).read_bytes() == (other / NAME).read_bytes()


def _fill(out: Path, run: Run, about: RunRecord, model: SubmittedModel, parquet: bool) -> None:
    """Write the files of a submission into an empty folder."""
    entries = dict(about.configs or {})
    chosen = list(entries)
    for config, entry in entries.items():
        source, copy = run.folder / f"{config}.jsonl", out / f"{config}.jsonl"
        _copy_without_columns(source, copy)
        if entry and entry.sha256 == file_facts(source).sha256:  # an edited file stays one
            entries[config] = entry.replace(sha256=file_facts(copy).sha256)
    about = about.replace(configs=entries, model=model.name, run_name=run.folder.name)
    (out / "run.json").write_bytes(to_json(about, indent=1))
    scored = results.results(open_run(out))
    (out / results.NAME).write_bytes(to_json(scored, indent=1))
    if parquet:
        for config in chosen:
            submitted_files.pack(out / f"{config}.jsonl")
    files = {path.name: file_facts(path) for path in sorted(out.iterdir())}
    record = SubmissionRecord(
        schema=SCHEMA,
        model=model,
        benchmark_version=BENCHMARK_VERSION,
        software={"speech-robust-bench": metadata.version("speech-robust-bench")},
        reproduce=reproduce_command(about, chosen, model.name, scored.suite, run.about.perturbed is not None),
        files=files,
    )
    (out / NAME).write_bytes(to_json(record, indent=1))


def _copy_without_columns(predictions: Path, to: Path) -> None:
    """Predictions without what the corpus says beside SRB's own columns: it may be private, and no score needs it."""
    with predictions.open("rb") as lines, to.open("wb") as out:
        for line in lines:
            if b'"columns": ' in line:
                line = to_json(parse_line(line).replace(columns=None))
            out.write(line)


def reproduce_command(
    about: RunRecord, configs: Iterable[str], name: str, suite: str | None, perturbed: bool = False
) -> str:
    """The command that makes the predictions again from the same data, built or, if `perturbed`, as the run read it."""
    languages = sorted({parse(config).language for config in configs})
    what = f"--suite {suite.rpartition('-')[0]}" if suite else " ".join(f"'{language}*_*'" for language in languages)
    spec, data = shlex.quote(str(about.spec)), str(about.data)
    source = data if perturbed else f"--data {shlex.quote(data)}"  # `data` of a perturbed run: --corpus ...
    mode = mode_of(about.options or {})
    return f"srb run --model {spec} {what} {source} --name {name}{mode.flags if mode else ''} && srb score runs/{name}"


def send(hub: Hub, folder: Path, repo: str) -> str:
    """A pull request with the folder's files under `submissions/<owner>/<model>/`; returns its address."""
    from huggingface_hub import CommitOperationAdd

    name = read(folder / NAME, SubmissionRecord).model.full_name

    def operations() -> list[CommitOperationAdd]:
        paths = sorted(folder.iterdir())
        return [CommitOperationAdd(path_in_repo=f"submissions/{name}/{p.name}", path_or_fileobj=p) for p in paths]

    return hub.pull_request(repo, "dataset", operations, f"Submit {name}")
