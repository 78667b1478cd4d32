"""Which texts may stand in a row: one rule for the builder, which lets rows in, and for the check of a submission.

Letters and signs of every script are text, and so are the direction marks (U+200E, U+200F) that Arabic and Hebrew are
written with. Control characters, which steer a terminal, overrides of the reading direction, which make a line look
like another one, and half of a surrogate pair, which cannot be stored in UTF-8, are not.
"""

from __future__ import annotations

import re

# characters, of each field of a row that comes from a corpus
LONGEST = {
    "id": 300,
    "text": 200_000,  # of a meeting of an hour: some 60,000
    "language": 35,
    "speaker": 200,
    "gender": 100,
    "age": 100,
    "accent": 300,
    "licence": 300,
}
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def forbidden_character(text: str) -> str | None:
    """The first character that may not stand in a row, as `U+001B`; None where there is none."""
    match = _FORBIDDEN.search(text)
    return f"U+{ord(match[0]):04X}" if match else None


# Between the transcripts of two people who talk at once: serialised output training (Kanda et al. 2020) writes it so.
TALKER_CHANGE = "<sc>"


def talkers(text: str) -> tuple[str, str]:
    """The transcripts of two talkers, taken apart; the second is empty where there is one. Further marks are dropped.

    >>> talkers("good morning <sc> is it you"), talkers("good morning")
    (('good morning', 'is it you'), ('good morning', ''))
    """
    first, _, second = text.partition(TALKER_CHANGE)
    return one_talker(first).strip(), one_talker(second).strip()


def one_talker(text: str) -> str:
    """A text without the mark between talkers."""
    return text.replace(TALKER_CHANGE, " ") if TALKER_CHANGE in text else text


def join_talkers(*texts: str) -> str:
    """What several talkers said as one text; those who said nothing leave no mark.

    >>> join_talkers("good morning", "", "is it you")
    'good morning <sc> is it you'
    """
    return f" {TALKER_CHANGE} ".join(text for text in texts if text.strip())
