"""A probe that `srb probe train` made: `probe:probes/hubert`.

The frozen encoder is opened again as it was named in training; `upstream` points to it where it has moved.
"""

from __future__ import annotations

import re
from pathlib import Path

from speech_robust_bench.core.errors import UserError, install_hint
from speech_robust_bench.core.options import Settings
from speech_robust_bench.models.interface import Recogniser, folder_revision, need


def load(target: str, *, device: str = "", batch_size: int = 8, upstream: str = "", threads: int = 0) -> Recogniser:
    """`probe:<folder>`. No `device` is a GPU, if any; `upstream` is another place of the same encoder."""
    torch = need("torch", "probe", install_hint("models"))
    from speech_robust_bench.extensions.probe.head import Letters
    from speech_robust_bench.extensions.probe.probe_file import RECORD, WEIGHTS, read_probe, read_weights, upstream_name
    from speech_robust_bench.extensions.probe.recogniser import Probe, ProbeModel
    from speech_robust_bench.extensions.probe.training import HeadSettings, new_head
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
    """What opens the same weights again: a commit on the Hub, or the seed from which random ones were drawn."""
    if seed := re.fullmatch(r"seed (\d+)", revision or ""):
        return {"seed": int(seed[1])}
    return {"revision": revision} if re.fullmatch(r"[0-9a-f]{40}", revision or "") else {}
