"""What the metrics need to know of the scenario table. A metric's Space has these as constants: see `modules.py`."""

from __future__ import annotations

from speech_robust_bench.builders.scenarios import SCENARIOS

ATTACKS = tuple(row.name for row in SCENARIOS.values() if row.maker == "attack")
# Categories of recordings of their own: not made from clean clips, so compared with the clean set as a whole.
_RECORDED = [row for row in SCENARIOS.values() if row.maker == "recording" and row.name != "clean"]
RECORDINGS = tuple(dict.fromkeys(row.category for row in _RECORDED))
# Each scenario's values at its severities, in order: a config at one of these is as hard as that severity.
VALUES = {row.name: row.severities for row in SCENARIOS.values() if row.takes_values and row.graded}
# Categories in which more is said than in the clean clip.
OTHER_TEXTS = tuple(dict.fromkeys(row.category for row in SCENARIOS.values() if not row.keeps_text))
