"""`srb.biasing`: run a recogniser with and without a list of terms, and compare."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from speech_robust_bench.builders.corpora import Corpora
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import write_atomically
from speech_robust_bench.core.records import to_json
from speech_robust_bench.evaluation import run, run_folder
from speech_robust_bench.extensions.biasing.effect import BiasingOptions, BiasingResult, effect
from speech_robust_bench.models.interface import parse_spec
from speech_robust_bench.models.prompts import read_terms
from speech_robust_bench.options import DataOptions, ModelOptions, Place, RunOptions
from speech_robust_bench.scoring.runs import open_run

FILE = "biasing.json"
SUFFIX = "-biased"


def biasing(
    model: str | tuple[Place, Place],
    terms: Place,
    configs: str | Sequence[str] = (),
    *,
    corpus: Corpora = None,
    data: Place | None = None,
    limit: int | None = None,
    out: Place = "runs",
    biasing_options: BiasingOptions = BiasingOptions(),
    data_options: DataOptions = DataOptions(),
    model_options: ModelOptions = ModelOptions(),
    progress: bool = True,
) -> BiasingResult:
    """Measure what a list of terms gains on the clips that contain them, and breaks on the others.

    Args:
        model: a spec whose adapter takes `terms`, or the folders of two runs, without and with terms.
        terms: a file with one term on each line.
        configs, corpus, data, limit: as in `srb.run`.
        out: the folder for both runs, `out/<model>` and `out/<model>-biased`.
        biasing_options: normaliser, intervals, significance level.
        data_options, model_options: as in `srb.run`.
        progress: show progress.

    Returns:
        The effect on every config, which is also written to `biasing.json` of the run with terms.
    """
    expected = read_terms(Path(terms))
    if isinstance(model, str):
        folders = _run_both(model, terms, configs, corpus, data, limit, out, data_options, model_options, progress)
    else:
        folders = Path(model[0]), Path(model[1])
    result = effect(open_run(folders[0]), open_run(folders[1]), expected, biasing_options)
    write_atomically(folders[1] / FILE, to_json(result, indent=2))
    return result


def _run_both(
    model: str,
    terms: Place,
    configs: str | Sequence[str],
    corpus: Corpora,
    data: Place | None,
    limit: int | None,
    out: Place,
    data_options: DataOptions,
    model_options: ModelOptions,
    progress: bool,
) -> tuple[Path, Path]:
    """Run the model without and with terms; the folders."""
    spec = parse_spec(model)
    innermost = parse_spec(spec.wrapped) if spec.wrapped else spec
    if "terms" in innermost.options:
        raise UserError(f"{model}: leave out its terms, --terms gives them to one of the two runs")
    plain = run_folder(model, out, model_options)
    biased = plain.with_name(plain.name + SUFFIX)
    more = f"{'&' if innermost.options else '?'}terms={Path(terms)}"
    known = {name: getattr(model_options, name) for name in ModelOptions.__dataclass_fields__}
    for each, folder in ((model, plain), (model + more, biased)):
        run(
            each,
            configs,
            corpus=corpus,
            data=data,
            limit=limit,
            out=folder,
            data_options=data_options,
            run_options=RunOptions(**{**known, "name": folder.name}),
            progress=progress,
        )
    return plain, biased
