"""`srb.contamination`: was a model trained on some speech? As `srb contamination` finds out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from speech_robust_bench.builders.corpora import Corpora
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import write_atomically
from speech_robust_bench.core.options import Options, at_least, option
from speech_robust_bench.core.progress import progress as progress_bar
from speech_robust_bench.core.records import to_json
from speech_robust_bench.evaluation import run_folder
from speech_robust_bench.extensions.contamination.collect import ModelFeatures, model_features, open_side
from speech_robust_bench.extensions.contamination.features import (
    ACCESS,
    DRAWS,
    RADII,
    SNRS_DB,
    Access,
    ClipFeatures,
    FeatureSettings,
)
from speech_robust_bench.extensions.contamination.result import (
    FILE,
    Contamination,
    Group,
    compare_with_reference,
    refused,
    separations,
)
from speech_robust_bench.extensions.contamination.separation import Clips
from speech_robust_bench.options import Place

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
