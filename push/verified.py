"""Verified results: what the leaderboard is built from, written by `srb verify --out` and by nothing else.

`<owner>--<model>.json` has the scores that were computed again from the predictions, each as [value, low, high], and
the `.npz` beside it the bootstrap replicates of every row that two models are compared in. All models are resampled
alike (the weights depend on clips, speakers and seed alone), so the replicates' differences have the standard error
that `srb compare` finds, without the predictions. A hash over the content shows an edit by hand.
"""

from __future__ import annotations

import hashlib
import io
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from importlib import metadata
from pathlib import Path

import numpy as np
from msgspec import structs

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import LOCK_FILE, locked, write_atomically
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import Settings, SubmissionRecord, SubmittedModel, to_json
from speech_robust_bench.core.result_records import (
    MEASURES,
    ConfigResults,
    LanguageResults,
    MeanRow,
    Measures,
    NormalisedRates,
    PastVersion,
    RerunRecord,
    ResampledUnits,
    RunResults,
    VerifiedConfig,
    VerifiedLanguage,
    VerifiedModel,
    VerifiedResults,
    digest,
)
from speech_robust_bench.models.interface import check_spec, mode_of, parse_spec
from speech_robust_bench.push.evidence import Fingerprints, copies
from speech_robust_bench.push.leaderboard import verified_files
from speech_robust_bench.push.leaderboard.verified_files import SCHEMA, edition_of
from speech_robust_bench.push.verify import Verdict
from speech_robust_bench.scoring import aggregate, results
from speech_robust_bench.scoring.measures import measures
from speech_robust_bench.scoring.runs import Predictions, Run

LOADS_BY_ID = ("hf", "faster-whisper", "nemo", "speechbrain", "moonshine", "vosk", "pocketsphinx")
_PLAIN = re.compile(r"[A-Za-z0-9_.,/+-]*")  # a target or an option in a command that visitors copy
OTHER_NORMALISERS = ("srb-numbers-1", "open-asr-1")


def write(verdict: Verdict, out: Path, predictions_url: str | None = None) -> Path:
    """Put an accepted submission's results into a folder of verified results.

    A model that is there already keeps its earlier versions in `history/`; the same results again change nothing.
    """
    assert verdict.accepted
    assert verdict.results is not None
    assert verdict.facts is not None
    assert verdict.run is not None
    path = out / f"{stem(verdict.facts.model, edition_of(verdict.results.configs))}.json"
    draws = io.BytesIO()
    np.savez_compressed(draws, **_draws(verdict))  # type: ignore[arg-type]
    command = reproduce_command(verdict.run, verdict.facts.model.name, verdict.results.suite)
    content = compact(verdict.results, verdict.facts, predictions_url, command).replace(
        draws_sha256=hashlib.sha256(draws.getvalue()).hexdigest(),
        error_digests=dict(verdict.fingerprints.digests),
        error_sketches={language: list(sketch) for language, sketch in verdict.fingerprints.sketches.items()},
        by_normaliser=_by_normaliser(verdict),
    )
    with _one_at_a_time(out):
        _replace(path, _flagged(content, verdict, list(_entries(out, path))), draws.getvalue())
    return path


def _one_at_a_time(out: Path) -> AbstractContextManager[None]:
    """Two copies that are verified at the same time see each other, and no version is lost."""
    return locked(out / LOCK_FILE, "", wait=True)


def _flagged(content: VerifiedResults, verdict: Verdict, others: Sequence[VerifiedResults]) -> VerifiedResults:
    """The results with a note of whose copy the model is, and whose name its owner's could be taken for."""
    name = content.model.full_name
    copied = copies(
        verdict.fingerprints,
        {
            entry.model.full_name: Fingerprints(entry.error_digests or {}, entry.error_sketches or {})
            for entry in others
            if name not in (entry.copy_of or [])  # else a copy would bring the original off the board
            and entry.model.full_name != name  # its results on another edition
        },
    )
    known = {entry.model.owner for entry in others}  # not what they link to, which anybody may name
    mistaken = [
        f"its {what} '{account}' could be taken for '{other}'"
        for account, what in _accounts(content.model).items()
        for other in sorted(known - {account})
        if skeleton(other) == skeleton(account)
    ]
    return content.replace(copy_of=list(copied), flags=[*verdict.flags, *copied.values(), *mistaken])


def _accounts(model: VerifiedModel) -> dict[str, str]:
    """The names that a visitor takes for somebody: whose model it is, and whose repository is linked."""
    repository = (model.id or "").partition("/")[0]
    return {**({repository: "repository's owner"} if repository else {}), model.owner: "owner"}


def skeleton(name: str) -> str:
    """What a name looks like at a glance: two names with the same skeleton can be taken for each other.

    >>> skeleton("0penAI") == skeleton("open-ai"), skeleton("rnozilla") == skeleton("mozilla")
    (True, True)
    """
    plain = re.sub(r"[._-]", "", name.lower().replace("rn", "m").replace("vv", "w").replace("cl", "d"))
    return plain.translate(str.maketrans("012589il", "olzsbgll"))


def _replace(path: Path, content: VerifiedResults, draws: bytes) -> None:
    """Put a new version in the place of the one before, unless they say the same.

    All that is new is complete, and the one before is in `history/`, when the model's file is renamed into place. So
    whatever happens on the way, one of the two is on the board.
    """
    before = _previous(path)
    if before:
        content = content.replace(predictions=content.predictions or before.predictions)
        if before.replace(version=None, history=None, sha256=None, rerun=None) == content:
            return
    version = (before.version or 1) if before else 0
    history = [*(before.history or []), _past(before)] if before else []
    data = _sealed(content.replace(version=version + 1, history=history))
    verified_files.parse(data, path.name)
    old = verified_files.draws_path(path, before) if before else None
    new = path.with_name(f"{path.stem}--{content.draws_sha256[:16]}.npz")
    write_atomically(new, draws)
    if old:
        _keep(path, old, version)
    write_atomically(path, data)
    if old and old != new:
        old.unlink(missing_ok=True)


def stem(model: SubmittedModel, edition: str = "") -> str:
    """The name of a model's files: `<owner>--<name>`, on a private edition `<owner>--<name>--<edition>`."""
    return "--".join([model.owner, model.name, *([edition] if edition else [])])


def add_rerun(path: Path, rerun: RerunRecord) -> None:
    """Note in a verified file that a sample was transcribed again, and the result."""
    with _one_at_a_time(path.parent):
        write_atomically(path, _sealed(verified_files.read(path).replace(rerun=rerun)))


def _sealed(content: VerifiedResults) -> bytes:
    """The text of a verified file, with the hash that shows an edit."""
    content = content.replace(sha256=None)
    return to_json(content.replace(sha256=digest(content.as_json())))


def _entries(out: Path, but: Path) -> Iterator[VerifiedResults]:
    """The other verified files; one that cannot be read is no evidence."""
    for path in sorted(out.glob("*.json")):
        if path != but:
            with suppress(UserError):
                yield verified_files.read(path)


def _previous(path: Path) -> VerifiedResults | None:
    return verified_files.read(path) if path.is_file() else None


def _past(before: VerifiedResults) -> PastVersion:
    """What the model's page says of an earlier version."""
    return PastVersion(
        version=before.version or 1,
        revision=before.revision,
        verified_with=before.verified_with,
        benchmark_version=before.benchmark_version,
        nwerd={language: rows.overall.get("nwerd") for language, rows in before.languages.items()},
        sha256=before.sha256,
    )


def _keep(path: Path, draws: Path, version: int) -> None:
    """Copy a version to `history/`."""
    history = path.parent / "history"
    history.mkdir(exist_ok=True)
    for source, suffix in ((path, ".json"), (draws, ".npz")):
        if source.is_file():
            write_atomically(history / f"{path.stem}--{version}{suffix}", source.read_bytes())


def compact(
    result: RunResults, facts: SubmissionRecord, predictions_url: str | None, reproduce: str = ""
) -> VerifiedResults:
    """What the leaderboard shows of a results file."""
    return VerifiedResults(
        schema=SCHEMA,
        model=VerifiedModel(**structs.asdict(facts.model)),
        reproduce=reproduce,
        predictions=predictions_url,
        verified_with=metadata.version("speech-robust-bench"),
        benchmark_version=facts.benchmark_version,
        scoring=result.scoring,
        revision=result.run.revision,
        suite=result.suite,
        failed=result.failed,
        rtf=result.speed.rtf,
        languages={
            language: VerifiedLanguage(
                clean={config: _measures(row) for config, row in rows.clean.items()},
                categories={category: _measures(row) for category, row in rows.categories.items()},
                overall=_measures(rows.overall),
                median=_measures(rows.median),
                adversarial=_measures(rows.adversarial),
                categories_missing=len(rows.overall.missing),
                resampled=_resampled(rows),
            )
            for language, rows in result.languages.items()
        },
        configs={config: _config(entry) for config, entry in result.configs.items()},
        reject={config: entry.words_per_minute for config, entry in result.reject.items()},
    )


def _resampled(rows: LanguageResults) -> dict[str, ResampledUnits]:
    """What the intervals of the rows that are compared are over."""
    named = {**rows.categories, "overall": rows.overall, "adversarial": rows.adversarial}
    return {name: row.resampled for name, row in named.items() if row.resampled}


def reproduce_command(run: Run, name: str, suite: str | None) -> str:
    """The command that makes the predictions again, for visitors to copy; empty if there is none that may be shown.

    It is put together from checked parts, never from the text that was sent: an adapter that loads a published model by
    its id and runs no code of it, that id, and options without characters that a shell knows.
    """
    try:
        spec = parse_spec(run.about.spec or "")
        check_spec(spec)
    except UserError:
        return ""
    words = [spec.target, *spec.options, *spec.options.values()]
    if spec.adapter not in LOADS_BY_ID or "trust_remote_code" in spec.options or not all(map(_PLAIN.fullmatch, words)):
        return ""
    languages = sorted({parse(config).language for config in run.configs})
    what = f"--suite {suite.rpartition('-')[0]}" if suite else " ".join(f"'{language}*_*'" for language in languages)
    mode = mode_of(run.about.options or {})
    options = f"--name {name}{mode.flags if mode else ''}"
    return f"srb run --model {shlex.quote(str(spec))} {what} --data ORG/srb {options} && srb score runs/{name}"


def _config(entry: ConfigResults) -> VerifiedConfig:
    return VerifiedConfig(
        **{**entry.facts, **_measures(entry)},
        scenario_version=entry.scenario_version,
        clean_wer=entry.clean_wer,
        difficulty=entry.difficulty,
        bank=entry.bank,
        stand_in=entry.stand_in,
        empty=entry.empty,
        utterances=entry.utterances,
        measures=_kept_measures(entry),
        attack=entry.attack or None,
    )


def _measures(row: MeanRow | ConfigResults) -> Measures:
    """Each measure as [value, low, high], in hundredths: what a table or a chart can show."""
    scores = {measure: score for measure in MEASURES if (score := row.score(measure))}
    return {
        measure: [round(value, 2) for value in (score.value, *(score.interval or ()))]
        for measure, score in scores.items()
    }


def _kept_measures(entry: ConfigResults) -> Settings | None:
    """The records of the measures that the leaderboard shows."""
    records = {name: each.of(entry) for name, each in measures().items() if each.verified}
    return {name: _in_short(record.as_json()) for name, record in records.items() if record} or None


def _in_short(measures: object) -> object:
    """Numbers to the fourth place after the point."""
    if isinstance(measures, dict):
        return {key: _in_short(value) for key, value in measures.items()}
    if isinstance(measures, list):
        return [_in_short(value) for value in measures]
    return round(measures, 4) if isinstance(measures, float) else measures


def _by_normaliser(verdict: Verdict) -> dict[str, dict[str, NormalisedRates]]:
    """Clean WER and average NWERD in each language by the other normalisers, where they and their packages apply.

    A model that writes "8 4 7" for "eight four seven" looks different by each: the difference says how it writes.
    """
    assert verdict.run is not None
    counts: dict[str, list[aggregate.ConfigCounts]] = {normaliser: [] for normaliser in OTHER_NORMALISERS}
    for predictions in _with_references(verdict.run):
        for normaliser in list(counts):
            try:
                counts[normaliser].append(predictions.count(normaliser, errors_only=True))
            except UserError:  # a package that is not there, or a language that it does not know
                del counts[normaliser]
    return {normaliser: _rates(verdict.run, own) for normaliser, own in counts.items()}


def _rates(run: Run, counts: Sequence[aggregate.ConfigCounts]) -> dict[str, NormalisedRates]:
    own = results.own_scores(run, aggregate.score(counts, replicates=0, floor=results.ScoreOptions().floor))
    return {
        language: NormalisedRates(
            clean=_mean_wer(summary.clean.values()), nwerd=_rounded(summary.overall.values.get("nwerd"))
        )
        for language, summary in aggregate.summarise(own).items()
    }


def _with_references(run: Run) -> Iterator[Predictions]:
    """What was written for clips with speech of which it is known what was said, one config in memory at a time."""
    speech = (p for p in map(run.read, run.configs) if p.entry.category != results.REJECT)
    return (own for predictions in speech if (own := predictions.transcribed).lines)


def _mean_wer(rows: Iterable[aggregate.Mean]) -> float | None:
    values = [row.values["wer"] for row in rows if "wer" in row.values]
    return _rounded(sum(values) / len(values)) if values else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def _draws(verdict: Verdict) -> dict[str, np.ndarray]:
    """The replicates of every row that models are compared in, by language, row and measure."""
    assert verdict.run is not None
    options = results.ScoreOptions()
    counts = [predictions.count(options.normaliser) for predictions in _with_references(verdict.run)]
    scored = aggregate.score(
        counts, table=options.difficulty, replicates=options.replicates, seed=options.seed, floor=options.floor
    )
    draws: dict[str, np.ndarray] = {}
    for language, summary in aggregate.summarise(results.own_scores(verdict.run, scored)).items():
        rows = {**summary.categories, "overall": summary.overall, "adversarial": summary.adversarial}
        for name, row in rows.items():
            measure = aggregate.measure_of(name)
            if name in ("overall", "adversarial"):
                measure = "nwerd" if name == "overall" else "werd"
            if measure in row.replicates and len(row.replicates[measure]):
                draws[f"{language}/{name}/{measure}"] = row.replicates[measure].astype(np.float32)
    return draws
