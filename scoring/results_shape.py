"""What a `results.json` must look like (docs/formats.md) to be taken as it is; one that does not is scored anew."""

from __future__ import annotations

from speech_robust_bench.core.json_shapes import (
    anything,
    dict_of,
    fixed_list,
    integer,
    list_of,
    maybe,
    nullable,
    number,
    object_of,
    text,
    truth,
)

MEASURES = ("wer", "nwer", "werd", "nwerd")
SCORE = object_of(value=nullable(number), interval=nullable(fixed_list(nullable(number), nullable(number))))
SCORES = dict.fromkeys(MEASURES, nullable(SCORE))
ROW = object_of(**SCORES, members=list_of(text), missing=dict_of(text))
GROUPS = dict_of(
    object_of(wer=nullable(number), **dict.fromkeys(("utterances", "words", "speakers"), integer)),
)
SLICES = object_of(
    speakers=integer,
    lwerr=maybe(SCORE),
    **dict.fromkeys(("gender", "accent", "age"), maybe(GROUPS)),
    columns=maybe(dict_of(GROUPS)),
)
INVENTED = dict.fromkeys(("clips", "clips_with_words", "words"), integer) | {
    "minutes": number,
    "words_per_minute": nullable(number),
}
LANGUAGE = object_of(
    **dict.fromkeys(("clean", "categories", "scenarios", "severities", "corpora"), dict_of(ROW)),
    **dict.fromkeys(("overall", "median", "adversarial"), ROW),
    missing=dict_of(list_of(text)),
    slices=dict_of(dict_of(SLICES)),
    hallucination=object_of(insertions_per_word=nullable(number), reject=nullable(object_of(**INVENTED))),
)
ORIGIN = {
    **dict.fromkeys(("language", "corpus", "scenario", "category"), text),
    **dict.fromkeys(("source", "bank", "benchmark_version", "content_sha256", "rows_sha256"), nullable(text)),
    **dict.fromkeys(("rows", "failed", "severity"), integer),
    "of": nullable(integer),
    "failed_ids": list_of(text),
    "rtf": nullable(number),
    "rtf_quantiles": nullable(dict_of(number)),
    "predictions_sha256": text,
    "scenario_version": maybe(text),
}
CONFIG = object_of(
    **ORIGIN,
    **SCORES,
    **dict.fromkeys(("clean_wer", "difficulty", "insertions_per_word"), nullable(number)),
    **dict.fromkeys(("utterances", "hits", "substitutions", "deletions", "insertions", "empty"), integer),
    why=dict_of(text),
    unit=text,
    slices=SLICES,
    attack=maybe(dict_of(number)),
    streaming=maybe(dict_of(anything)),
    wer_lenient=maybe(SCORE),
    semantic_error=maybe(SCORE),
    confidence=maybe(dict_of(nullable(number))),
    masked=maybe(object_of(words=integer, written=integer, rate=SCORE)),
    overlap=maybe(object_of(clips=integer, two_texts=integer, best_wer=SCORE)),
)
RESULTS = object_of(
    schema=integer,
    model=text,
    run=object_of(
        **dict.fromkeys(("spec", "adapter", "target", "revision", "data", "updated"), nullable(text)),
        **dict.fromkeys(("asked", "options", "versions", "machine"), nullable(dict_of(anything))),
    ),
    software=dict_of(text),
    options=object_of(
        **dict.fromkeys(("normaliser", "difficulty"), text),
        **dict.fromkeys(("floor", "by_speaker"), truth),
        **dict.fromkeys(("replicates", "seed"), integer),
        unit=nullable(text),
        level=number,
        conventions=maybe(text),
        embeddings=maybe(text),
    ),
    scoring=object_of(
        normaliser=text,
        difficulty=object_of(name=text, sha256=text),
        conventions=maybe(object_of(file=text, sha256=text)),
        embeddings=maybe(object_of(model=text, revision=text)),
    ),
    failed=integer,
    suite=nullable(text),
    unfinished=list_of(text),
    speed=object_of(audio_s=number, seconds=number, rtf=nullable(number)),
    languages=dict_of(LANGUAGE),
    configs=dict_of(CONFIG),
    reject=dict_of(object_of(**ORIGIN, **INVENTED)),
    untranscribed=maybe(dict_of(object_of(**ORIGIN, **INVENTED, difference=nullable(SCORE)))),
    sha256=maybe(text),
)
