"""Columns of a corpus (region, domain, device, ...): from the manifest to rows, predictions, results and tables."""

import csv
import io
import json

import datasets
import numpy as np
import pyarrow.parquet as pq
import pytest
import soundfile

import speech_robust_bench as srb_api
from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.build import build
from speech_robust_bench.builders.corpora import open_corpus
from speech_robust_bench.builders.plan import plan
from speech_robust_bench.cli.main import main
from speech_robust_bench.core.engines import Inline
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.rows import LONGEST_VALUE, MOST_COLUMNS, column_names
from speech_robust_bench.scoring.results import load_groups
from speech_robust_bench.scoring.runs import open_run

WORDS = ("north one two", "south three four", "north five six", "south seven eight")


def manifest(folder, rows):
    folder.mkdir(exist_ok=True)
    for number in range(len(rows)):
        noise = np.random.default_rng(number).uniform(-0.3, 0.3, 4000 + 800 * number)
        soundfile.write(folder / f"{number}.wav", noise, 16_000)
    with (folder / "manifest.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, dict.fromkeys(key for row in rows for key in row))
        writer.writeheader()
        writer.writerows(rows)
    return folder


@pytest.fixture
def corpus(tmp_path):
    rows = [
        {
            "file": f"{number}.wav",
            "text": text,
            "gender": "f" if number < 2 else "m",
            "Native Language": "yo" if number % 2 else "en",
            "domain": "telephony" if number < 2 else "meetings",
            "impairment": "none" if number else "",
            "source": f"s{number % 2}",
        }
        for number, text in enumerate(WORDS)
    ]
    return manifest(tmp_path / "corpus", rows)


def build_configs(corpus, out, *names):
    sources = {("en", "mine"): str(corpus)}
    build(plan(names, sources), sources, out, Inline(), lambda what, count: lambda n: None, Banks())


def transcribe(clips, rate, language):
    """Every word of the two long clips, none of the second of each short one."""
    return [WORDS[round((len(clip) - 4000) / 800)] if len(clip) > 5000 else "north two" for clip in clips]


def test_any_column_goes_from_the_manifest_to_the_results(corpus, tmp_path, capsys, monkeypatch):
    build_configs(corpus, tmp_path / "srb", "en-mine_clean", "en-mine_gain_sev1")
    stored = pq.read_table(next((tmp_path / "srb" / "en-mine_clean").glob("*.parquet"))).drop_columns("audio")
    first = stored.to_pylist()[0]
    assert (first["native_language"], first["domain"], first["impairment"], first["source_"], first["source"]) == (
        *("en", "telephony", None, "s0"),
        "en-mine_clean" if first["scenario"] != "clean" else first["source"],
    )
    # in `datasets`, in what is made without a build, and in what a recogniser was run on
    monkeypatch.chdir(tmp_path)
    assert datasets.load_dataset("srb", "en-mine_gain_sev1", split="test").features["domain"].dtype == "string"
    lazy = srb_api.load("en-mine_clean", corpus, streaming=False, decode=False)
    assert lazy[0]["native_language"] == "en"
    assert lazy[0]["impairment"] is None
    folders = []
    for number, source in enumerate(({"data": "srb"}, {"corpus": {"en-mine": corpus}})):
        named = srb_api.RunOptions(name=f"m{number}")
        out = f"runs/m{number}"
        run = srb_api.evaluate(transcribe, "en-mine_gain_sev1", out=out, run_options=named, progress=False, **source)
        folders.append(run.folder)
    assert run.predictions("en-mine_clean")[1]["columns"] == {
        **{"native_language": "yo", "domain": "telephony", "impairment": "none", "source_": "s1"}
    }
    lines = [open_run(folder).read("en-mine_gain_sev1").column("columns") for folder in folders]
    assert lines[0] == lines[1]
    # results: the WER of each group, worked out by hand from `transcribe`
    groups = run.json["configs"]["en-mine_clean"]["slices"]["columns"]
    assert {g: cell["wer"] for g, cell in groups["domain"].items()} == {
        "meetings": 0,
        "telephony": pytest.approx(66.6667),
    }
    assert load_groups(run.folder, "domain")["meetings"].configs["en-mine_clean"].wer.value == 0
    assert {row["domain"] for row in run.to_records(groups="domain")} == {"meetings", "telephony"}
    assert "en telephony" in run.table(groups="domain")
    assert main(["table", *map(str, folders), "--groups", "domain"]) == 0
    assert "en meetings" in capsys.readouterr().out
    assert main(["fairness", *map(str, folders), "--groups", "native_language", "--comprehensible", "0"]) == 0
    assert "yo: 2 clips" in capsys.readouterr().out
    assert main(["compare", *map(str, folders), "--groups", "domain", "--replicates", "20", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {row["language"] for row in rows} == {"en meetings", "en telephony"}
    assert main(["table", str(folders[0]), "--groups", "domian"]) == 2
    assert "did you mean domain?" in capsys.readouterr().err


def test_the_content_of_a_config_does_not_depend_on_them(corpus, tmp_path):
    build_configs(corpus, tmp_path / "with", "en-mine_gain_sev1")
    rows = list(csv.DictReader((corpus / "manifest.csv").open()))
    with (corpus / "manifest.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ("file", "text", "gender"), extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    build_configs(corpus, tmp_path / "without", "en-mine_gain_sev1")
    manifests = [
        json.loads((tmp_path / where / "en-mine_gain_sev1" / "_manifest.json").read_text())
        for where in ("with", "without")
    ]
    assert manifests[0]["content_sha256"] == manifests[1]["content_sha256"]
    assert manifests[0]["fingerprint"] != manifests[1]["fingerprint"]
    assert "columns" not in manifests[1]


def test_columns_of_a_hub_dataset_go_along_classes_by_name(tmp_path):
    buffer = io.BytesIO()
    soundfile.write(buffer, np.zeros(1600), 16_000, format="FLAC")
    plain = datasets.Dataset.from_dict(
        {
            "audio": [{"bytes": buffer.getvalue(), "path": f"{i}.flac"} for i in range(3)],
            "text": ["a", "b", "c"],
            "region": [1, -1, 0],
            "device": ["phone", None, "headset"],
            "seconds_of_silence": [0.5, 1.0, float("nan")],
            "words": [["a"], ["b"], ["c"]],
        }
    )
    kinds = {"audio": datasets.Audio(decode=False), "region": datasets.ClassLabel(names=["north", "south"])}
    plain.cast(datasets.Features({**plain.features, **kinds})).save_to_disk(tmp_path / "saved")
    clips = open_corpus(f"hf:{tmp_path / 'saved'}", "en", "mine").utterances
    assert [dict(clip.columns) for clip in clips] == [
        {"region": "south", "device": "phone", "seconds_of_silence": "0.5"},
        {"seconds_of_silence": "1.0"},
        {"region": "north", "device": "headset"},
    ]


@pytest.mark.parametrize(
    ("names", "stored"),
    [
        (["Sentence Domain", "sha256", "pitch"], ["domain", "sha256_", "pitch_"]),
        (["sentence_domain", "domain"], ["sentence_domain", "domain"]),
        (["\x1b[31mred", "ＲＥＧＩＯＮ", "región"], ["31mred", "region", "región"]),
        (["", "  ", "--"], []),
    ],
)
def test_names_of_columns(names, stored):
    assert list(column_names(names, "x").values()) == stored


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a b", "A_B"], "two of its columns would both be called 'a_b'"),
        (["x" * 65], "more than 64 characters"),
        ([f"c{i}" for i in range(MOST_COLUMNS + 1)], "at most 64 go along"),
    ],
)
def test_names_that_are_refused(names, message):
    with pytest.raises(UserError, match=message) as refused:
        column_names(names, "list.csv")
    assert "\n" not in str(refused.value)
    assert str(refused.value).startswith("list.csv: ")


def test_values_that_are_refused(tmp_path):
    rows = [
        {"file": "0.wav", "text": "a", "region": "\x1b[2J"},
        {"file": "1.wav", "text": "b", "region": "x" * (LONGEST_VALUE + 1)},
        {"file": "2.wav", "text": "c", "region": "north"},
    ]
    corpus = open_corpus(manifest(tmp_path / "corpus", rows), "en", "mine")
    assert [clip.id for clip in corpus.utterances] == ["2"]
    assert [problem.what.partition(" (")[0] for problem in corpus.problems] == [
        "its region has the control character U+001B",
        "its region is longer than 2000 characters",
    ]


def test_a_submission_does_not_hold_them(corpus, tmp_path):
    from speech_robust_bench.push.submission import make

    run = srb_api.evaluate(transcribe, "en-mine_clean", corpus={"en-mine": corpus}, out=tmp_path / "m", progress=False)
    sent = make(run.folder, tmp_path / "sent", {"name": "m"})
    line = json.loads((sent / "en-mine_clean.jsonl").read_text().splitlines()[0])
    assert list(line)[-1] == "loudness_dbfs"
    assert "native_language" not in "".join(path.read_text() for path in sent.iterdir())
    import hashlib

    recorded = json.loads((sent / "run.json").read_text())["configs"]["en-mine_clean"]["sha256"]
    assert recorded == hashlib.sha256((sent / "en-mine_clean.jsonl").read_bytes()).hexdigest()
