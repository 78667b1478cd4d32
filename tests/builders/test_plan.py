"""Which configs a command means."""

import pytest

from speech_robust_bench.builders import scenario
from speech_robust_bench.builders.plan import DEMO, plan, tts_without_engine
from speech_robust_bench.core.errors import UserError


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


def test_a_glob_of_what_cannot_be_made_names_the_package(monkeypatch):
    monkeypatch.setattr(scenario, "_installed", lambda package: package != "av")
    with pytest.raises(UserError, match=r"'en-mine_amr_\*': amr needs more packages: pip install"):
        plan(["en-mine_amr_*"], {("en", "mine"): None})
    with pytest.raises(UserError, match="no config matches"):
        plan(["en-other_amr_*"], {("en", "mine"): None})
