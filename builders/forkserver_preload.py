"""What every worker of a build needs, brought in once by the process that they are forked from: see `engines.py`."""

# ruff: noqa: E402
import signal

signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches this process too; the one that started it ends it

import numpy as np

from speech_robust_bench.builders.banks import Banks, builtin  # noqa: F401  the built-in bank brings SciPy
from speech_robust_bench.builders.corpora.base import BytesAudio, Utterance
from speech_robust_bench.builders.plan import job_named
from speech_robust_bench.builders.row_generator import RowGenerator

# A row made for nothing loads Arrow, the FLAC encoder and the kernels that every row takes.
_clip = Utterance(id="", audio=BytesAudio(b"", ""), text="", language="en", corpus="")
RowGenerator((job_named("en_gain_sev1"),), Banks()).tables([(_clip, np.zeros(1, dtype=np.float32))])
