"""Whether a config's noises, rooms or voices stand in for the paper's: a field of its entry, read from no title."""

from __future__ import annotations

import pytest

from speech_robust_bench.core.records import Origin
from speech_robust_bench.scoring.bank_provenance import is_stand_in


@pytest.mark.parametrize("stands_in", [True, False])
def test_the_field_decides_whatever_the_title(stands_in):
    for title in ("built-in bank (synthesised)", "espeak (text-to-speech)", "MS-SNSD"):
        assert is_stand_in(Origin(bank=title, stand_in=stands_in)) is stands_in


@pytest.mark.parametrize(
    ("title", "stands_in"),
    [
        ("built-in bank (synthesised)", True),
        ("MS-SNSD + built-in bank (synthesised)", True),
        ("espeak (text-to-speech)", True),
        ("yourtts (the paper's text-to-speech)", False),
        ("MS-SNSD", False),
        (None, False),
    ],
)
def test_files_of_before_the_field_are_read_by_title(title, stands_in):
    assert is_stand_in(Origin(bank=title)) is stands_in
