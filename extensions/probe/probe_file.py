"""A trained probe as a folder, and `probe:FOLDER`: `probe.json` describes it and its training, `head.safetensors` has
its weights.

The options of the training have s3prl's defaults for OOD-ASR, apart from the early stop, which s3prl does not have.

The frozen encoder is opened again as it was named in training; `upstream` points to it where it has moved. Ranking
probes needs no torch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from speech_robust_bench.core.errors import UserError, did_you_mean, install_hint
from speech_robust_bench.core.files import replacing, write_atomically
from speech_robust_bench.core.options import Options, above, at_least, option
from speech_robust_bench.core.records import Record, Settings, Whole, read
from speech_robust_bench.models.interface import Recogniser, folder_revision, need

BLSTM_LAYERS = {"linear": 0, "small": 1, "medium": 2, "large": 4}
UNITS = 1024


@dataclass(frozen=True, kw_only=True)
class Schedule(Options):
    """The optimisation of a probe."""

    steps: int = option(
        500_000, "training steps at most (default: 500000, as in s3prl)", metavar="N", check=at_least(1)
    )
    batch_size: int = option(16, "clips per step", metavar="N", check=at_least(1))
    seed: int = option(0, "seed of weights, order and masks")
    lr: float = option(1e-4, "learning rate of Adam (default: 0.0001)", check=above(0), advanced=True)
    warmup: int = option(
        0, "steps of linear warm-up (the paper: 8000 for HuBERT Large on SBCSAE)", check=at_least(0), advanced=True
    )
    clip_norm: float = 1.0
    spec_augment: bool = option(True, "do not mask frames in training", advanced=True)
    eval_every: int = option(2_000, "steps between tests", metavar="N", check=at_least(1), advanced=True)
    patience: int = option(
        10, "stop after N tests without a better dev WER", metavar="N", check=at_least(1), advanced=True
    )

    @property
    def settings(self) -> Settings:
        """The settings by name, as `probe.json` has them."""
        return {each.name: getattr(self, each.name) for each in fields(Schedule)}


@dataclass(frozen=True, kw_only=True)
class ProbeOptions(Schedule):
    """The schedule, the width of the head, and the perturbation of training clips."""

    train_augment: list[str] | None = option(
        None,
        "perturb training clips by these scenarios or categories (without any: by all)",
        metavar="SCENARIO",
        bare=[],
    )
    device: str = option("cpu", "cpu, cuda, cuda:1 (default: cpu)")
    revision: str = option("", "commit of the upstream on the Hub", advanced=True)
    units: int = option(UNITS, "units of the head in each direction", metavar="N", advanced=True)
    normalise: bool = option(False, "normalise each layer first, for large encoders", advanced=True)
    save_every: int = option(200, "steps between checkpoints", metavar="N", check=at_least(1), advanced=True)
    held_out: list[str] = option(
        [], "scenarios that --train-augment leaves out for the test", metavar="SCENARIO", advanced=True
    )
    augment_p: float = option(0.5, "share of perturbed clips", metavar="P", advanced=True)
    noise_dir: str | None = option(None, "noise recordings for --train-augment", metavar="FOLDER", advanced=True)
    rir_dir: str | None = option(None, "room impulse responses for --train-augment", metavar="FOLDER", advanced=True)
    cache_features: str | None = option(
        None, "keep the encoder's hidden states on the disk (large)", metavar="FOLDER", advanced=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.augment_p <= 1:
            raise UserError(f"augment_p must be from 0 to 1, not {self.augment_p}")
        if self.held_out and self.train_augment is None:
            raise UserError("held_out leaves scenarios out of train_augment: name what to train on")


@dataclass(frozen=True)
class HeadSettings:
    """The head; `normalise` brings every layer to mean 0 and variance 1 first, as the paper does for large models."""

    size: str = "medium"
    units: int = UNITS
    normalise: bool = False

    def __post_init__(self) -> None:
        if self.size not in BLSTM_LAYERS:
            raise UserError(f"no head '{self.size}'; {did_you_mean(self.size, BLSTM_LAYERS)}")
        if not 1 <= self.units <= 8192:
            raise UserError(f"units must be from 1 to 8192, not {self.units}")


RECORD, WEIGHTS = "probe.json", "head.safetensors"
FORMAT = 1
LARGEST_RECORD = 10_000_000  # bytes


@dataclass(frozen=True)
class ProbeFile:
    """The content of `probe.json`."""

    folder: Path
    about: Settings

    def __getattr__(self, name: str) -> Any:
        try:
            return self.about[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def dev_wer(self) -> float:
        """The best word error rate on the dev set, in percent (of characters where words are not written apart)."""
        return float(self.about["best"]["dev_wer"])


def parsed_upstream(spec: str) -> tuple[str, str, float]:
    """The kind, the model, and the window in seconds if one is given."""
    path, _, option = spec.partition("?")
    kind, _, target = path.partition(":")
    try:
        window_s = float(option.removeprefix("window_s=")) if option.startswith("window_s=") else 0.0
    except ValueError:
        window_s = -1.0
    if option and not 0.1 <= window_s <= 30:
        raise UserError(f"{spec}: the only option is window_s, up to 30 seconds")
    return kind, target, window_s


def upstream_name(spec: str) -> str:
    """The name in tables: `hf:facebook/hubert-base-ls960` -> `hubert-base-ls960`."""
    kind, target, window_s = parsed_upstream(spec)
    last = Path(target).name
    name = last if kind == "hf" else f"{kind}-{last}" if last else kind
    return f"{name}-{window_s:g}s" if window_s else name


class _Upstream(Record, frozen=True, kw_only=True):
    spec: str
    revision: str | None
    layers: Whole
    width: Whole
    stride: Whole


class _Head(Record, frozen=True, kw_only=True):
    size: str
    units: Whole
    normalise: bool


class _Data(Record, frozen=True, kw_only=True):
    corpora: list[str]
    hours: float
    dev_digest: str
    hours_asked: float | None = None


class Evaluation(Record, frozen=True, kw_only=True):
    """The result of a test during training."""

    step: Annotated[int, Meta(ge=0)]
    loss: float | None = None
    dev_wer: float


class _Augmentation(Record, frozen=True, kw_only=True):
    scenarios: list[str]


class _ProbeRecord(Record, frozen=True, kw_only=True):
    """What `probe.json` must hold; the settings of the training, which also stand in it, may be anything."""

    format: Literal[1]
    upstream: _Upstream
    head: _Head
    data: _Data
    best: Evaluation
    language: str
    letters: str
    layer_weights: list[float]
    augment: _Augmentation | None = None


def read_probe(folder: str | Path) -> ProbeFile:
    """The record of a trained probe; any other folder, or an unfinished training, is a UserError."""
    folder = Path(folder)
    path = folder / RECORD
    if not path.is_file():
        begun = (folder / "checkpoint.pt").is_file()
        way_out = "run the same `srb probe train` again to finish it" if begun else "`srb probe train` makes one"
        raise UserError(f"{folder}: {'its training has not ended' if begun else 'is no trained probe'}; {way_out}")
    if path.stat().st_size > LARGEST_RECORD:
        raise UserError(f"{path}: is too large to be a probe's record")
    try:
        read(path, _ProbeRecord)
    except UserError:
        raise UserError(f"{path}: is not a probe's record of format {FORMAT}; train the probe again") from None
    return ProbeFile(folder, json.loads(path.read_bytes()))


def write_record(folder: Path, about: Settings) -> None:
    """Write `probe.json`: from here on the folder is a probe."""
    write_atomically(folder / RECORD, json.dumps({"format": FORMAT, **about}, indent=1, ensure_ascii=False) + "\n")


def write_weights(folder: Path, state: Mapping[str, Any]) -> None:
    """Write the trained weights, which do not include the encoder's."""
    from safetensors.torch import save_file

    with replacing(folder / WEIGHTS) as part:
        save_file({name: value.detach().cpu().contiguous() for name, value in state.items()}, part)


def read_weights(folder: Path) -> Mapping[str, Any]:
    """The trained weights."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(folder / WEIGHTS)
    except (OSError, SafetensorError) as error:
        raise UserError(f"{folder / WEIGHTS}: cannot be read ({error})") from None


def load(target: str, *, device: str = "", batch_size: int = 8, upstream: str = "", threads: int = 0) -> Recogniser:
    """`probe:<folder>`. Without `device` it uses a GPU, if any; `upstream` is another place of the same encoder."""
    torch = need("torch", "probe", install_hint("models"))
    from speech_robust_bench.extensions.probe.head import Letters, Probe, ProbeModel, new_head
    from speech_robust_bench.extensions.probe.upstream import open_upstream

    if not target:
        raise UserError("'probe' needs the folder of a trained probe: probe:probes/hubert")
    if threads:
        torch.set_num_threads(threads)
    probe = read_probe(target)
    place = device or ("cuda" if torch.cuda.is_available() else "cpu")
    named = probe.about["upstream"]
    opened = open_upstream(upstream or named["spec"], place, **_edition(named["revision"]))
    if opened.revision != named["revision"]:
        raise UserError(
            f"probe:{target}: its encoder {opened.spec} is {opened.revision}, not {named['revision']} on which it was "
            "trained; point to that one with ?upstream=hf:FOLDER"
        )
    letters = Letters(probe.letters)
    try:
        head = new_head(HeadSettings(**probe.head), opened, letters)
        head.load_state_dict(read_weights(Path(target)))
    except (RuntimeError, TypeError):
        raise UserError(f"{target}: its weights do not fit its {RECORD}; train the probe again") from None
    augment = (probe.about.get("augment") or {}).get("scenarios")
    return Probe(
        name=Path(target).resolve().name,
        revision=folder_revision(Path(target), (RECORD, WEIGHTS)),
        options={
            "device": place,
            "batch_size": batch_size,
            "upstream": upstream_name(named["spec"]),
            "upstream_revision": named["revision"],
            "head": probe.head,
            "train_hours": probe.data["hours"],
            "train_hours_asked": probe.data.get("hours_asked"),
            "train_corpora": probe.data["corpora"],
            "train_augment": augment,
        },
        batch_size=batch_size,
        model=ProbeModel(opened, head.to(place)).eval(),
        processor=opened.extractor,
        chunk_s=opened.longest_s,
        letters=letters,
    )


def _edition(revision: str | None) -> Settings:
    """The arguments that open the same weights: a commit on the Hub, or the seed of random ones."""
    if seed := re.fullmatch(r"seed (\d+)", revision or ""):
        return {"seed": int(seed[1])}
    return {"revision": revision} if re.fullmatch(r"[0-9a-f]{40}", revision or "") else {}
