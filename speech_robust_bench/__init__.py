"""Speech Robust Bench: how much accuracy does a speech recogniser lose in adverse conditions?

    import speech_robust_bench as srb

    srb.scenarios()                                              # the scenarios
    srb.perturb(samples, 16_000, "noise", severity=3)            # one clip under one scenario
    srb.RandomPerturb(["noise", "rir"], p=0.5)                   # the same as training-time augmentation
    srb.load("en-demo_noise_sev3")                               # a dataset config, made as it is read
    srb.SpeechRobustBench(config_name="en-demo_noise_sev3")      # the same as a `datasets` builder
    srb.evaluate("moonshine", "en-demo_*")                       # a recogniser over configs, scored
    srb.gate(new_model, "runs/main")                             # is it less robust than the one in use?
    srb.metrics.wer_ci(references=[...], predictions=[...])      # the metrics of `evaluate`, as plain functions

Each name is imported when it is first used, so that importing the package costs next to nothing. Invalid
arguments raise `ValueError` with one line that names the problem and the solution. docs/how-to has examples.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from speech_robust_bench.core import __version__

if TYPE_CHECKING:
    from speech_robust_bench import metrics
    from speech_robust_bench.adversarial import AttackResult, attack
    from speech_robust_bench.attacks.registry import AttackOptions, AttackRow, attack_rows
    from speech_robust_bench.builders.custom import write_scenarios
    from speech_robust_bench.builders.dataset import SpeechRobustBench
    from speech_robust_bench.building import BuildResult, QualityResult, add_quality, build, check, load
    from speech_robust_bench.comparison import CompareOptions, Comparisons, compare, difference
    from speech_robust_bench.evaluation import RunPlan, RunSummary, evaluate, plan, run, run_folder, run_models
    from speech_robust_bench.options import BuildOptions, DataOptions, ModelOptions, RunOptions, ScenarioOptions
    from speech_robust_bench.perturbation import (
        Perturb,
        PerturbedClip,
        RandomPerturb,
        perturb,
        perturb_all,
        perturb_file,
    )
    from speech_robust_bench.publishing import (
        DataPush,
        PushOptions,
        Submission,
        SubmitOptions,
        Verification,
        VerifyOptions,
        export_leaderboard,
        export_metric,
        install_metrics,
        leaderboard,
        push_data,
        push_metrics,
        push_results,
        submit,
        verify,
        verify_all,
    )
    from speech_robust_bench.reporting import (
        DiagnoseOptions,
        Diagnosis,
        MeasureTable,
        ReportOptions,
        diagnose,
        measure_tables,
        table,
        write_report,
    )
    from speech_robust_bench.run_results import Results, Score, read_run, score, score_run
    from speech_robust_bench.scenario_table import (
        DifficultyOptions,
        ScenarioTable,
        difficulty,
        explain_difficulty,
        scenarios,
        suite,
        suites,
    )
    from speech_robust_bench.scoring.score_options import ScoreOptions

# module -> the public names in it, as above
_PUBLIC = {
    "adversarial": "AttackResult attack",
    "attacks.registry": "AttackOptions AttackRow attack_rows",
    "perturbation": "Perturb PerturbedClip RandomPerturb perturb perturb_all perturb_file",
    "builders.dataset": "SpeechRobustBench",
    "builders.custom": "write_scenarios",
    "building": "BuildResult QualityResult add_quality build check load",
    "comparison": "CompareOptions Comparisons compare difference",
    "evaluation": "RunPlan RunSummary evaluate plan run run_folder run_models",
    "options": "BuildOptions DataOptions ModelOptions RunOptions ScenarioOptions",
    "publishing": (
        "DataPush PushOptions Submission SubmitOptions Verification VerifyOptions export_leaderboard export_metric "
        "install_metrics leaderboard push_data push_metrics push_results submit verify verify_all"
    ),
    "reporting": "DiagnoseOptions Diagnosis MeasureTable ReportOptions diagnose measure_tables table write_report",
    "run_results": "Results Score read_run score score_run",
    "scenario_table": "DifficultyOptions ScenarioTable difficulty explain_difficulty scenarios suite suites",
    "scoring.score_options": "ScoreOptions",
}
_MODULES = {name: module for module, names in _PUBLIC.items() for name in names.split()}
__all__ = sorted([*_MODULES, "__version__", "metrics"])


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name == "metrics":
        return import_module(f"{__name__}.metrics")
    from speech_robust_bench.core.extensions import registered

    module = f"{__name__}.{_MODULES[name]}" if name in _MODULES else registered("API").get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__dir__())}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names: those of the benchmark, and those that extensions add."""
    from speech_robust_bench.core.extensions import registered

    return sorted({*__all__, *registered("API")})
