"""What a verified results file must look like for the leaderboard to show it."""

from __future__ import annotations

from typing import Any

from speech_robust_bench.core.json_shapes import (
    anything,
    dict_of,
    integer,
    list_of,
    maybe,
    nullable,
    number,
    object_of,
    text,
    truth,
)
from speech_robust_bench.core.names import is_language_code
from speech_robust_bench.scoring.aggregate import MEASURES


def score(value: Any) -> str | None:
    """[value, low, high], or the value alone."""
    return list_of(number)(value) or (None if len(value) in (1, 3) else "is not a value with its interval")


_MEASURES = dict_of(score)
_LANGUAGE = object_of(
    clean=dict_of(_MEASURES),
    categories=dict_of(_MEASURES),
    overall=_MEASURES,
    median=maybe(_MEASURES),
    adversarial=maybe(_MEASURES),
    categories_missing=maybe(integer),
)


def _languages(value: Any) -> str | None:
    """A page is named after each, so they are language codes."""
    odd = isinstance(value, dict) and next((code for code in value if not is_language_code(code)), None)
    return dict_of(_LANGUAGE)(value) or (f"has the language '{odd[:40]}'" if odd else None)


_CONFIG = object_of(
    **dict.fromkeys(("language", "corpus", "scenario", "category"), text),
    **dict.fromkeys(("severity", "empty", "utterances"), integer),
    **dict.fromkeys(MEASURES, maybe(score)),
    **dict.fromkeys(("clean_wer", "difficulty"), maybe(number)),
    **dict.fromkeys(("bank", "scenario_version"), maybe(text)),
    streaming=maybe(dict_of(anything)),
)
_PAST = object_of(version=integer, revision=nullable(text), nwerd=dict_of(nullable(score)))
_RERUN = object_of(agrees=truth, same=integer, clips=integer, seed=number)
VERIFIED = object_of(
    schema=integer,
    sha256=text,
    draws_sha256=text,
    version=maybe(integer),
    model=object_of(
        owner=text,
        name=text,
        params_m=maybe(number),
        **dict.fromkeys(("id", "url", "licence", "training_data"), maybe(text)),
    ),
    **dict.fromkeys(("reproduce", "verified_with", "benchmark_version"), text),
    **dict.fromkeys(("predictions", "revision", "suite"), maybe(text)),
    scoring=object_of(normaliser=text),
    failed=integer,
    rtf=nullable(number),
    rerun=maybe(_RERUN),
    history=maybe(list_of(_PAST)),
    flags=maybe(list_of(text)),
    error_digests=maybe(dict_of(anything)),
    error_sketches=maybe(dict_of(list_of(integer))),
    copy_of=maybe(list_of(text)),
    by_normaliser=maybe(dict_of(dict_of(object_of(clean=nullable(number), nwerd=nullable(number))))),
    languages=_languages,
    configs=dict_of(_CONFIG),
    reject=dict_of(nullable(number)),
)
