"""`srb.front_quality`: PESQ, STOI, SI-SDR and DNSMOS of clips before and after a front end, and its real-time factor.

PESQ (ITU-T P.862.2) and DNSMOS are those of `srb quality`, STOI is Taal et al. 2011 by the `pystoi` package, SI-SDR the
scale-invariant signal-to-distortion ratio of Le Roux et al. 2019, and SI-SDRi its improvement by the front end. The
reference is the clean clip. Scenarios that move the words in time (tempo, speed) have no STOI and SI-SDR.

A clip with two talkers has two references. A separator's outputs are assigned to them in the order with the highest
SI-SDR. SI-SDRi is the mean over both talkers; the other measures are those of the output for the first talker.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Sequence
from itertools import permutations
from pathlib import Path

import numpy as np

from speech_robust_bench.builders.config_sources import StoredSource, open_data
from speech_robust_bench.builders.configs import StoredConfig, category_of
from speech_robust_bench.builders.quality import DNSMOS_COLUMNS, dnsmos, pesq
from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.core.audio import RATE, Samples
from speech_robust_bench.core.errors import UserError, install_hint
from speech_robust_bench.core.files import write_atomically
from speech_robust_bench.core.progress import tasks
from speech_robust_bench.core.records import NULL, Record, Whole, read
from speech_robust_bench.data_source import DataSource
from speech_robust_bench.extensions.front_ends.adapter import fitted, open_chain, talkers_of
from speech_robust_bench.models.interface import Clip, FrontEnd, need
from speech_robust_bench.options import Place
from speech_robust_bench.scoring.scenario_facts import RECORDINGS

MEASURES = ("pesq", "stoi", "si_sdr_db", "si_sdri_db", *DNSMOS_COLUMNS)


class FrontQuality(Record, frozen=True, kw_only=True):
    """The quality of a config's clips after a front end: means over the clips, and the real-time factor."""

    config: str
    clips: Whole
    content_sha256: str | None = NULL
    front: str  # "" for none
    pesq: float | None = NULL
    stoi: float | None = NULL
    si_sdr_db: float | None = NULL
    si_sdri_db: float | None = NULL
    dnsmos_p808: float | None = NULL
    dnsmos_sig: float | None = NULL
    dnsmos_bak: float | None = NULL
    dnsmos_ovrl: float | None = NULL
    rtf: float | None = NULL

    @property
    def measures(self) -> Scores:
        """The measures by name, and the real-time factor."""
        return {name: getattr(self, name) for name in (*MEASURES, "rtf")}

    @property
    def key(self) -> tuple[str, str, int, str | None]:
        """The data and the front end that were measured."""
        return self.config, self.front, self.clips, self.content_sha256


MOST_TALKERS = 6  # outputs of a separator that are tried in every order
SHORTEST_STOI_S = 0.4  # of speech: STOI's windows are 0.384 s long
Scores = dict[str, float | None]
Progress = Callable[[str, int], Callable[[int], None]]


def si_sdr(estimate: Samples, reference: Samples) -> float | None:
    """The scale-invariant SDR in dB; None where either is silent or the estimate is the reference itself.

    >>> round(si_sdr(np.array([2.0, 2.0]), np.array([1.0, 0.0])), 6)
    0.0
    """
    estimate, reference = (np.asarray(signal, np.float64) for signal in (estimate, reference))
    power = float(reference @ reference)
    if power == 0:
        return None
    target = (float(estimate @ reference) / power) * reference
    wanted, rest = float(target @ target), float(np.square(estimate - target).sum())
    return 10 * float(np.log10(wanted / rest)) if wanted > 0 and rest > 0 else None


def assigned(outputs: Samples, references: Sequence[Samples]) -> list[Samples]:
    """The output for each reference, in the order with the highest mean SI-SDR. One output goes with the first."""
    if len(outputs) < len(references):
        return [outputs[0]]

    def mean_si_sdr(order: Sequence[int]) -> float:
        values = (si_sdr(outputs[place], reference) for place, reference in zip(order, references, strict=True))
        return float(np.mean([-np.inf if value is None else value for value in values]))

    best = max(permutations(range(min(len(outputs), MOST_TALKERS)), len(references)), key=mean_si_sdr)
    return [outputs[place] for place in best]


def si_sdri(outputs: Samples, mixed: Samples, references: Sequence[Samples]) -> float | None:
    """The improvement of the SI-SDR over that of the mixture, in dB: the mean over the references."""
    gains = [
        after - before
        for output, reference in zip(assigned(outputs, references), references, strict=False)
        if (after := si_sdr(output, reference)) is not None and (before := si_sdr(mixed, reference)) is not None
    ]
    return float(np.mean(gains)) if gains else None


def stoi(samples: Samples, clean: Samples) -> float | None:
    """Short-time objective intelligibility, about 0 to 1; None for less speech than one of its windows."""
    package = need("pystoi", "quality --front", install_hint("quality"))
    if len(clean) < SHORTEST_STOI_S * RATE or not np.any(clean):
        return None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = float(package.stoi(clean, samples, RATE))
    return None if caught else value  # it warns and gives 1e-5 where there are too few frames of speech


def measured(enhanced: Clip, clip: Clip, references: Sequence[Clip], aligned: bool) -> Scores:
    """All measures of an enhanced clip; DNSMOS alone without a clean clip."""
    scores: Scores = dict.fromkeys(MEASURES)
    outputs = talkers_of(enhanced)
    if not outputs.size:
        return scores
    if not references or not len(references[0]):
        return scores | dnsmos(outputs[0])
    fitting = [fitted(reference, len(clip)) for reference in references]
    samples, clean = (assigned(outputs, fitting) if aligned else outputs)[0], references[0]
    scores |= dnsmos(samples)
    scores["pesq"] = pesq(samples, clean)
    if aligned:
        size = min(len(samples), len(clean))  # a room's tail makes the clip longer
        scores["stoi"] = stoi(samples[:size], clean[:size])
        scores["si_sdr_db"] = si_sdr(samples[:size], clean[:size])
        scores["si_sdri_db"] = si_sdri(outputs, clip, fitting)
    return scores


def front_quality(
    fronts: Sequence[str],
    configs: str | Sequence[str] = (),
    *,
    data: Place = "srb",
    limit: int | None = None,
    out: Place | None = None,
    progress: bool = True,
) -> list[FrontQuality]:
    """Measure the sound quality of built configs before and after front ends: one row per config and front end.

    Args:
        fronts: front ends or chains, such as "wpe+rnnoise". The first row of a config has none.
        configs, data: as in `srb.add_quality`.
        limit: only the first clips of each config.
        out: a JSON file for the rows, written after every config; rows in it are not measured again.
        progress: show progress.
    """
    source = DataSource(data=data, limit=limit)
    names = source.select([configs] if isinstance(configs, str) else list(configs))
    stored, path = open_data(source.where), Path(out) if out else None
    chains = {"": lambda clip, rate: clip, **{name: open_chain(name) for name in fronts}}
    rows = {row.key: row for row in _known_rows(path)}
    wanted = []
    with tasks(not progress) as show:
        for name in names:
            config = stored.config(name)
            facts = FrontQuality(
                config=name,
                clips=len(config.rows[:limit]),
                content_sha256=config.manifest.content_sha256 if config.manifest else None,
                front="",
            )
            of_config = [facts.replace(front=front) for front in chains]
            wanted += of_config
            if missing := [row for row in of_config if row.key not in rows]:
                enhancers = {row.front: chains[row.front] for row in missing}
                measures = _measure_config(stored, config, facts.clips, enhancers, show)
                rows |= {row.key: row.replace(**measures[row.front]) for row in missing}
                if path:
                    write_atomically(path, json.dumps([row.as_json() for row in rows.values()], indent=1) + "\n")
    return [rows[row.key] for row in wanted]


def _measure_config(
    data: StoredSource, config: StoredConfig, count: int, chains: dict[str, FrontEnd], progress: Progress
) -> dict[str, Scores]:
    """The mean measures of the first clips of a config after each front end."""
    references = _references(data, config, [row.id for row in config.rows[:count]])
    tick = progress(f"quality of {config.name}", count * len(chains))
    scenario = SCENARIOS.get(str(config.about.scenario))
    aligned = scenario is None or not scenario.stretches
    scores: dict[str, list[Scores]] = {front: [] for front in chains}
    seconds, spent = 0.0, dict.fromkeys(chains, 0.0)
    for window in config.windows(set(range(count))):
        for row in window.rows:
            if row.position >= count:
                continue
            clip = window.decode(row)
            seconds += len(clip) / RATE
            for front, enhance in chains.items():
                start = time.process_time()
                enhanced = enhance(clip, RATE)
                spent[front] += time.process_time() - start
                scores[front].append(measured(enhanced, clip, references.get(row.id, []), aligned))
                tick(1)
    return {
        front: {
            **{measure: _mean([score[measure] for score in clips]) for measure in MEASURES},
            "rtf": round(spent[front] / seconds, 5) if front and seconds else 0.0,
        }
        for front, clips in scores.items()
    }


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(float(np.mean(known)), 4) if known else None


def _references(data: StoredSource, config: StoredConfig, ids: Sequence[str]) -> dict[str, list[Clip]]:
    """The clean clips that each clip was made from: one, or those of two talkers. Recordings have none."""
    parts = {clip_id: [clip_id] for clip_id in ids}
    scenario = SCENARIOS.get(config.about.scenario or "")
    if scenario and scenario.mix:
        tables = [group.read(["id", "parameters"]).to_pylist() for group in config.groups]
        second = {row["id"]: json.loads(row["parameters"])["second"] for table in tables for row in table}
        parts = {clip_id: [clip_id, second[clip_id]] for clip_id in ids}
    clean = _clean_clips(data, config, {clip for clips in parts.values() for clip in clips})
    if missing := next((clip for clips in parts.values() for clip in clips if clean and clip not in clean), None):
        raise UserError(f"{config.name}: {config.about.source} has no clip '{missing}'; build it whole")
    return {clip_id: [clean[clip] for clip in clips] for clip_id, clips in parts.items() if clean}


def _clean_clips(data: StoredSource, config: StoredConfig, ids: set[str]) -> dict[str, Clip]:
    """The clean clips that a config was made from; none for recordings, which were made from nothing."""
    source = config.name if config.about.scenario == "clean" else config.about.source
    if source != config.name and category_of(config.about.scenario or "") in RECORDINGS:
        return {}
    if source not in data.names():
        raise UserError(f"{config.name}: PESQ, STOI and SI-SDR need {source}; build it too")
    clean = data.config(source)
    wanted = {row.position for row in clean.rows if row.id in ids}
    return {
        row.id: window.decode(row) for window in clean.windows(wanted) for row in window.rows if row.position in wanted
    }


def _known_rows(out: Path | None) -> list[FrontQuality]:
    if out is None or not out.is_file():
        return []
    try:
        return read(out, list[FrontQuality])
    except UserError:
        raise UserError(f"{out}: was not written by `srb quality --front`; name another file") from None
