"""Banks: the noises, music, speech and rooms that scenarios draw from.

`open_bank(kind, folder)` gives a bank; `bank.draw(rng, clip=samples, severity=n)` gives one `Recording`. The draw
depends on the random stream and on the bank's sorted list of recordings alone, never on the order of the file system.
"""

from speech_robust_bench.builders.banks.folders import Banks, open_bank
from speech_robust_bench.builders.banks.recording import Recording, RecordingBank

__all__ = ["Banks", "Recording", "RecordingBank", "open_bank"]
