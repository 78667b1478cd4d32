"""Read what a recogniser wrote (`runs/<model>/<config>.jsonl` and `run.json`) and count its errors.

A clip that failed is scored as an empty transcript: all its words are deleted. How many failed is kept beside the
counts.

Has a run folder been changed since `srb run` wrote it? Compares the predictions with the hashes in `run.json`.

The hashes are no signature: who edits the predictions can edit them too. They show mistakes (a file of another run, a
half-copied folder, a reference put right by hand), and `srb verify` compares with the benchmark itself.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import Prediction, RunConfig, RunRecord, parse_line, read_run_record
from speech_robust_bench.core.result_records import digest
from speech_robust_bench.core.rows import transcripts_digest
from speech_robust_bench.scoring.aggregate import ConfigCounts
from speech_robust_bench.scoring.scenario_facts import RECORDINGS
from speech_robust_bench.scoring.scoring import align

if TYPE_CHECKING:
    import pyarrow as pa


GROUPS = ("gender", "accent", "age")  # of speakers, in every run
ANCHORS = "anchors-"  # how the label of a suite begins whose clips are not to be averaged
MOST_GROUPS = 50  # a column with more values (a chapter, a time), or hardly two clips to one, has no groups


NO_REFERENCES = "none of its clips has a transcript, so there is no WER (docs/how-to/use-my-recordings.md)"


@dataclass(frozen=True)
class Predictions:
    """The lines of one config's file, sorted by id, and its entry in `run.json`."""

    config: str
    entry: RunConfig
    lines: list[Prediction]

    @property
    def failed(self) -> int:
        """How many clips failed."""
        return sum(line.pred_text is None for line in self.lines)

    @property
    def clean(self) -> bool:
        """Whether this is clean speech."""
        return parse(self.config).scenario == "clean"

    def column(self, name: str) -> list[str | None]:
        """What every prediction says in one column."""
        return [line.label(name) for line in self.lines]

    @property
    def references(self) -> list[str]:
        """The reference of each clip; empty where nobody has transcribed it."""
        return [line.text or "" for line in self.lines]

    @property
    def transcripts(self) -> list[str]:
        """What was written for each clip; nothing if it failed."""
        return [line.transcript for line in self.lines]

    @property
    def ids(self) -> list[str]:
        return [line.id for line in self.lines]

    @property
    def labels(self) -> Predictions:
        """What sorts the clips into groups, without texts: all that is needed once they are counted."""
        lines = [
            Prediction(
                id=line.id,
                text=None,
                speaker=line.speaker and sys.intern(line.speaker),
                **{name: getattr(line, name) for name in GROUPS},
                columns=line.columns,
            )
            for line in self.lines
        ]
        return replace(self, lines=lines)

    @property
    def transcribed(self) -> Predictions:
        """The lines whose clips have a reference: those that can have errors."""
        return replace(self, lines=[line for line in self.lines if line.text is not None])

    @property
    def untranscribed(self) -> Predictions:
        """The lines of clips that nobody has transcribed."""
        return replace(self, lines=[line for line in self.lines if line.text is None])

    @property
    def group_columns(self) -> list[str]:
        """The columns that sort clips into groups: those of the speakers, then the corpus' own with few values."""
        return group_columns(self.lines)

    def only(self, column: str, group: str) -> Predictions:
        """The predictions of one group of clips."""
        return replace(self, lines=[line for line in self.lines if line.label(column) == group])

    def count(
        self, normaliser: str = "srb-paper-1", unit: str | None = None, errors_only: bool = False
    ) -> ConfigCounts:
        """Align the predictions that have a reference; the unit is that of the config's language unless it is given."""
        name, own = parse(self.config), self.transcribed
        counts = align(
            own.references,
            own.transcripts,
            normaliser=normaliser,
            unit=unit,
            language=name.language,
            errors_only=errors_only,
        )
        category = self.entry.category or name.scenario
        source = self.entry.source
        if name.scenario != "clean" and (source is None or category in RECORDINGS):
            source = source or f"{name.language}_clean"
        speakers = [line.speaker for line in own.lines]
        version, failed = self.entry.version, own.failed
        return ConfigCounts(self.config, category, own.ids, counts, source, speakers, version, failed)


def group_columns(lines: Iterable[Prediction]) -> list[str]:
    """The columns of some lines that sort clips into groups."""
    clips: dict[str, Counter[str]] = {}
    for line in lines:
        for name, value in (line.columns or {}).items():
            clips.setdefault(name, Counter())[value] += 1
    few = (name for name, groups in clips.items() if len(groups) <= min(MOST_GROUPS, max(2, groups.total() // 2)))
    return [*GROUPS, *sorted(few)]


@dataclass(frozen=True)
class Run:
    """A run folder: the model's name, `run.json`, and the finished configs.

    `group` is a column and one of its values where only the clips of that group are looked at.
    """

    folder: Path
    model: str
    about: RunRecord
    configs: tuple[str, ...]
    group: tuple[str, str] | None = None

    def groups(self, column: str) -> dict[str, Run]:
        """The run for each group that a column sorts its clips into, in alphabetical order."""
        configs: dict[str, list[str]] = {}
        there: set[str] = set(GROUPS)
        for config in self.configs:
            read = self.read(config)
            there.update(read.group_columns)
            for group in {value for value in read.column(column) if value}:
                configs.setdefault(str(group), []).append(config)
        if not configs:
            raise UserError(f"{self.folder} has no column '{column}' that says anything; {did_you_mean(column, there)}")
        if len(configs) > MOST_GROUPS:
            raise UserError(f"'{column}' has {len(configs)} values; a column of groups has at most {MOST_GROUPS}")
        return {g: replace(self, configs=tuple(configs[g]), group=(column, g)) for g in sorted(configs)}

    def read(self, config: str) -> Predictions:
        """The predictions of one config."""
        path = self.folder / f"{config}.jsonl"
        lines = []
        try:
            with open(path, "rb") as file:
                for number, text in enumerate(file, 1):
                    lines.append(_parsed(text, number))
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror}") from None
        except ValueError as error:
            raise UserError(f"{path}: {error}; run the config again with `srb run`") from None
        lines.sort(key=lambda line: line.id)
        if twice := next((a.id for a, b in pairwise(lines) if a.id == b.id), None):
            raise self._twice(config, twice)
        read = Predictions(config, self.about.config(config), lines)
        return read.only(*self.group) if self.group else read

    def table(self, config: str, columns: Sequence[str]) -> pa.Table:
        """Some columns of text of one config, sorted by id; three times as fast as `read` and a tenth of its memory."""
        self.refuse_anchors()
        import pyarrow as pa
        from pyarrow import compute, json

        further = [name for name in columns if name not in ("id", "text", "pred_text")]
        schema = pa.schema([(name, pa.string()) for name in columns])
        if further:  # what is not in the line may be in its `columns`
            schema = schema.append(pa.field("columns", pa.struct([(name, pa.string()) for name in further])))
        how = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
        path = self.folder / f"{config}.jsonl"
        try:
            table = json.read_json(path, json.ReadOptions(use_threads=False), how)
        except (OSError, pa.ArrowInvalid):
            table = None
        if table is not None and "columns" in table.column_names:
            own_values = table["columns"]
            values = {name: compute.coalesce(table[name], compute.struct_field(own_values, name)) for name in further}
            table = pa.table({name: values.get(name, table[name]) for name in columns})
        needed = [name for name in ("id", "text") if name in columns]
        if table is None or any(table[name].null_count for name in needed):  # odd: the other reader knows what to say
            lines = self.read(config)
            try:
                table = pa.table({name: pa.array(lines.column(name), pa.string()) for name in columns})
            except (ValueError, pa.ArrowTypeError) as error:
                raise UserError(f"{path}: {error}; run the config again with `srb run`") from None
        ids = table["id"]
        in_order = compute.all(compute.less(ids[:-1], ids[1:])).as_py()
        if in_order is not False:  # null for a single row
            return table
        table = table.sort_by("id")
        ids = table["id"]
        same = compute.index(compute.equal(ids[:-1], ids[1:]), True).as_py()
        if same >= 0:
            raise self._twice(config, ids[same].as_py())
        return table

    def _twice(self, config: str, clip: str) -> UserError:
        path = self.folder / f"{config}.jsonl"
        return UserError(f"{path}: has '{clip}' twice; run the config again with `srb run`")

    def refuse_anchors(self) -> None:
        """Clips that were chosen where recognisers differ are not to be averaged (`srb anchors`)."""
        if any((self.about.config(config).suite or "").startswith(ANCHORS) for config in self.configs):
            raise UserError(
                f"{self.folder} has anchors, clips that were chosen where recognisers differ, so their mean is no "
                "score; `srb anchors RUN RUN RUN --suite FILE --predict THIS_RUN` says what all clips would say"
            )

    def counts(self, configs: Iterable[str] | None = None, **how: Any) -> list[ConfigCounts]:
        """The counts of some configs, of all if none is named; `how` goes to `Predictions.count`.

        A config without any reference has none.
        """
        self.refuse_anchors()
        reads = (self.read(config).transcribed for config in (self.configs if configs is None else configs))
        counted = [read.count(**how) for read in reads if read.lines]
        if not counted:
            raise UserError(f"{self.folder}: {NO_REFERENCES}")
        return counted


def _parsed(text: bytes, number: int) -> Prediction:
    try:
        return parse_line(text)
    except ValueError as error:
        raise ValueError(f"line {number}: {error}") from None


def open_run(folder: str | Path) -> Run:
    """Open a run folder."""
    folder = Path(folder)
    path = folder / "run.json"
    if not path.is_file():
        raise UserError(f"{folder} is not a run folder, it has no run.json; make one with `srb run`")
    about = read_run_record(path)
    configs = tuple(sorted(file.stem for file in folder.glob("*.jsonl")))
    if not configs:
        raise UserError(f"{folder} has no finished config, no *.jsonl; make one with `srb run`")
    return Run(folder, about.model or folder.name, about, configs)


WAY_OUT = "run it again with `srb run`, or say --allow-changed to take it as it is"


def changes(run: Run) -> list[str]:
    """What is not as `run.json` says, one line for each config."""
    differences = (_change(run, config, run.about.config(config)) for config in run.configs)
    return [line for line in differences if line]


def check_unchanged(run: Run) -> None:
    """Refuse a run whose predictions are not those that `srb run` recorded."""
    if lines := changes(run):
        more = f" (and {len(lines) - 1} more configs)" if len(lines) > 1 else ""
        raise UserError(f"{run.folder}: {lines[0]}{more}; {WAY_OUT}")


def _change(run: Run, config: str, entry: RunConfig) -> str | None:
    data = (run.folder / f"{config}.jsonl").read_bytes()
    recorded = entry.sha256  # not by the first versions
    if recorded == hashlib.sha256(data).hexdigest() or (recorded is None and not entry.rows_sha256):
        return None
    try:
        pairs = [(line.id, line.text) for line in map(parse_line, data.splitlines())]
    except ValueError:
        return f"{config}.jsonl was changed after the run, and has lines that are no predictions"
    if entry.rows is not None and entry.rows != len(pairs):
        return f"{config}.jsonl has {len(pairs)} lines, the run wrote {entry.rows}"
    if entry.rows_sha256 and entry.of == len(pairs) and transcripts_digest(pairs) != entry.rows_sha256:
        return f"{config}.jsonl has other ids or references than the data it was run on"
    return f"{config}.jsonl was changed after the run" if recorded else None


def check_results(path: Path) -> None:
    """Refuse a `results.json` that was edited since `srb score` wrote it."""
    content = json.loads(path.read_bytes())
    if content.get("sha256") != digest(content):
        raise UserError(
            f"{path}: was changed since it was scored; `srb score` makes it again, or say --allow-changed to take it "
            "as it is"
        )
