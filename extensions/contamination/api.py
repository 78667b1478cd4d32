"""`srb.contamination`: was a model trained on some speech?

The features of all clips of both sides: which clips, what a model does with each, and a file to go on from.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from speech_robust_bench.builders.configs import ClipRow, Config
from speech_robust_bench.builders.corpora import Corpora, as_sources
from speech_robust_bench.core.audio import RATE, Samples
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import write_atomically
from speech_robust_bench.core.names import ConfigName
from speech_robust_bench.core.options import Options, Settings, at_least, option
from speech_robust_bench.core.progress import progress as progress_bar
from speech_robust_bench.core.records import Prediction, decode, to_json
from speech_robust_bench.data_source import DataSource
from speech_robust_bench.evaluation import recogniser_of, run_folder
from speech_robust_bench.extensions.contamination.features import (
    ACCESS,
    DRAWS,
    RADII,
    SNRS_DB,
    Access,
    ClipFeatures,
    Clips,
    FeatureSettings,
    can_mask,
    loss_features,
    masked_feature,
    open_model_view,
    transcript_features,
)
from speech_robust_bench.extensions.contamination.result import (
    FILE,
    Contamination,
    Group,
    compare_with_reference,
    refused,
    separations,
)
from speech_robust_bench.models.interface import Recogniser, open_model
from speech_robust_bench.options import ModelOptions, Place

if TYPE_CHECKING:
    from speech_robust_bench.attacks.views.base import View


@dataclass(frozen=True)
class ClipAudio:
    """A clip, and the same clip with some words masked."""

    suspect: bool
    row: ClipRow
    samples: Samples
    masked: tuple[ClipRow, Samples] | None = None


@dataclass(frozen=True)
class Side:
    """The configs of one side, those with masked words, and the ids of the clips that are used."""

    suspect: bool
    clean: Sequence[Config]
    masked: Sequence[Config]
    chosen: frozenset[str]

    def clips(self) -> Iterator[ClipAudio]:
        """The chosen clips, each with its masked form."""
        for number, config in enumerate(self.clean):
            hidden = {row.id: (row, samples) for row, samples in self._decoded(self.masked[number : number + 1])}
            for row, samples in self._decoded([config]):
                yield ClipAudio(self.suspect, row, samples, hidden.get(row.id))

    def _decoded(self, configs: Sequence[Config]) -> Iterator[tuple[ClipRow, Samples]]:
        for config in configs:
            for window in config.windows({row.position for row in config.rows if row.id in self.chosen}):
                for row in window.rows:
                    yield row, np.asarray(window.decode(row), np.float32)


def open_side(corpora: Corpora, suspect: bool, limit: int | None, masked: bool, seed: int) -> Side:
    """The clips of some corpora, or `limit` of them that are drawn from all."""
    if not corpora:
        flag = "suspects" if suspect else "fresh"
        raise UserError(f"contamination needs --{flag}, as in --{flag} en=LibriSpeech/test-clean")
    source = DataSource(corpus=corpora, progress=False)
    names = [ConfigName(language, "clean", 0, corpus) for language, corpus in as_sources(corpora)]
    clean = source.open([str(name) for name in names])
    ids = [row.id for config in clean for row in config.rows]
    order = sorted(ids, key=lambda clip_id: hashlib.blake2b(f"{seed} {clip_id}".encode()).digest())
    hidden: list[Config] = []
    if masked:
        if not all(can_mask(row.language) for config in clean for row in config.rows[:1]):
            raise UserError("--masked needs English speech and the aligner: pip install pocketsphinx")
        hidden = source.open([str(dataclasses.replace(name, scenario="masked", severity=1)) for name in names])
    return Side(suspect, clean, hidden, frozenset(order[:limit]))


@dataclass(frozen=True)
class ModelFeatures:
    """The features of one model on all clips."""

    name: str
    revision: str | None
    options: Settings
    access: Access
    why: str | None  # it has no losses
    clips: list[ClipFeatures]


def model_features(
    model: Any,
    sides: Sequence[Side],
    path: Path,
    access: Access | None,
    settings: FeatureSettings,
    bar,
    device: str | None,
) -> ModelFeatures:
    """The features of a model; those that its file has already are not computed again."""
    spec, given = recogniser_of(model, ModelOptions())
    recogniser = given or open_model(spec, device=device)
    view, why = open_model_view(recogniser, access)
    if view is None:
        settings = dataclasses.replace(settings, access="transcripts")
    head = {"model": recogniser.name, "revision": recogniser.revision, "options": recogniser.options}
    stored = _StoredFeatures(path, json.loads(json.dumps({**head, "settings": asdict(settings)})))
    task = bar.add_task(f"features of {recogniser.name}", total=sum(len(side.chosen) for side in sides))
    clips = []
    for clip in (clip for side in sides for clip in side.clips()):
        key = (clip.suspect, clip.row.id)
        if key not in stored.known:
            stored.add(clip_features(recogniser, view, settings, clip))
        clips.append(stored.known[key])
        bar.advance(task)
    if given is None:
        recogniser.close()
    return ModelFeatures(recogniser.name, recogniser.revision, recogniser.options, settings.access, why, clips)


def clip_features(
    recogniser: Recogniser, view: View | None, settings: FeatureSettings, clip: ClipAudio
) -> ClipFeatures:
    """The features of one clip; the problem, where it has no transcript or the model no loss of it."""
    row, text = clip.row, str(clip.row.text or "")
    transcript, *masked = _transcripts(recogniser, [clip.samples, *([clip.masked[1]] if clip.masked else [])], row)
    known = ClipFeatures(id=row.id, suspect=clip.suspect, speaker=row.speaker, transcript=transcript, features={})
    if not text.strip():
        return known.replace(problem="it has no transcript")
    values = transcript_features(text, transcript, row.language)
    if clip.masked:
        line = Prediction(id=row.id, text=text, pred_text=masked[0], language=row.language, **clip.masked[0].facts)
        values["masked_written"] = masked_feature(line)
    if view is not None:
        try:
            values |= _losses(view, settings, clip)
        except UserError as error:
            return known.replace(problem=str(error))
    return known.replace(features=values)


def _transcripts(recogniser: Recogniser, versions: list[Samples], row: ClipRow) -> list[str]:
    return [str(recogniser.transcribe([samples], RATE, row.language)[0]).strip() for samples in versions]


def _losses(view: View, settings: FeatureSettings, clip: ClipAudio) -> Mapping[str, float]:
    from speech_robust_bench.attacks.clips import AttackClip

    if len(clip.samples) > view.longest_s * RATE:
        raise UserError(f"it is longer than {view.longest_s:g} s")
    attacked = AttackClip(clip.row.id, clip.samples, str(clip.row.text), clip.row.language)
    view.check([attacked])
    losses = dict(loss_features(view, attacked, settings))
    if not all(np.isfinite(value) for value in losses.values()):
        raise UserError("the loss of its transcript is not finite")
    return losses


class _StoredFeatures:
    """Features by clip in a file with a head that names the model and the settings."""

    def __init__(self, path: Path, head: Settings) -> None:
        self.path = path
        self.known: dict[tuple[bool, str], ClipFeatures] = {}
        lines = path.read_bytes().split(b"\n")[:-1] if path.is_file() else []
        if lines and json.loads(lines[0]) == head:
            clips = [decode(line, ClipFeatures, path) for line in lines[1:]]
            self.known = {(clip.suspect, clip.id): clip for clip in clips}
        kept = [json.dumps(head) + "\n", *(to_json(clip).decode() for clip in self.known.values())]
        write_atomically(path, "".join(kept))  # without a torn last line, and without what other settings gave

    def add(self, clip: ClipFeatures) -> None:
        """Keep the features of another clip."""
        self.known[clip.suspect, clip.id] = clip
        with self.path.open("a", encoding="utf-8") as file:
            file.write(to_json(clip).decode())


SIDES = (True, False)  # whether the clips are suspects


@dataclass(frozen=True)
class ContaminationOptions(Options):
    """Which features are used, and how they are judged. The defaults are the thesis's."""

    access: Access | None = option(
        None,
        "use only its transcripts (black box), also losses (grey), or gradients (white; default: the most that it has)",
        choices=ACCESS,
    )
    snrs: tuple[float, ...] = option(SNRS_DB, "SNRs of the white noise in dB (default: 8 from 0 to 50)", advanced=True)
    draws: int = option(DRAWS, "noises at each SNR", metavar="N", check=at_least(1), advanced=True)
    radii: tuple[float, ...] = option(
        RADII, "L-inf radii of the attack (default: 16 from 0.001 to 0.07)", advanced=True
    )
    masked: bool = option(False, "also mask words of each clip (English; needs pocketsphinx)")
    limit: int | None = option(None, "only N clips of each side, drawn at random", metavar="N", check=at_least(1))
    folds: int = option(5, "folds of the cross-fitted regression", metavar="N", check=at_least(2), advanced=True)
    device: str | None = option(None, "device of the model: cpu, cuda, cuda:1, ...")
    replicates: int = option(1000, "bootstrap replicates", metavar="N", check=at_least(1), advanced=True)
    level: float = 0.95
    seed: int = option(0, "seed of the folds, of the choice of clips and of the bootstrap")


def contamination(
    model: Any,
    suspects: Corpora,
    fresh: Corpora,
    *,
    reference: Any = None,
    out: Place | None = None,
    contamination_options: ContaminationOptions = ContaminationOptions(),
    progress: bool = True,
) -> Contamination:
    """Test whether a model was trained on some speech, by how it treats it beside speech that it cannot have seen.

    Args:
        model: "hf:openai/whisper-tiny.en", any other recogniser, or an object; transcripts alone tell less than losses.
        suspects: {"en": "LibriSpeech/train-clean-100"}.
        fresh: speech that is younger than the model, or was never published; of the same kind if possible.
        reference: a model that has seen neither: what it tells apart lies in the speech, not in the training.
        out: the folder for `contamination.json` and the features (default: the run folder of the model).
        contamination_options: which features are used, and how they are judged.
        progress: show progress.

    Returns:
        `sets`: AUC and hits at 1 % false alarms of each set of features; `suspects`, `fresh`, `reference`.
    """
    options = contamination_options
    folder = Path(out) if out else run_folder(model, "runs")
    folder.mkdir(parents=True, exist_ok=True)
    sides = [
        open_side(corpora, suspect, options.limit, options.masked, options.seed)
        for corpora, suspect in zip((suspects, fresh), SIDES, strict=True)
    ]
    settings = FeatureSettings(
        options.access or "gradients", options.snrs, options.draws, options.radii, options.masked
    )
    models = [model] if reference is None else [model, reference]
    with progress_bar(not progress) as bar:
        found = [
            model_features(each, sides, folder / file, options.access, settings, bar, options.device)
            for each, file in zip(models, ("contamination-model.jsonl", "contamination-reference.jsonl"), strict=False)
        ]
    result = judge(found, options, {True: suspects, False: fresh})
    write_atomically(folder / FILE, to_json(result, indent=1).decode())
    return result


def judge(
    found: Sequence[ModelFeatures], options: ContaminationOptions, corpora: Mapping[bool, Corpora]
) -> Contamination:
    """How well the features of a model, and of a reference model if there is one, tell the sides apart."""
    first, *others = found
    if others and others[0].access != first.access:
        raise UserError(
            f"{first.name} gives {first.access}, {others[0].name} {others[0].access}: compare them by the lesser with "
            f"--access {min(first.access, others[0].access, key=ACCESS.index)}"
        )
    kept = _usable(found)
    clips = Clips.of(
        [f"{clip.suspect} {clip.id}" for clip in kept[0]],
        [clip.speaker for clip in kept[0]],
        [clip.suspect for clip in kept[0]],
        options.folds,
        options.seed,
    )
    own, *other = [separations(each, clips, options.replicates, options.level, options.seed) for each in kept]
    return Contamination(
        model=first.name,
        revision=first.revision,
        options=first.options,
        settings=asdict(options),
        access=first.access,
        why=first.why,
        suspects=_group(corpora[True], True, kept[0], first.clips),
        fresh=_group(corpora[False], False, kept[0], first.clips),
        resampled=clips.units.kind,
        units=clips.fewest_units,
        sets=own.sets,
        reference=compare_with_reference(others[0].name, own, other[0], clips, options.level) if others else None,
        no_verdict=(refused(kept[0]) or None) if first.access == "transcripts" else None,
    )


def _usable(found: Sequence[ModelFeatures]) -> list[list[ClipFeatures]]:
    """The clips of which every model has features."""
    usable = set.intersection(*({key(clip) for clip in each.clips if clip.problem is None} for each in found))
    if len({suspect for suspect, _ in usable}) < len(SIDES):
        refused = sorted({clip.problem for each in found for clip in each.clips if clip.problem})
        raise UserError(f"no clip of one side can be used: {'; '.join(refused[:3]) or 'there are none'}")
    return [[clip for clip in each.clips if key(clip) in usable] for each in found]


def key(clip: ClipFeatures) -> tuple[bool, str]:
    """What names a clip: two corpora may use one id."""
    return clip.suspect, clip.id


def _group(corpora: Corpora, suspect: bool, kept: Sequence[ClipFeatures], found: Sequence[ClipFeatures]) -> Group:
    count, total = (sum(clip.suspect == suspect for clip in clips) for clips in (kept, found))
    sources = [f"{name}={place}" for name, place in corpora.items()] if isinstance(corpora, Mapping) else corpora
    return Group(sources=list(sources or ()), clips=count, left_out=total - count)
