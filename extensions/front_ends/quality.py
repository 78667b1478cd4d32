"""What a front end does to the sound: PESQ, STOI, SI-SDR and DNSMOS before and after it, and what it costs.

PESQ (ITU-T P.862.2) and DNSMOS are those of `srb quality`; STOI is Taal et al. 2011 by the `pystoi` package; SI-SDR is
the scale-invariant signal-to-distortion ratio of Le Roux et al. 2019, SI-SDRi what the front end adds to it. The
reference is the clean clip. Where a scenario moves the words in time (tempo, speed) it is no reference for STOI and
SI-SDR, and they are left out.

Where two talk at once, the two clips are the references. Of a separator's streams each is compared with one of them,
whichever way has the higher SI-SDR, and SI-SDRi is the mean over both talkers; the other measures are those of
the stream that goes with the first talker.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np

from speech_robust_bench.builders.config_sources import StoredSource
from speech_robust_bench.builders.configs import category_of
from speech_robust_bench.builders.quality import DNSMOS_COLUMNS, dnsmos, pesq
from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.builders.stored_config import StoredConfig
from speech_robust_bench.core.about import install_hint
from speech_robust_bench.core.audio import RATE, Samples
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import write_atomically
from speech_robust_bench.core.records import NULL, Record, Whole, read
from speech_robust_bench.extensions.front_ends.adapter import open_chain, streams
from speech_robust_bench.extensions.front_ends.rnnoise import fitted
from speech_robust_bench.models.interface import Clip, FrontEnd, need
from speech_robust_bench.scoring.scenario_facts import RECORDINGS

MEASURES = ("pesq", "stoi", "si_sdr_db", "si_sdri_db", *DNSMOS_COLUMNS)


class FrontQuality(Record, frozen=True, kw_only=True):
    """What a front end does to the clips of a config: means over the clips, and the real-time factor."""

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


MeasuredRow = dict[str, Any]  # a `FrontQuality` as JSON holds it
MOST_STREAMS = 6  # of a separator, to be tried in every order
SHORTEST_STOI_S = 0.4  # of speech: STOI's windows are 0.384 s long
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
    """For each reference its stream: of all ways to give each another stream, the one with the highest mean SI-SDR.

    One stream goes with the first reference alone.
    """
    if len(outputs) < len(references):
        return [outputs[0]]

    def mean_si_sdr(order: Sequence[int]) -> float:
        values = (si_sdr(outputs[place], reference) for place, reference in zip(order, references, strict=True))
        return float(np.mean([-np.inf if value is None else value for value in values]))

    best = max(permutations(range(min(len(outputs), MOST_STREAMS)), len(references)), key=mean_si_sdr)
    return [outputs[place] for place in best]


def si_sdri(outputs: Samples, mixed: Samples, references: Sequence[Samples]) -> float | None:
    """How much closer to its reference each stream is than the mixture was, in dB: the mean over the references."""
    gains = [
        after - before
        for stream, reference in zip(assigned(outputs, references), references, strict=False)
        if (after := si_sdr(stream, reference)) is not None and (before := si_sdr(mixed, reference)) is not None
    ]
    return float(np.mean(gains)) if gains else None


def stoi(samples: Samples, clean: Samples) -> float | None:
    """Short-time objective intelligibility, about 0 to 1; None for less speech than one of its windows."""
    package = need("pystoi", "quality --front", install_hint("quality"))
    import warnings

    if len(clean) < SHORTEST_STOI_S * RATE or not np.any(clean):
        return None
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        value = float(package.stoi(clean, samples, RATE))
    return None if told else value  # it warns and gives 1e-5 where there are too few frames of speech


def measured(enhanced: Clip, clip: Clip, references: Sequence[Clip], aligned: bool) -> dict[str, float | None]:
    """All measures of what a front end made of a clip; without a clean clip DNSMOS alone."""
    scores: dict[str, float | None] = dict.fromkeys(MEASURES)
    outputs = streams(enhanced)
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
    data: StoredSource,
    configs: Sequence[str],
    fronts: Sequence[str],
    *,
    limit: int | None = None,
    out: Path | None = None,
    progress: Progress = lambda what, total: lambda count: None,
) -> list[MeasuredRow]:
    """A row for each config and front end, "" for none: the means over clips, and the real-time factor.

    With `out` the rows are written there after every config, and those that are there already are not measured again.
    """
    chains = {"": lambda clip, rate: clip, **{name: open_chain(name) for name in fronts}}
    rows = _known_rows(out)
    done = {(row["config"], row["front"], row["clips"], row["content_sha256"]) for row in rows}
    for name in configs:
        config = data.config(name)
        chosen = config.rows[:limit]
        content = config.manifest and config.manifest.content_sha256
        lacking = [front for front in chains if (name, front, len(chosen), content) not in done]
        if not lacking:
            continue
        references = _references(data, config, [row.id for row in chosen])
        tick = progress(f"quality of {name}", len(chosen) * len(lacking))
        measures = _of_config(config, len(chosen), references, {front: chains[front] for front in lacking}, tick)
        facts = {"config": name, "clips": len(chosen), "content_sha256": content}
        rows += [{**facts, "front": front, **measures[front]} for front in lacking]
        if out:
            write_atomically(out, json.dumps(rows, indent=1) + "\n")
    order = {pair: place for place, pair in enumerate(product(configs, chains))}
    asked = [row for row in rows if (row["config"], row["front"]) in order]
    return sorted(asked, key=lambda row: order[row["config"], row["front"]])


def _of_config(
    config: StoredConfig,
    count: int,
    references: dict[str, list[Clip]],
    chains: dict[str, FrontEnd],
    tick: Callable[[int], None],
) -> dict[str, dict[str, float | None]]:
    scenario = SCENARIOS.get(str(config.about.scenario))
    aligned = scenario is None or not scenario.stretches
    scores: dict[str, list[dict[str, float | None]]] = {front: [] for front in chains}
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
            **{measure: _mean([score[measure] for score in of]) for measure in MEASURES},
            "rtf": round(spent[front] / seconds, 5) if front and seconds else 0.0,
        }
        for front, of in scores.items()
    }


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(float(np.mean(known)), 4) if known else None


def _references(data: StoredSource, config: StoredConfig, ids: Sequence[str]) -> dict[str, list[Clip]]:
    """The clean clips that each clip was made from: one, or those of two talkers; those that are not there are left
    out."""
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


def _known_rows(out: Path | None) -> list[MeasuredRow]:
    if out is None or not out.is_file():
        return []
    try:
        return [row.as_json() for row in read(out, list[FrontQuality])]
    except UserError:
        raise UserError(f"{out}: was not written by `srb quality --front`; name another file") from None
