"""Read what a recogniser heard, `runs/<model>/<config>.jsonl` and `run.json` (see `docs/formats.md`), and count its
errors.

A clip that failed is scored as if nothing was heard: all its words are deleted. How many failed is kept beside the
counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from srb.core.errors import UserError
from srb.core.names import parse
from srb.core.run_files import parse_line, read_run_json
from srb.core.seeding import FIRST_VERSION
from srb.metrics.aggregate import ConfigCounts
from srb.metrics.scenario_facts import RECORDINGS
from srb.metrics.scoring import align

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Predictions:
    """The lines of one config's file, sorted by id, and its entry in `run.json`."""

    config: str
    entry: dict[str, Any]
    lines: list[dict[str, Any]]

    @property
    def failed(self) -> int:
        """How many clips failed."""
        return sum(line.get("pred_text") is None for line in self.lines)

    @property
    def clean(self) -> bool:
        """Whether this is clean speech."""
        return parse(self.config).scenario == "clean"

    def column(self, name: str) -> list[Any]:
        """One value of every line."""
        return [line.get(name) for line in self.lines]

    def count(self, normaliser: str = "srb-paper-1", unit: str | None = None) -> ConfigCounts:
        """Align the predictions; the unit is that of the config's language unless it is given."""
        name = parse(self.config)
        counts = align(
            self.column("text"),
            ["" if text is None else text for text in self.column("pred_text")],
            normaliser=normaliser,
            unit=unit,
            language=name.language,
        )
        category = self.entry.get("category") or name.scenario
        source = self.entry.get("source")
        if name.scenario != "clean" and (source is None or category in RECORDINGS):
            source = source or f"{name.language}_clean"
        version = str(self.entry.get("scenario_version", FIRST_VERSION))
        return ConfigCounts(self.config, category, self.column("id"), counts, source, self.column("speaker"), version)


@dataclass(frozen=True)
class Run:
    """A run folder: the model's name, `run.json`, and the finished configs."""

    folder: Path
    model: str
    about: dict[str, Any]
    configs: tuple[str, ...]

    def read(self, config: str) -> Predictions:
        """The predictions of one config."""
        path = self.folder / f"{config}.jsonl"
        lines = []
        try:
            with open(path, encoding="utf-8") as file:
                for number, text in enumerate(file, 1):
                    lines.append(_parsed(text, number))
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror}") from None
        except ValueError as error:
            raise UserError(f"{path}: {error}; run the config again with `srb run`") from None
        lines.sort(key=lambda line: line["id"])
        if twice := next((a["id"] for a, b in pairwise(lines) if a["id"] == b["id"]), None):
            raise self._twice(config, twice)
        return Predictions(config, self.about.get("configs", {}).get(config, {}), lines)

    def table(self, config: str, columns: Sequence[str]) -> pa.Table:
        """Some columns of text of one config, sorted by id; three times as fast as `read` and a tenth of its memory."""
        import pyarrow as pa
        from pyarrow import compute, json

        schema = pa.schema([(name, pa.string()) for name in columns])
        how = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
        path = self.folder / f"{config}.jsonl"
        try:
            table = json.read_json(path, json.ReadOptions(use_threads=False), how)
        except (OSError, pa.ArrowInvalid):
            table = None
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

    def counts(self, configs: Iterable[str] | None = None, **how: Any) -> list[ConfigCounts]:
        """The counts of some configs, of all if none is named; `how` goes to `Predictions.count`."""
        return [self.read(config).count(**how) for config in (self.configs if configs is None else configs)]


def _parsed(text: str, number: int) -> dict[str, Any]:
    try:
        return parse_line(text)
    except ValueError as error:
        raise ValueError(f"line {number} {error}") from None


def open_run(folder: str | Path) -> Run:
    """Open a run folder."""
    folder = Path(folder)
    path = folder / "run.json"
    if not path.is_file():
        raise UserError(f"{folder} is not a run folder, it has no run.json; make one with `srb run`")
    about = read_run_json(path)
    configs = tuple(sorted(file.stem for file in folder.glob("*.jsonl")))
    if not configs:
        raise UserError(f"{folder} has no finished config, no *.jsonl; make one with `srb run`")
    return Run(folder, str(about.get("model") or folder.name), about, configs)
