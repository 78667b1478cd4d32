"""`srb.load`: a dataset config as a Hugging Face dataset whose rows are perturbed as they are read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

from speech_robust_bench.builders.corpora import Utterance, as_sources
from speech_robust_bench.builders.custom import load_table
from speech_robust_bench.builders.plan import DEMO, Job, clips, job_named
from speech_robust_bench.builders.row_generator import RowGenerator, own_columns
from speech_robust_bench.one_clip import Folder, open_banks

if TYPE_CHECKING:
    import datasets

Corpora = str | os.PathLike | Mapping[str, str | os.PathLike | None] | None


@dataclass(frozen=True)
class LazyRows:
    """Makes rows of one config when they are read; small when pickled, so that workers of a data loader can have it."""

    job: Job
    noise_dir: Folder
    rir_dir: Folder
    decode: bool
    columns: tuple[str, ...] = ()  # of the corpus' own

    def row(self, item: Utterance) -> dict[str, Any]:
        """The row of one clip, its audio as an array or as the bytes that are stored."""
        [row] = RowGenerator((self.job,), open_banks(self.noise_dir, self.rir_dir)).rows(item, item.load())
        made = row.decoded() if self.decode else row.stored()
        return made | {column: made.get(column) for column in self.columns}


@dataclass(frozen=True)
class RowsById:
    """A transform for `Dataset.set_transform`: the rows of the clips whose ids are read."""

    maker: LazyRows
    clips: Mapping[str, Utterance]

    def __call__(self, batch: Mapping[str, Sequence[str]]) -> dict[str, list[Any]]:
        rows = [self.maker.row(self.clips[clip]) for clip in batch["id"]]
        return {column: [row[column] for row in rows] for column in rows[0]} if rows else {}


def _generate(items: Sequence[Utterance], maker: LazyRows) -> Iterator[dict[str, Any]]:
    for item in items:
        yield maker.row(item)


@overload
def load(
    config: str,
    corpus: Corpora = None,
    *,
    streaming: Literal[True] = True,
    decode: bool = True,
    limit: int | None = None,
    noise_dir: Folder = None,
    rir_dir: Folder = None,
    tts: str | None = None,
    scenario_file: Folder = None,
) -> datasets.IterableDataset: ...
@overload
def load(
    config: str,
    corpus: Corpora = None,
    *,
    streaming: Literal[False],
    decode: bool = True,
    limit: int | None = None,
    noise_dir: Folder = None,
    rir_dir: Folder = None,
    tts: str | None = None,
    scenario_file: Folder = None,
) -> datasets.Dataset: ...
def load(
    config: str,
    corpus: Corpora = None,
    *,
    streaming: bool = True,
    decode: bool = True,
    limit: int | None = None,
    noise_dir: Folder = None,
    rir_dir: Folder = None,
    tts: str | None = None,
    scenario_file: Folder = None,
) -> datasets.IterableDataset | datasets.Dataset:
    """A dataset config, perturbed as it is read; every row is that of the config that `srb build` makes, with its hash.

    Args:
        config: a name such as "en_noise_sev3" or "en-mine_rir_sev2".
        corpus: the folder (or "hf:..." dataset) of the config's corpus, or a dict {"en-mine": FOLDER}; the demo corpus
            is built in.
        streaming: a `datasets.IterableDataset`; with False a `datasets.Dataset`, each row perturbed when it is indexed.
        decode: audio as {"array", "sampling_rate", "path"}; with False as {"bytes", "path"}, the FLAC that is stored.
        limit: only the first clips.
        noise_dir, rir_dir, scenario_file: as in `srb.perturb`.
        tts: the engine of `*_tts` configs.
    """
    import datasets

    job = job_named(config, load_table(scenario_file))
    sources = {**DEMO, **as_sources(corpus, job.selection[:2])}
    _, items = clips(job.selection, sources, limit, tts)
    maker = LazyRows(job, noise_dir, rir_dir, decode, own_columns(items))
    if streaming:
        return datasets.IterableDataset.from_generator(_generate, gen_kwargs={"items": items, "maker": maker})
    dataset = datasets.Dataset.from_dict({"id": [item.id for item in items]})
    dataset.set_transform(RowsById(maker, {item.id: item for item in items}))
    return dataset
