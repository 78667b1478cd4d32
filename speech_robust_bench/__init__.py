"""Speech Robust Bench: how much accuracy does a speech recogniser lose when the world is not clean?

    import speech_robust_bench as srb

    srb.scenarios()                                              # what there is
    srb.perturb(samples, 16_000, "noise", severity=3)            # one clip under one scenario
    srb.RandomPerturb(["noise", "rir"], p=0.5)                   # the same as training-time augmentation
    srb.load("en-demo_noise_sev3")                               # a dataset config, made as it is read
    srb.SpeechRobustBench(config_name="en-demo_noise_sev3")      # the same as a `datasets` builder
    srb.evaluate("moonshine", "en-demo_*")                       # a recogniser over configs, scored
    srb.gate(new_model, "runs/main")                             # is it less robust than the one in use?

Each name is imported when it is first used, so that importing the package costs next to nothing. What is wrong with an
argument is one `ValueError` that names the thing and the way out. docs/python.md shows every name at work.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from speech_robust_bench.core.about import __version__

if TYPE_CHECKING:
    from speech_robust_bench.anchors import choose_anchors, predict_from_anchors
    from speech_robust_bench.augmentation import Perturb, RandomPerturb
    from speech_robust_bench.builders.dataset import SpeechRobustBench
    from speech_robust_bench.evaluation import evaluate, read_run, score
    from speech_robust_bench.lazy_dataset import load
    from speech_robust_bench.one_clip import PerturbedClip, perturb
    from speech_robust_bench.probes import ablate_probes, train_probe
    from speech_robust_bench.robustness_gate import GateResult, gate
    from speech_robust_bench.run_results import Results, Score
    from speech_robust_bench.scenario_table import ScenarioTable, scenarios
_MODULES = {
    "GateResult": "robustness_gate",
    "Perturb": "augmentation",
    "PerturbedClip": "one_clip",
    "RandomPerturb": "augmentation",
    "Results": "run_results",
    "Score": "run_results",
    "ScenarioTable": "scenario_table",
    "SpeechRobustBench": "builders.dataset",
    "evaluate": "evaluation",
    "gate": "robustness_gate",
    "load": "lazy_dataset",
    "perturb": "one_clip",
    "read_run": "evaluation",
    "scenarios": "scenario_table",
    "score": "evaluation",
    "ablate_probes": "probes",
    "choose_anchors": "anchors",
    "predict_from_anchors": "anchors",
    "train_probe": "probes",
}
__all__ = [
    "GateResult",
    "Perturb",
    "PerturbedClip",
    "RandomPerturb",
    "Results",
    "ScenarioTable",
    "Score",
    "SpeechRobustBench",
    "__version__",
    "ablate_probes",
    "choose_anchors",
    "evaluate",
    "gate",
    "load",
    "perturb",
    "predict_from_anchors",
    "read_run",
    "scenarios",
    "score",
    "train_probe",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
