"""`srb.train_probe`: what a frozen encoder is worth for recognition, as `srb probe train` finds out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from speech_robust_bench.audio_files import open_banks
from speech_robust_bench.builders.corpora import as_sources
from speech_robust_bench.core.errors import install_hint
from speech_robust_bench.core.progress import tasks
from speech_robust_bench.models.interface import need

Corpora = Mapping[str, str | os.PathLike | None]


def train_probe(
    upstream: str,
    corpus: Corpora,
    out: str | os.PathLike,
    *,
    dev: Corpora | None = None,
    hours: float | None = None,
    head: str = "medium",
    units: int = 1024,
    normalise: bool = False,
    augment: Sequence[str] | None = None,
    held_out: Sequence[str] = (),
    augment_p: float = 0.5,
    noise_dir: str | os.PathLike | None = None,
    rir_dir: str | os.PathLike | None = None,
    cache: str | os.PathLike | None = None,
    device: str = "cpu",
    save_every: int = 200,
    progress: bool = True,
    **schedule: Any,
) -> dict[str, Any]:
    """Train a small head on a frozen encoder; the folder is then a recogniser, `srb.evaluate("probe:FOLDER", ...)`.

    Called again with the same arguments, it continues from its last checkpoint.

    Args:
        upstream: `hf:<id or folder>`, `random:<id or folder>` or `fbank`.
        corpus, dev: {"en": "LibriSpeech/train-clean-100"}; without `dev` a tenth of the clips is kept for it.
        out: the probe's folder.
        hours: learn from a random part of the corpus.
        head, units, normalise: `linear`, `small`, `medium` or `large`; its width; normalise each layer first.
        augment, held_out, augment_p: scenarios or categories that training clips are put under, but not those held out.
        noise_dir, rir_dir: where their noises and rooms come from.
        cache: a folder to keep the encoder's hidden states in.
        schedule: `steps`, `batch_size`, `lr`, `warmup`, `spec_augment`, `eval_every`, `patience`, `seed`.

    Returns:
        The content of `probe.json`: `best` with the dev WER, `layer_weights`, `evaluations` and every setting.
    """
    need("torch", "probe", install_hint("models"))
    from speech_robust_bench.extensions.probe.train_probe import ProbeOptions
    from speech_robust_bench.extensions.probe.train_probe import train_probe as train
    from speech_robust_bench.extensions.probe.training import HeadSettings, Schedule

    options = ProbeOptions(
        upstream,
        as_sources(corpus),
        dev=as_sources(dev) or None,
        hours=hours,
        head=HeadSettings(head, units, normalise),
        schedule=Schedule(**schedule),
        augment=augment,
        held_out=held_out,
        augment_p=augment_p,
        banks=open_banks(noise_dir, rir_dir),
        cache=os.fspath(cache) if cache else None,
        device=device,
        save_every=save_every,
    )
    with tasks(not progress) as show:
        return dict(train(options, os.fspath(out), show).about)


def ablate_probes(
    upstreams: Sequence[str],
    corpus: Corpora,
    out: str | os.PathLike,
    *,
    heads: Sequence[str] = ("medium",),
    hours: Sequence[float] = (),
    **how: Any,
) -> dict[str, Any]:
    """Test whether encoders keep their ranks with other heads and less data.

    Trains every encoder with each head on all data, and with the first head on each number of hours; `how` goes to
    `train_probe`.

    Returns:
        `settings`: for each head and number of hours the dev WER of every encoder, and Spearman's rho with the first.
    """
    need("torch", "probe", install_hint("models"))
    from speech_robust_bench.extensions.probe.probe_file import read_probe
    from speech_robust_bench.extensions.probe.ranking import ablations, rank_upstreams

    probes = ablations(upstreams, heads, hours, os.fspath(out))
    for probe in probes:
        train_probe(probe.upstream, corpus, probe.folder, hours=probe.hours, head=probe.head, **how)
    return rank_upstreams([read_probe(probe.folder) for probe in probes]).as_json()
