"""`open-asr-2026-08`: English as huggingface/open_asr_leaderboard compared it on 21 August 2026 (commit d1e99b2).

The same words as its scorer for every transcript, odd ones included: the last dot of "I don't know..." is a word of its
own, `half past three` stays as it is, hesitations are a closed list. Tests hold vectors that the leaderboard's code
produced. Numbers, contractions and most spellings are Whisper's, by the package whisper-normalizer; the spellings and
first names that the leaderboard has otherwise are in `data/open_asr_2026_08.csv`. `open-asr-1` is the corrected one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from speech_robust_bench.core.untrusted_files import csv_rows
from speech_robust_bench.scoring.open_asr import contractions, english_only, joined_acronyms, whisper_english

NAME = "open-asr-2026-08"
_TABLE = Path(__file__).parent / "data" / "open_asr_2026_08.csv"
_HESITATIONS = re.compile(
    r"\b(?:ahh|ahm|aha|ah|ehehe|eh|em|hmm|hm|huh|hum|mhum|mhm|mmm|mm|uhuh|uhm|uh|umm|um)\b",
)
_COMPOUNDS = {
    "et cetera": "etc",
    "al right": "alright",
    "all right": "alright",
    "how ever": "however",
    **{f"{first} fi": f"{first}fi" for first in ("wi", "hi", "lo", "sci")},
    **{f"e {second}": f"e{second}" for second in ("mail", "book", "commerce")},
    "x ray": "xray",
    "t shirt": "tshirt",
    "a m": "am",
    "p m": "pm",
    "o k": "okay",
}


def open_asr_2026_08(text: str, language: str | None) -> str:
    """The text as the leaderboard compared it in August 2026.

    >>> open_asr_2026_08("OK, Allan left at half past 3. I don't know...", "en").split()
    ['okay', 'allen', 'left', 'at', 'half', 'past', '3', 'i', 'do', 'not', 'know', '.']
    """
    english_only(NAME, language)
    return _rules()(text)


@lru_cache(maxsize=1)
def _rules() -> Callable[[str], str]:
    whisper, plain_letters = whisper_english(NAME)
    long_forms = contractions(whisper)
    compounds = [(re.compile(rf"\b{words}\b".replace(" ", r"\s+")), joined) for words, joined in _COMPOUNDS.items()]
    spellings = {**whisper.standardize_spellings.mapping, **_table("spelling")}
    names = _table("name")

    def rules(text: str) -> str:
        text = re.sub(r"[<\[][^>\]]*[>\]]", "", text.lower())
        text = re.sub(r"\([^)]+\)", "", text)
        text = re.sub(r"\s+'", "'", _HESITATIONS.sub("", text))
        for rule, written in long_forms:
            text = rule.sub(written, text)
        text = re.sub(r"(\d),(\d)", r"\1\2", text)
        # The character behind a dot is used up, so the second of two dots stays: the leaderboard's rule.
        text = re.sub(r"\.([^0-9]|$)", r" \1", text)
        text = plain_letters(text, keep=".%$¢€£")
        for rule, written in compounds:
            text = rule.sub(written, text)
        spelt = (spellings.get(word) or word for word in whisper.standardize_numbers(text).split())
        text = joined_acronyms([names.get(word, word) for word in spelt])
        return re.sub(r"([^0-9])%", r"\1 ", re.sub(r"[.$¢€£]([^0-9])", r" \1", text))

    return rules


def _table(kind: str) -> dict[str, str]:
    """What the leaderboard writes for a word where Whisper's table differs; nothing: it leaves the word alone."""
    rows = csv_rows(_TABLE.read_text("utf-8"), ("kind", "written", "counted_as"), _TABLE.name)
    return {row["written"]: row["counted_as"] for _, row in rows if row["kind"] == kind}
