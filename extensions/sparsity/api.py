"""`srb.sparsity`: how many directions around a clip are adversarial, as `srb sparsity` measures it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from speech_robust_bench.builders.configs import ClipRow, Config
from speech_robust_bench.builders.corpora import Corpora
from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.core.audio import RATE, Samples
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import write_atomically
from speech_robust_bench.core.options import Options, Settings, above, at_least, option
from speech_robust_bench.core.progress import progress as progress_bar
from speech_robust_bench.core.records import decode, to_json
from speech_robust_bench.data_source import DataSource
from speech_robust_bench.evaluation import recogniser_of, run_folder
from speech_robust_bench.extensions.sparsity.result import CLIPS, FILE, ClipAngles, SparsityFile, summary
from speech_robust_bench.models.interface import open_model
from speech_robust_bench.options import ModelOptions, Place

if TYPE_CHECKING:
    from speech_robust_bench.attacks.views.base import View

SEVERITIES = tuple(SCENARIOS["pgd"].levels)


@dataclass(frozen=True)
class SparsityOptions(Options):
    """How the angles are searched. The defaults are the thesis's."""

    severity: tuple[int, ...] = option(SEVERITIES, "severities of `pgd` (default: all)")
    directions: int = option(100, "random directions per clip", metavar="N", check=at_least(1))
    halvings: int = option(
        10, "steps of the binary search: each halves the error of the angle", check=at_least(1), advanced=True
    )
    steps: int = option(20, "PGD steps in each cap", metavar="N", check=at_least(1))
    step: float = option(0.4, "size of a PGD step, in radii", check=above(0), advanced=True)
    wer: float = option(0.0, "a perturbation is adversarial if the WER to the clean transcript is above K", metavar="K")
    batch_size: int = option(8, "directions per batch", metavar="N", check=at_least(1), advanced=True)
    device: str | None = option(None, "device of the model: cpu, cuda, cuda:1, ...")
    seed: str = option("", "another draw of directions", advanced=True)


def sparsity(
    model: Any,
    config: str,
    *,
    data: Place | None = None,
    corpus: Corpora = None,
    limit: int | None = None,
    out: Place | None = None,
    sparsity_options: SparsityOptions = SparsityOptions(),
    progress: bool = True,
) -> SparsityFile:
    """Measure the angle between random directions and the nearest adversarial perturbation, at the SNRs of `pgd`.

    Args:
        model: "hf:openai/whisper-tiny.en", or another recogniser with gradients.
        config: the clean config around whose clips is searched.
        data, corpus: a built folder, or the corpora from which the config is made.
        limit: only the first clips.
        out: the folder for `sparsity.json` and `sparsity.jsonl` (default: the run folder of the model).
        sparsity_options: directions, halvings and steps of the search.
        progress: show progress.

    Returns:
        `levels`: for each SNR the vulnerable clips and the mean angle in degrees with its interval.
    """
    from speech_robust_bench.attacks.views.open_view import open_view

    options = sparsity_options
    if unknown := set(options.severity) - set(SEVERITIES):
        raise UserError(f"--severity {min(unknown)}: `pgd` has the severities {', '.join(map(str, SEVERITIES))}")
    folder = Path(out) if out else run_folder(model, "runs")
    source = DataSource(corpus, data if data or corpus else "srb", limit, progress=False)
    (chosen,) = source.open(source.select([config]))
    spec, given = recogniser_of(model, ModelOptions())
    recogniser = given or open_model(spec, device=options.device)
    view = open_view(recogniser)
    about: Settings = {"model": recogniser.name, "revision": recogniser.revision, "options": recogniser.options}
    settings = {name: value for name, value in asdict(options).items() if name not in ("severity", "device")}
    stored = _StoredAngles(folder / CLIPS, {**about, "settings": settings, "config": config})
    levels = _measure(view, chosen, limit, options, stored, progress)
    found = [summary(lines, _snr_db(severity), severity) for severity, lines in levels.items()]
    result = SparsityFile(**about, settings=settings, config=config, levels=found)
    write_atomically(folder / FILE, to_json(result, indent=1).decode())
    return result


def _measure(
    view: View, config: Config, limit: int | None, options: SparsityOptions, stored: _StoredAngles, progress: bool
) -> dict[int, list[ClipAngles]]:
    """The angles around every clip, by severity."""
    levels: dict[int, list[ClipAngles]] = {severity: [] for severity in options.severity}
    with progress_bar(not progress) as bar:
        task = bar.add_task(f"directions around {config.name}", total=len(levels) * len(config.rows[:limit]))
        for row, samples in _decoded(config, limit):
            for severity, lines in levels.items():
                if (row.id, severity) not in stored.known:
                    stored.add(clip_angles(view, row, samples, severity, options))
                lines.append(stored.known[row.id, severity])
                bar.advance(task)
    return levels


def clip_angles(view: View, row: ClipRow, samples: Samples, severity: int, options: SparsityOptions) -> ClipAngles:
    """The angles around one clip; the problem, where the model writes nothing or the clip is too long for it."""
    from speech_robust_bench.attacks.clips import AttackClip
    from speech_robust_bench.extensions.sparsity.search import ConeSearch, SearchSettings

    clip = AttackClip(row.id, samples, row.text or "", row.language)
    known = ClipAngles(id=row.id, severity=severity, speaker=row.speaker, angles=[])
    if len(samples) > view.longest_s * RATE:
        return known.replace(problem=f"it is longer than {view.longest_s:g} s")
    view.check([clip])
    (transcript,) = view.transcribe([clip.samples], row.language)
    settings = SearchSettings(
        options.directions, options.halvings, options.steps, options.step, options.wer, options.batch_size, options.seed
    )
    try:
        found = ConeSearch(view, clip, transcript, _snr_db(severity), settings).run()
    except UserError as error:
        return known.replace(problem=str(error))
    return known.replace(angles=list(found.radians), random=found.random)


def _snr_db(severity: int) -> float:
    value = SCENARIOS["pgd"].value(severity)
    assert value is not None
    return float(value)


def _decoded(config: Config, limit: int | None) -> Iterator[tuple[ClipRow, Samples]]:
    for window in config.windows({row.position for row in config.rows[:limit]}):
        for row in window.rows:
            yield row, np.asarray(window.decode(row), np.float32)


class _StoredAngles:
    """Angles by clip and severity in a file with a head that names the model and the settings."""

    def __init__(self, path: Path, head: Settings) -> None:
        self.path = path
        self.known: dict[tuple[str, int], ClipAngles] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        lines: Sequence[bytes] = path.read_bytes().split(b"\n")[:-1] if path.is_file() else []
        if lines and json.loads(lines[0]) == json.loads(json.dumps(head)):
            self.known = {
                (line.id, line.severity): line for line in (decode(line, ClipAngles, path) for line in lines[1:])
            }
        kept = [json.dumps(head) + "\n", *(to_json(line).decode() for line in self.known.values())]
        write_atomically(path, "".join(kept))  # without a torn last line, and without what other settings gave

    def add(self, line: ClipAngles) -> None:
        """Keep the angles around another clip."""
        self.known[line.id, line.severity] = line
        with self.path.open("a", encoding="utf-8") as file:
            file.write(to_json(line).decode())
