"""Extensions plug in from outside, and the benchmark works without its own."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
from pyarrow.parquet import read_table

from speech_robust_bench.builders.scenario import ATTACK_SNR_DB

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "tests" / "example_extension"
CORE = ("core", "builders", "scoring", "models", "attacks", "report", "push", "speech_robust_bench", "cli")


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> dict[str, str]:
    """The environment of a process in which the example package is installed."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(EXAMPLE / "srb_example", folder / "srb_example")
    about = folder / "srb_example_extension-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: srb-example-extension\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[speech_robust_bench.extensions]\nexample = srb_example\n")
    return {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "120"}


def srb(installed: dict[str, str], *words: object, cwd: Path) -> str:
    command = [sys.executable, "-m", "speech_robust_bench", *map(str, words)]
    done = subprocess.run(command, env=installed, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def whispers(tmp_path) -> Path:
    """Two clips of the example's corpus."""
    rng = np.random.default_rng(0)
    for name in ("anna__good_morning", "bert__good_night"):
        soundfile.write(tmp_path / f"{name}.wav", 0.1 * rng.standard_normal(16_000), 16_000)
    return tmp_path


def test_a_package_adds_an_attack(installed, whispers):
    pytest.importorskip("torch")
    srb(installed, "build", "en-whispers_clean", "--corpus", f"en-whispers={whispers}", cwd=whispers)
    srb(installed, "attack", "hum", "en-whispers_clean", "--severity", "2", cwd=whispers)
    snr_db = [row["snr_db"] for row in read_table(whispers / "srb/en-whispers_hum_sev2").to_pylist()]
    assert snr_db == pytest.approx([ATTACK_SNR_DB[1]] * 2, abs=0.2)


def test_a_package_adds_one_thing_of_each_kind(installed, whispers, tmp_path):
    assert "backwards" in srb(installed, "ls", cwd=tmp_path)
    run = ["run", "--model", "parrot:good morning", "en-whispers_*clean", "en-whispers_backwards_sev2"]
    srb(installed, *run, "--corpus", f"en-whispers={whispers}", "--name", "parrot", "--out", "runs", cwd=tmp_path)
    assert "WER 25.0" in srb(installed, "score", "runs/parrot", cwd=tmp_path)  # one wrong word of four
    assert long_words(tmp_path) == {"words": 4, "share": 50.0}  # "good morning", twice
    assert "50.0" in srb(installed, "table", "runs/parrot", "--long-words", cwd=tmp_path)
    srb(installed, "report", "runs/parrot", "--out", "page.html", cwd=tmp_path)
    assert "Who writes long words?" in (tmp_path / "page.html").read_text()
    srb(installed, "score", "runs/parrot", "--short-letters", "3", cwd=tmp_path)
    assert long_words(tmp_path)["share"] == 100.0


def long_words(folder: Path) -> dict:
    results = json.loads((folder / "runs/parrot/results.json").read_text())
    return results["configs"]["en-whispers_clean"]["measures"]["long_words"]


def imported(path: Path) -> set[str]:
    """What a module imports, but for type checkers."""
    tree = ast.parse(path.read_text("utf-8"))
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    nodes = [node for node in ast.walk(tree) if id(node) not in typing_only]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return names | {f"{n.module}.{a.name}" for n in nodes if isinstance(n, ast.ImportFrom) for a in n.names}


@pytest.mark.parametrize("room", ["models", "attacks"])
def test_no_text_in_the_core_is_the_name_of_an_added_adapter(room):
    """How the spec of an adapter is read is declared by its `load` function."""
    from speech_robust_bench.core.extensions import registered

    texts = {
        node.value
        for path in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant)
    }
    assert len(registered("ADAPTERS")) > 5
    assert not texts & registered("ADAPTERS").keys()


@pytest.mark.parametrize("room", CORE)
def test_nothing_in_the_core_knows_an_extension_by_name(room):
    knowing = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in (ROOT / room).rglob("*.py")
        for name in imported(path)
        if name.startswith("speech_robust_bench.extensions.")
    }
    assert not knowing


# What is asked for without the folder, and what is said then.
GONE = {
    "attacks": ("attack cw en-demo_clean --model x", "cw"),
    "biasing": ("biasing --model x --terms t", "biasing"),
    "contamination": ("contamination --model x", "contamination"),
    "defences": ("certify en-demo_clean --model x", "certify"),
    "exports": ("export croissant", "export"),
    "fairness": ("fairness runs/m", "fairness"),
    "front_ends": ("run --model front:asnr|x en-demo_clean --corpus en-demo", "no recogniser adapter 'front'"),
    "gate": ("gate --model x --baseline runs/m", "gate"),
    "masked_words": ("build en-demo_masked_sev1", "unknown scenario 'masked'"),
    "n_best": ("table runs/m --n-best", "--n-best"),
    "probe": ("table runs/m --ood", "--ood"),
    "sampling": ("stability runs/m", "stability"),
    "sparsity": ("sparsity en-demo_clean --model x", "sparsity"),
    "streaming": ("run --model live:moonshine en-demo_clean --corpus en-demo", "no recogniser adapter 'live'"),
    "superb_sg": ("superb train enhancement --upstream fbank --out x", "superb"),
    "text_metrics": ("table runs/m --confidence", "--confidence"),
    "try_it": ("try-it", "try-it"),
    "two_talkers": ("build en-demo_overlap_sev1", "unknown scenario 'overlap'"),
    "vendors": ("run --model api:deepgram en-demo_clean --corpus en-demo", "no recogniser adapter 'api'"),
    "who_spoke": ("table runs/m --who-spoke", "--who-spoke"),
    "word_timing": ("table runs/m --word-timing", "--word-timing"),
}
PARROT = "def transcribe(clips, rate, language):\n    return ['the'] * len(clips)\n"
WORKFLOW = """
import sys
import speech_robust_bench as srb
from speech_robust_bench.cli.main import main
assert sys.argv[1] not in str(sorted(module for module in sys.modules if ".extensions." in module))
dir(srb)
for words in (
    "build en-demo_clean en-demo_gaussian_sev1 --limit 1 --workers 1 --out srb",
    "run --model python:parrot:transcribe en-demo_* --data srb --name m --quiet",
    "score runs/m --replicates 10",
    "table runs/m",
    "report runs/m --out page.html",
):
    assert main(words.split()) in (0, None), words
try:
    main(["--help"])
except SystemExit as end:
    assert not end.code
try:
    code = main(sys.argv[2:])
except SystemExit as end:
    code = end.code
assert code == 2, code
"""


def test_every_folder_of_extensions_has_its_case():
    folders = {path.parent.name for path in (ROOT / "extensions").glob("*/__init__.py")}
    assert set(GONE) == folders


@pytest.mark.parametrize("folder", GONE)
def test_everything_else_works_without_a_folder_of_extensions(folder, tmp_path):
    package = tmp_path / "speech_robust_bench"
    (package / "extensions").mkdir(parents=True)
    for path in (ROOT / "speech_robust_bench").glob("[!_]*"):
        (package / path.name).symlink_to(path)
    (package / "__init__.py").symlink_to(ROOT / "speech_robust_bench" / "__init__.py")
    for room in {*CORE, "metrics"} - {"speech_robust_bench"}:
        (package / room).symlink_to(ROOT / room)
    for path in (ROOT / "extensions").glob("[!_]*"):
        if path.name != folder:
            (package / "extensions" / path.name).symlink_to(path)
    (package / "extensions" / "__init__.py").touch()
    (tmp_path / "parrot.py").write_text(PARROT)
    words, told = GONE[folder]
    done = subprocess.run(
        [sys.executable, "-c", WORKFLOW, folder, *words.split()],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert told in done.stderr.strip().splitlines()[-1]
    assert "cannot be imported" not in done.stderr
