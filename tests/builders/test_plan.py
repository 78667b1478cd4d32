"""Which configs a command means."""

import pytest

from speech_robust_bench.builders.plan import DEMO, plan, tts_without_engine


@pytest.mark.parametrize(
    ("patterns", "named"),
    [
        (["en-demo_*"], ["en-demo_tts"]),
        (["*"], ["en-demo_tts", "es-demo_tts"]),
        (["en-demo_*", "en-demo_tts"], []),
        (["en-demo_noise_*", "en-demo_clean"], []),
    ],
)
def test_a_glob_leaves_synthetic_speech_out_and_names_it(patterns, named):
    assert sorted(tts_without_engine(patterns, DEMO)) == named
    built = {str(job.name) for job in plan(patterns, DEMO)}
    assert not built & set(named)
