"""Language codes: what may stand in a `language` column (BCP 47, RFC 5646, section 2.1)."""

from __future__ import annotations

import re

# language, extended language, script, region, variants, extensions: letters and digits in parts of up to eight
_CODE = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")
LONGEST = 35  # RFC 5646, 4.4.1: what every implementation must have room for


def is_language_code(text: str) -> bool:
    """Whether this has the form of a language code: `en`, `yue`, `zh-Hant-TW`."""
    return len(text) <= LONGEST and _CODE.fullmatch(text) is not None
