"""What `run.json` and a line of predictions must look like (docs/formats.md), whoever reads them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.json_shapes import (
    anything,
    dict_of,
    fixed_list,
    integer,
    list_of,
    maybe,
    number,
    object_of,
    read_object,
    text,
    truth,
)

_TEXTS = (
    "language",
    "corpus",
    "scenario",
    "category",
    "source",
    "bank",
    "benchmark_version",
    "suite",
    "scenario_version",
)
_HASHES = ("content_sha256", "rows_sha256", "fingerprint", "sha256")
CONFIG = object_of(
    **dict.fromkeys((*_TEXTS, *_HASHES), maybe(text)),
    **dict.fromkeys(("rows", "of", "failed", "severity"), maybe(integer)),
    **dict.fromkeys(("audio_s", "seconds", "rtf"), maybe(number)),
    rtf_quantiles=maybe(dict_of(number)),
)
_OBJECTS = ("asked", "options", "versions", "machine", "configs")
RUN = object_of(
    **dict.fromkeys(("model", "spec", "adapter", "target", "revision", "data", "updated", "run_name"), maybe(text)),
    **dict.fromkeys(_OBJECTS[:-1], maybe(dict_of(anything))),
    configs=maybe(dict_of(CONFIG)),
)
_EVENT = fixed_list(number, number, text, text)  # time_s, sent_s, text, kind
_STREAM = object_of(
    chunk_ms=integer,
    speed=number,
    realtime=truth,
    took_ms=list_of(number),
    done_ms=maybe(list_of(number)),
    events=list_of(_EVENT),
)
LIVE = object_of(stream=maybe(_STREAM), words=maybe(list_of(fixed_list(text, number, number))))
_COLUMNS = dict_of(text)
# what every line holds
_TEXT, _NUMBER = (str, type(None)), (int, float, type(None))
_LINE: dict[str, Any] = {
    "id": str,
    **dict.fromkeys(("text", "pred_text", "speaker", "gender", "age", "accent", "language", "error", "target"), _TEXT),
    **dict.fromkeys(("duration", "time", "loudness_dbfs"), _NUMBER),
}


def read_run_json(path: Path) -> dict[str, Any]:
    """The content of a `run.json`, without the objects that are null."""
    try:
        about = read_object(path, RUN)
    except UserError as problem:
        raise UserError(f"{problem}; delete it and run the model again with `srb run`") from None
    return {key: value for key, value in about.items() if value is not None or key not in _OBJECTS}


def parse_line(line: str | bytes) -> dict[str, Any]:
    """One prediction; a ValueError says why a line is none."""
    try:
        content = json.loads(line)
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    if not isinstance(content, dict):
        raise ValueError("is not an object")
    for key, kinds in _LINE.items():
        if not isinstance(content.get(key), kinds):
            raise ValueError(f"has no {key}" if content.get(key) is None else f"has an odd {key}")
    if "text" not in content:  # null where nobody has transcribed the clip
        raise ValueError("has no text")
    if problem := _COLUMNS(content.get("columns", {})):
        raise ValueError(f"has odd columns ({problem})")
    for key, least in (("duration", 0), ("time", 0), ("loudness_dbfs", -math.inf)):
        if not least <= (content.get(key) or 0) < math.inf:
            raise ValueError(f"has an odd {key}")
    if "stream" in content and (problem := LIVE(content)):
        raise ValueError(f"has a {problem}")
    escaped = b"\\u" in line if isinstance(line, bytes) else "\\u" in line
    if "stream" in content or escaped:
        json.dumps(content, ensure_ascii=False, allow_nan=False).encode()  # raises for half a character or NaN
    return content
