"""Fixtures that several rooms share."""

import numpy as np
import pytest
from speech import RATE, human_recordings, speech_like


@pytest.fixture(scope="session")
def speech() -> np.ndarray:
    """About ten seconds of speech: a human recording where one is installed, a stand-in otherwise."""
    return (human_recordings(1) or [speech_like(10)])[0][: 10 * RATE]
