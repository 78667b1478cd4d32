"""Options of the API beyond the everyday keywords; each field is also a flag of the command line."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Literal

from speech_robust_bench.core.options import Options, above, at_least, option
from speech_robust_bench.models.interface import RunMode

Place = str | os.PathLike
Folder = Place | None


@dataclass(frozen=True)
class ScenarioOptions(Options):
    """Where noises, rooms and scenarios come from when a clip is perturbed."""

    noise_dir: Folder = option(
        None,
        "noise recordings: MS-SNSD, ESC-50, MUSAN, WHAM!, a folder that holds them, or any audio",
        metavar="FOLDER",
    )
    rir_dir: Folder = option(
        None, "room impulse responses: OpenSLR-28 (RIRS_NOISES) or any folder of them", metavar="FOLDER"
    )
    scenario_file: Folder = option(
        None, "YAML file with scenarios of your own (audiomentations transforms)", metavar="FILE"
    )


@dataclass(frozen=True)
class DataOptions(ScenarioOptions):
    """Also the voice of synthetic speech, and what to do about bad clips and links."""

    tts: str | None = option(
        None, "engine of the *_tts configs: espeak, flite, yourtts, bark, mms, hf:MODEL", metavar="ENGINE"
    )
    on_error: Literal["stop", "skip"] = option(
        "stop", "stop at bad clips, or skip them", choices=("stop", "skip"), advanced=True
    )
    follow_links: bool = option(False, "follow links in a corpus to files outside of it", advanced=True)


@dataclass(frozen=True)
class ModelOptions(Options):
    """How a recogniser is loaded and run, and on which part of the benchmark."""

    name: str | None = option(None, "name of the model in tables, and of its folder (default: from --model)")
    suite: str | None = option(
        None,
        "suite to run instead of configs (`srb ls --suite` lists them), or a file of `srb anchors`",
        metavar="NAME",
    )
    env: list[str] | tuple[str, ...] = option(
        (), "run the model in a separate environment with REQ installed", metavar="REQ", repeat=True, advanced=True
    )
    batch_size: int | None = option(
        None, "clips per batch (default: the adapter's)", metavar="N", check=at_least(1), advanced=True
    )
    device: str | None = option(None, "device of the model, if the adapter has a choice: cpu, cuda, cuda:1")
    pay: bool = option(False, "run a paid endpoint even if it costs more than $1", advanced=True)
    perturb_workers: int | None = option(
        None,
        "processes that perturb clips (default: one less than the number of cores, at most 4)",
        metavar="N",
        check=at_least(1),
        advanced=True,
    )


@dataclass(frozen=True)
class RunOptions(ModelOptions):
    """How to run: name, batches, workers, suite, when to stop, and in which mode."""

    until: float | None = option(
        None,
        "run until the 95 % interval of the average NWERD is narrower than POINTS; adds clips where they help most",
        metavar="POINTS",
        check=above(0, math.inf),
        advanced=True,
    )
    batch_seconds: float | None = option(
        None, "limit a batch to S seconds of padded audio", metavar="S", check=above(0), advanced=True
    )
    retry_failed: bool = option(False, "retry the clips that failed before", advanced=True)
    engine: Literal["local", "ray"] = option(
        "local", "ray spreads the configs over a cluster", choices=("local", "ray"), advanced=True
    )
    workers: int | None = option(
        None,
        "with --engine ray: number of models (default: one per GPU, or per node)",
        metavar="N",
        check=at_least(1),
        advanced=True,
    )
    price_per_hour: float | None = option(
        None,
        "price of an hour of this machine; prints an estimate of hours and cost before the run",
        metavar="USD",
        check=above(0),
        advanced=True,
    )
    rtfx: float | None = option(
        None,
        "speed of the model for the estimate, audio seconds per second (default: that of an earlier run, or measured)",
        metavar="F",
        check=above(0),
        advanced=True,
    )
    mode: RunMode | None = None  # another way to use the model: live, chunk by chunk, with `srb.StreamOptions()`


@dataclass(frozen=True)
class BuildOptions(Options):
    """How configs are built: which split, by how many processes, into which places."""

    all: bool = option(False, "build every config of the corpora given")
    split: Literal["test", "dev"] = option(
        "test",
        "dev: the dev split of LibriSpeech, MLS or TED-LIUM, as en-tedliumdev_...",
        choices=("test", "dev"),
        advanced=True,
    )
    workers: int = option(1, "processes", metavar="N", check=at_least(1))
    engine: Literal["local", "ray"] = option(
        "local", "run on this machine or on a Ray cluster", choices=("local", "ray"), advanced=True
    )
    address: str | None = option(
        None, "address of the Ray cluster; without it, Ray starts on this machine", advanced=True
    )
    overwrite: bool = option(False, "rebuild configs that were built from other inputs")
    secret: str | os.PathLike | None = option(
        None,
        "build a private edition: every random draw also depends on the secret in FILE",
        metavar="FILE",
        advanced=True,
    )
    to_cache: bool = option(
        False,
        'make load_dataset("srb", ...) work from any folder; without --out and ./srb, the cache has the only copy',
    )
    quality: bool = option(False, "add DNSMOS and PESQ columns")
