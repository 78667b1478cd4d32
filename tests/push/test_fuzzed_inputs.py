"""Every other file that a command is given, changed at random: the command succeeds or says one line.

`SRB_FUZZ` says how many changes of each file are tried (see fuzzing.py). Run folders have a test of their own.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import random
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.built_data import make_built
from support.fake_runs import make_run
from support.fuzzing import change_file, run_command, tries
from support.many_models import write_models

from speech_robust_bench.builders.quality import COLUMNS
from speech_robust_bench.cli.main import main
from speech_robust_bench.core.result_records import digest
from speech_robust_bench.extensions.front_ends.quality import MEASURES
from speech_robust_bench.push import expected_rows, submission
from speech_robust_bench.push.leaderboard import board
from speech_robust_bench.scoring.difficulty import load

CONFIGS = ["en_clean", "en_noise_sev3", "en_gaussian_sev1"]
MODEL = "python:test_fuzzed_inputs:says_yes"

GATE = (
    f"gate --baseline {{here}}/runs/a --model {MODEL} --data {{here}}/srb --out {{here}}/gates --name new --quiet "
    "--clips 4 --worst 9 --detect 99 --resample clips"
)
CERTIFY = (
    f"certify --model smooth:{MODEL}?sigma=0.02&n=2 en_clean --data {{here}}/srb --draws 2 --limit 3 "
    "--out {here}/certificates.jsonl --quiet"
)


@dataclass(frozen=True)
class Reading:
    """Files that commands are given, as a pattern, the commands, and the package that these need."""

    files: str
    commands: tuple[str, ...]
    needs: str | None = None
    sealed: bool = False
    whole: int = 0  # the exit code with the files as they were
    usual: int = 8  # changes that a test run tries


TABLES = [
    Reading(
        "table.csv",
        (
            "difficulty --difficulty {here}/table.csv",
            "score {here}/runs/a --replicates 5 --difficulty {here}/table.csv",
            "compare {here}/runs/a {here}/runs/b --replicates 5 --difficulty {here}/table.csv",
            "stability {here}/runs/a {here}/runs/b {here}/runs/c --trials 3 --measure nwerd "
            "--difficulty {here}/table.csv",
        ),
    ),
    Reading("people.csv", ("difficulty --ratings {here}/people.csv --out {here}/out.csv",)),
    Reading("quality.csv", ("difficulty {here}/quality.csv", "difficulty {here}/quality.csv --dataset LibriSpeech")),
    Reading("conventions.csv", ("score {here}/runs/a --replicates 5 --conventions {here}/conventions.csv",)),
    Reading("words.csv", ("diagnose {here}/runs/a --frequencies {here}/words.csv --minimum 1",)),
    Reading("names.txt", ("diagnose {here}/runs/a --names {here}/names.txt --minimum 1",)),
    Reading("listeners.csv", ("fairness {here}/runs/a --replicates 5 --ratings {here}/listeners.csv",)),
    Reading("meta.csv", ("report {here}/runs/a {here}/runs/b --meta {here}/meta.csv --out {here}/out.html",)),
    Reading("models.yaml", ("run --model @{here}/models.yaml --data {here}/srb --out {here}/new --quiet",)),
    Reading("own.yaml", ("ls --json --scenario-file {here}/own.yaml",), needs="audiomentations"),
    Reading("secret.txt", ("build en-demo_clean --limit 1 --secret {here}/secret.txt --out {here}/new",)),
]
RECORDS = [
    Reading(
        "srb/*/*",
        (
            "difficulty {here}/srb",
            "quality --data {here}/srb --workers 1 --quiet",
            f"run --model {MODEL} --data {{here}}/srb --out {{here}}/new --quiet",
            "export croissant --data {here}/srb",
            "push data --dataset me/srb --data {here}/srb --dry-run",
            "verify {here}/sent --data {here}/srb",
            "check --data {here}/srb",
            "submit {here}/runs/a --owner me --data {here}/srb --out {here}/again --dry-run",
            f"gate --baseline {{here}}/runs/a --model {MODEL} --data {{here}}/srb --out {{here}}/gates --quiet",
        ),
        needs="pesq",
        usual=12,
    ),
    Reading("benchmark.json", ("verify {here}/nothing --data {here}/benchmark.json",), whole=1, usual=3),
    Reading("verified/*", ("leaderboard --results {here}/verified --export {here}/site",), sealed=True),
    Reading("front.json", ("quality --data {here}/srb --front asnr --out {here}/front.json --quiet",)),
    Reading(
        "gates/new/*.json*",
        (GATE,),
    ),
    Reading(
        "probes/x/probe.json",
        (
            "probe layers {here}/probes/x",
            "probe layers {here}/probes/y {here}/probes/x --out {here}/layers.svg",
            "probe rank {here}/probes/x {here}/probes/y",
        ),
    ),
    Reading(
        "probes/x/*",
        ("run --model probe:{here}/probes/x en_clean --data {here}/srb --out {here}/new --quiet",),
        needs="torch",
    ),
    Reading(
        "certificates.jsonl",
        (CERTIFY,),
        needs="torch",
    ),
]


def says_yes(clips, rate, language):
    return ["yes"] * len(clips)


@pytest.fixture(autouse=True)
def _no_networks(monkeypatch):
    """What a clip sounds like costs a second, and is not what is tried here."""
    scores = dict.fromkeys(COLUMNS, 3.0)
    monkeypatch.setattr("speech_robust_bench.builders.quality.dnsmos", lambda samples: scores)
    monkeypatch.setattr("speech_robust_bench.builders.quality.pesq", lambda samples, clean: 3.0)
    monkeypatch.setattr(
        "speech_robust_bench.extensions.front_ends.quality.measured", lambda *_: dict.fromkeys(MEASURES, 1.0)
    )


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Path:
    """One of every file that a command reads."""
    here = tmp_path_factory.mktemp("fuzz") / "here"
    data = make_built(here / "srb", CONFIGS, clips=4)
    for path in data.glob("*/*.parquet"):
        table = pq.read_table(path)
        for place, column in enumerate(COLUMNS):
            worse = 1.0 if "noise_sev3" in str(path) else 0.0
            table = table.append_column(column, pa.array([3.0 + place / 9 - worse] * len(table), pa.float32()))
        pq.write_table(table, path)
    for seed, model in enumerate("abc"):
        make_run(here / "runs" / model, data, model, seed=seed)
    known = expected_rows.load(str(data))
    (here / "benchmark.json").write_text(expected_rows.to_json(known))
    submission.make(here / "runs" / "b", here / "sent", {"owner": "acme"})
    assert len(board.load(write_models(here / "verified", models=3, configs=12)).entries) == 3
    write_tables(here)
    write_records(here, {config: entry.content_sha256 for config, entry in known.items()})
    return here


def write_tables(here: Path) -> None:
    texts = {
        "table.csv": load("srb-1").to_csv(),
        "people.csv": "scenario,severity,rating\nnoise,1,9\nnoise,2,6\nsocial_ami_far,,4\n",
        "quality.csv": "dataset,augmentation,severity,metric,value\n"
        + "".join(f"LibriSpeech,noise,{n},{m},{4 - n}\n" for n in (1, 2, 3) for m in ("DNSMOS", "PESQ")),
        "conventions.csv": "kind,written,counted_as\nname,Katherine,Catherine\nspelling,foo*,bar*\ndisfluency,like,\n",
        "words.csv": "word,count\nthe,50\nfox,30\nran,15\n",
        "names.txt": "New York\nO'Hara\n",
        "listeners.csv": "scenario,sev1,sev2,sev3\nnoise,9,8,7.5\naeq_scale,9,,7\n",
        "meta.csv": "model,parameters,hours,architecture,family\na,244M,680000,enc,Whisper\nb,1.5B,,ctc,\n",
        "models.yaml": f"models:\n- name: says-yes\n  spec: {MODEL}\n  parameters: 600e6\n  family: None\n  env: []\n",
        "own.yaml": "scenarios:\n- name: crush\n  transform: BitCrush\n  parameters: {min_bit_depth: $value, "
        "max_bit_depth: $value}\n  severities: [8, 6]\n- name: both\n  chain: [rir_sev1 + noise_snr15]\n",
        "secret.txt": "a secret of the maintainers, long enough\n",
    }
    for name, text in texts.items():
        (here / name).write_text(text)


def write_records(here: Path, contents: dict[str, str]) -> None:
    """What commands leave and take up again."""
    rows = [
        {"config": config, "front": front, "clips": 4, "content_sha256": contents[config], "rtf": 0.1}
        | dict.fromkeys(MEASURES, 1.0)
        for config in CONFIGS
        for front in ("", "asnr")
    ]
    (here / "front.json").write_text(json.dumps(rows))
    assert main([word.format(here=here) for word in GATE.split()]) == 0
    (here / "gates" / "new" / "gate.json").write_text('{"verdict": null}\n')
    for name, spec, revision in (("x", "fbank", None), ("y", "hf:acme/y", "0" * 40)):
        folder = here / "probes" / name
        folder.mkdir(parents=True)
        about = {
            "format": 1,
            "upstream": {"spec": spec, "revision": revision, "layers": 1, "width": 80, "stride": 160},
            "head": {"size": "linear", "units": 8, "normalise": False},
            "data": {"corpora": ["en-mine"], "hours": 0.1, "hours_asked": None, "dev_digest": "0"},
            "best": {"step": 10, "dev_wer": 50.0},
            "language": "en",
            "letters": "abc",
            "layer_weights": [0.4, 0.6],
            "augment": None,
        }
        (folder / "probe.json").write_text(json.dumps(about))
    if importlib.util.find_spec("torch"):
        write_torch_records(here)


def write_torch_records(here: Path) -> None:
    from speech_robust_bench.extensions.probe.head import Letters, new_head
    from speech_robust_bench.extensions.probe.probe_file import HeadSettings, write_weights
    from speech_robust_bench.extensions.probe.upstream import open_upstream

    head = new_head(HeadSettings("linear", 8, False), open_upstream("fbank", "cpu"), Letters("abc"))
    write_weights(here / "probes" / "x", head.state_dict())
    assert main([word.format(here=here) for word in CERTIFY.split()]) == 0


def seal(folder: Path) -> None:
    """Put the right hashes into verified files, so that what lies behind the comparison of hashes is reached."""
    for path in folder.glob("*.json"):
        with suppress(ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError):
            content = json.loads(path.read_text())
            draws = next(iter(folder.glob(f"{path.stem}*.npz")), path.with_suffix(".npz"))
            content["draws_sha256"] = hashlib.sha256(draws.read_bytes()).hexdigest()
            draws.rename(path.with_suffix(".npz"))  # the name under which any hash is looked for
            content["sha256"] = digest(content)
            path.write_text(json.dumps(content))


@pytest.mark.parametrize("reading", [*TABLES, *RECORDS], ids=lambda reading: reading.files)
def test_a_changed_file_is_one_line_or_success(reading, original, tmp_path, capsys, monkeypatch):
    if reading.needs:
        pytest.importorskip(reading.needs)
    monkeypatch.setattr("multiprocessing.cpu_count", lambda: 1)
    codes = set()
    for seed in range(tries(reading.usual)):
        rng = random.Random(seed)
        here = shutil.copytree(original, tmp_path / str(seed))
        what = f"seed {seed}: nothing"
        if seed:  # the first try is of the file as it was
            path = rng.choice(sorted(path for path in here.glob(reading.files) if path.is_file()))
            what = f"seed {seed}: {change_file(path, rng)}"
            if reading.sealed and rng.random() < 0.8:
                seal(path.parent)
        command = reading.commands[seed % len(reading.commands)]
        code = run_command([word.format(here=here) for word in command.split()], what, capsys)
        assert seed or code == reading.whole
        codes.add(code)
        shutil.rmtree(here)
    print(reading.files, sorted(codes))
