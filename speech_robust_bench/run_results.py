"""`srb.Results`: everything that is known about a run, as numbers, tables, comparisons and pages.

`srb.read_run` and `srb.score_run`: the results of a run folder. `srb.score`: the error rate of some transcripts.
"""

from __future__ import annotations

import html
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speech_robust_bench.comparison import CompareOptions, Comparisons, compare, difference
from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.core.result_records import MEASURES, ConfigResults, MeanRow, RunResults
from speech_robust_bench.core.rows import RowDict
from speech_robust_bench.report.page import page, write
from speech_robust_bench.report.report_data import gather
from speech_robust_bench.scoring.bootstrap import Units
from speech_robust_bench.scoring.compare import DifferenceRow
from speech_robust_bench.scoring.estimate import ratio
from speech_robust_bench.scoring.measures import Setting, measures, settings
from speech_robust_bench.scoring.results import check_comparable, load, load_groups
from speech_robust_bench.scoring.results import score_run as score_predictions
from speech_robust_bench.scoring.runs import open_run
from speech_robust_bench.scoring.score_options import ScoreOptions
from speech_robust_bench.scoring.scoring import align, check_texts, normalise
from speech_robust_bench.scoring.table1 import (
    Table,
    beyond_table,
    dataset_table,
    group_tables,
    paper_table,
    to_markdown,
    untranscribed_table,
)

if TYPE_CHECKING:
    import jiwer
    import pandas


PlainRow = dict[str, Any]  # a line of a table: column -> text or number
DEFAULT_MEASURES = ("nwerd", "werd", "wer")  # of a row, the first that it has


@dataclass(frozen=True)
class Score:
    """A number in points (per cent) and its interval; `float()` gives the number."""

    name: str
    measure: str
    value: float
    low: float | None = None
    high: float | None = None
    counts: dict[str, int] = field(default_factory=dict, repr=False)  # hits, substitutions, deletions, insertions
    texts: tuple[list[str], list[str]] | None = field(default=None, repr=False, compare=False)  # as they were compared

    def to_jiwer(self) -> jiwer.WordOutput:
        """The words as jiwer's `process_words` gives them, for its `visualize_alignment` and other measures."""
        try:
            import jiwer
        except ImportError:
            raise UserError("to_jiwer needs a package: pip install jiwer") from None
        if self.texts is None:
            raise UserError("only scores of srb.score have texts; this one was read from a run")
        output = jiwer.process_words(*self.texts)
        if (
            output.substitutions + output.deletions + output.insertions
            != sum(self.counts.values()) - self.counts["hits"]
        ):
            raise UserError(
                "jiwer counts words one by one; this score was counted in characters or with free compounds"
            )
        return output

    @property
    def interval(self) -> tuple[float, float] | None:
        """The bounds, None where there are no replicates."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        span = f" [{self.low:.1f}, {self.high:.1f}]" if self.interval else ""
        return f"{self.name} {self.measure.upper()} {self.value:.1f}{span}"


class TextTable(str):
    """A Markdown table: plain text in a terminal, a table in a notebook."""

    def _repr_markdown_(self) -> str:
        return str(self)

    def __repr__(self) -> str:
        return str(self)


class Results:
    """The results of one run. The run folder is like any other: every `srb` command takes it."""

    def __init__(self, folder: Path, *, allow_changed: bool = False, _kept: Any = None) -> None:
        self.folder = folder
        self._kept = _kept  # a temporary folder lives as long as this object
        self.record = load(folder, allow_changed=allow_changed)
        self.json = self.record.as_json()

    @property
    def model(self) -> str:
        """The model's name."""
        return self.record.model

    @property
    def configs(self) -> list[str]:
        """The configs that were run: those with references, without speech, without references."""
        return [config for config, _ in self.record.entries()]

    @property
    def headline(self) -> str:
        """Clean WER, what some measures say beside it, and NWERD, by language."""
        parts = []
        for language, rows in self.record.languages.items():
            clean = [row.wer.value for row in rows.clean.values() if row.wer]
            entries = [self.record.configs[config] for config in rows.clean]
            beside = ""
            for measure in (each for each in measures().values() if each.headline):
                known = [score.value for score in map(measure.of, entries) if score]
                beside += f" / {measure.headline} {sum(known) / len(known):.1f}" if known else ""
            parts += [f"{language} clean WER {sum(clean) / len(clean):.1f}{beside}"] if clean else []
            parts += [f"NWERD {rows.overall.nwerd.value:.1f}"] if rows.overall.nwerd else []
        return ", ".join(parts)

    @property
    def problems(self) -> list[str]:
        """Warnings about the numbers: failed clips, unfinished configs, missing scores."""
        record = self.record
        failed = {config: entry.failed for config, entry in record.entries() if entry.failed}
        lines = [f"{c}: {n} clips failed, scored as if their transcripts were empty" for c, n in failed.items()]
        lines += [f"{config}: not finished; `srb run` goes on with it" for config in record.unfinished]
        lost = {config: e.why["werd"] for config, e in record.configs.items() if "werd" in e.why}
        lines += [f"{config}: no WERD, {why}" for config, why in lost.items()]
        unknown = record.untranscribed or {}
        return lines + [f"{c}: no WER of {entry.rows} clips without a transcript" for c, entry in unknown.items()]

    def to_records(self, groups: str | None = None) -> list[PlainRow]:
        """One dict per config with speech: its origin, its scores and their bounds.

        `groups` is a column that tells groups of clips apart, "gender" or one of the corpus' own: then one a config and
        group.
        """
        if groups is None:
            return self._records(self.record)
        results = load_groups(self.folder, groups)
        return [{groups: group, **record} for group, part in results.items() for record in self._records(part)]

    @staticmethod
    def _records(results: RunResults) -> list[PlainRow]:
        records = []
        for config, entry in results.configs.items():
            keys = ("language", "corpus", "scenario", "severity", "category", "rows", "failed")
            record = {"config": config, **{key: getattr(entry, key) for key in keys}}
            for measure in MEASURES:
                score = entry.score(measure)
                low, high = score.interval if score and score.interval else (None, None)
                record |= {measure: score.value if score else None, f"{measure}_low": low, f"{measure}_high": high}
            for each in measures().values():
                if (own := each.of(entry)) is not None:
                    record |= each.numbers(own)
            records.append(record)
        columns = list(dict.fromkeys(column for record in records for column in record))
        return [{column: record.get(column) for column in columns} for record in records]

    def to_pandas(self, groups: str | None = None) -> pandas.DataFrame:
        """One row per config with speech, or per config and group of the column `groups`."""
        import pandas

        return pandas.DataFrame(self.to_records(groups))

    def measure(self, name: str) -> list[PlainRow]:
        """The numbers of a measure ("streaming", "confidence"): one dict per config that has it, with its WER.

        Intervals are in `results.json["configs"][config]["measures"]`.
        """
        if name not in measures():
            raise UserError(f"no measure '{name}'; {did_you_mean(name, measures())}")
        measure, rows = measures()[name], []
        for config, entry in self.record.entries():
            if (record := measure.of(entry)) is not None:
                wer = getattr(entry, "wer", None)
                rows.append({"config": config, "wer": wer and wer.value, **measure.numbers(record)})
        return rows

    def predictions(self, config: str) -> list[RowDict]:
        """The predictions: one dict per clip, with `text` (the reference) and `pred_text`."""

        if config not in self.configs:
            raise UserError(f"no config '{config}' in this run; {did_you_mean(config, self.configs)}")
        return [line.as_json() for line in open_run(self.folder).read(config).lines]

    def table(self, *others: Results, intervals: bool = False, groups: str | None = None) -> TextTable:
        """The paper's Table 1 for this run and others; below it the categories that the paper does not have.

        `groups`: for each data set ("dataset"), or for each group of clips that a column tells apart ("domain").
        """
        filled = [each.filled() for each in paper_tables([self, *others], groups)]
        return TextTable("\n".join(to_markdown(each, intervals) for each in filled if each.columns))

    def score(self, name: str = "overall", measure: str | None = None, language: str | None = None) -> Score:
        """The score of a config, scenario ("noise"), severity ("noise_sev3"), category ("noise_env") or "overall".

        The measure is NWERD where there is one, else WERD, and WER for clean speech.
        """
        languages = self.record.languages
        if language is None and len(languages) > 1 and name not in self.record.configs:
            raise UserError(f"this run has several languages; say which one: {', '.join(languages)}")
        rows = languages.get(language or next(iter(languages), ""))
        if not rows:
            raise UserError(
                f"no language '{language}' in this run; it has {', '.join(languages) or 'none with speech'}"
            )
        known: dict[str, MeanRow | ConfigResults] = {**rows.categories, **rows.scenarios, **rows.severities}
        known |= {**self.record.configs, "overall": rows.overall, "adversarial": rows.adversarial}
        if rows.clean:
            known.setdefault("clean", next(iter(rows.clean.values())))
        if name not in known:
            raise UserError(f"no score '{name}' in this run; {did_you_mean(name, known)}")
        return _score(name, known[name], measure)

    def compare(self, other: Results, groups: str | None = None, **options: Any) -> Comparisons:
        """Test whether this recogniser is more robust than another; `options` are fields of `srb.CompareOptions`.

        `groups` is a column that tells groups of clips apart; each is then compared by itself.
        """
        return compare(self.folder, other.folder, CompareOptions(groups=groups, **options), progress=False)

    def difference(self, other: Results, **options: Any) -> list[DifferenceRow]:
        """The distance between the transcripts of two recognisers, one dict per config; needs no reference."""
        return difference(self.folder, other.folder, CompareOptions(**options))

    def report(self, path: str | os.PathLike, *others: Results, title: str = "Speech Robust Bench") -> Path:
        """Write the report of this run, and of others beside it, as one self-contained page."""

        return write(gather([run.folder for run in (self, *others)]), Path(path), title)[0]

    def save(self, folder: str | os.PathLike) -> Path:
        """Keep the run folder: predictions, run.json and results.json."""
        place = Path(folder)
        if place.exists() and any(place.iterdir()):
            raise UserError(f"{place}: is there already; name another folder")
        shutil.copytree(self.folder, place, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".locks"))
        return place

    def __repr__(self) -> str:
        clips = sum(entry.rows for _, entry in self.record.entries())
        parts = [f"{self.model}: {len(self.configs)} configs, {clips} clips"]
        for language, rows in self.record.languages.items():
            clean = [row.wer.value for row in rows.clean.values() if row.wer]
            parts += [f"{language} clean WER {sum(clean) / len(clean):.1f}"] if clean else []
            overall = rows.overall.nwerd
            parts += [f"NWERD {overall.value:.1f} over {len(rows.overall.members)} categories"] if overall else []
        failed = self.record.failed
        return f"<Results of {', '.join([*parts, *([f'{failed} clips failed'] if failed else [])])}>"

    def _repr_html_(self) -> str:
        """The report itself, in a frame of its own."""

        content = html.escape(page(gather([self.folder]), self.model), quote=True)
        return f'<iframe srcdoc="{content}" style="width: 100%; height: 640px; border: 1px solid #8886"></iframe>'


def paper_tables(results: Sequence[Results], groups: str | None = None) -> list[Table]:
    """The tables of `srb.table`: the paper's, and those below it that have any cell."""
    records = [result.record for result in results]
    check_comparable(records)
    if groups == "dataset":
        tables = [dataset_table(records)]
    elif groups:
        tables = group_tables([load_groups(result.folder, groups) for result in results])
    else:
        tables = [paper_table(records), beyond_table(records), untranscribed_table(records)]
    tables = [table for table in tables if any(cell for line in table.lines for cell in line.cells)]
    if not tables:
        raise UserError(
            "nothing to show: WERD and NWERD are differences to clean speech, and no run has a scenario together with "
            "its clean config; run that one too (srb run ... en_clean)"
        )
    return tables


def _score(name: str, row: MeanRow | ConfigResults, measure: str | None) -> Score:
    if measure is not None and measure not in MEASURES:
        raise UserError(f"no measure '{measure}'; there are {', '.join(MEASURES)}")
    chosen = measure or next((each for each in DEFAULT_MEASURES if row.score(each)), None)
    score = row.score(chosen) if chosen else None
    if not score:
        why = getattr(row, "why", {}).get(chosen or "nwerd") or "it was not scored"
        raise UserError(f"'{name}' has no {chosen or 'score'}: {why}")
    low, high = score.interval or (None, None)
    return Score(name, str(chosen), score.value, low, high)


def score_run(
    run: str | os.PathLike, score_options: ScoreOptions = ScoreOptions(), *, allow_changed: bool = False
) -> Results:
    """Score a run folder and write its results.json.

    Args:
        run: the folder, `runs/<model>`.
        score_options: normaliser, unit, difficulty table, bootstrap and so on.
        allow_changed: accept predictions that were edited after the run.
    """
    score_predictions(Path(run), score_options, allow_changed=allow_changed)
    return Results(Path(run), allow_changed=allow_changed)


def measure_settings() -> dict[str, Setting]:
    """What measures have to be told: the keys of `ScoreOptions.settings`."""
    return settings()


def read_run(folder: str | os.PathLike, *, allow_changed: bool = False) -> Results:
    """Read the results of a run folder; it is scored first if necessary."""
    return Results(Path(folder), allow_changed=allow_changed)


def score(
    references: Sequence[str] | jiwer.WordOutput,
    predictions: Sequence[str] | None = None,
    *,
    normaliser: str | Callable[[list[str]], Any] | None = None,
    unit: str | None = None,
    language: str | None = None,
    ids: Sequence[str] | None = None,
    speakers: Sequence[str | None] | None = None,
    replicates: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Score:
    """The error rate of some transcripts, with its interval.

    Args:
        references, predictions: texts that pair one to one; or the output of jiwer's `process_words` alone.
        normaliser: "srb-paper-1" (default), "srb-numbers-1", "whisper-en", "none", ...; or a transform of jiwer.
            Without it the words of jiwer's output are compared as they are.
        unit: "word", "char" or "char-nospace"; by default according to the language.
        language: the language of the texts; decides the unit.
        ids: of the utterances; two scores over the same ids and seed are resampled alike.
        speakers: of the utterances; where they are known, the interval is over speakers.
        replicates, level, seed: settings of the bootstrap.
    """
    said, written, rules = _texts(references, predictions, normaliser)
    counts = align(said, written, normaliser=rules, unit=unit, language=language)
    if not len(counts):
        raise UserError("there is nothing to score: references and predictions are empty")
    names = [str(i) for i in range(len(counts))] if ids is None else list(ids)
    low = high = None
    if replicates:
        rate = ratio(Units.of(names, speakers), counts.errors, counts.lengths, replicates=replicates, seed=seed)
        low, high = rate.interval(level) or (None, None)
    said, written = ([normalise(text, rules, language) for text in texts] for texts in (said, written))
    return Score("all", "wer", counts.rate, low, high, counts.totals(), (said, written))


def _texts(references: Any, predictions: Any, normaliser: Any) -> tuple[Sequence[str], Sequence[str], str]:
    """Both sides as texts, and the rules still to be applied to them."""
    if predictions is None:
        if not hasattr(references, "hypotheses"):
            raise UserError("predictions are missing: srb.score(references, predictions)")
        if not hasattr(references, "wer"):
            raise UserError("srb.score takes the output of jiwer's process_words, not that of process_characters")
        references, predictions = (
            [" ".join(words) for words in side] for side in (references.references, references.hypotheses)
        )
        normaliser = normaliser or "none"
    if not callable(normaliser):
        return references, predictions, normaliser or "srb-paper-1"
    return _transformed(references, normaliser), _transformed(predictions, normaliser), "none"


def _transformed(texts: Sequence[str], transform: Callable[[list[str]], Any]) -> list[str]:
    """Texts through a transform of jiwer, which gives sentences, or the words of sentences."""
    check_texts(texts=texts)
    changed = transform(list(texts))
    if isinstance(changed, str) or len(changed) != len(texts):
        raise UserError(f"the normaliser makes something else of {len(texts)} texts; it must give one for each")
    return [text if isinstance(text, str) else " ".join(text) for text in changed]
