"""One row and the tables of many, from utterances made here: every field by hand, no build."""

import io
import json

import numpy as np
import pyarrow as pa
import pytest
import soundfile

from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.corpora import Utterance
from speech_robust_bench.builders.plan import job_named
from speech_robust_bench.builders.row_generator import SCHEMA, Row, RowGenerator, own_columns, schema_with
from speech_robust_bench.core.rows import row_digest
from speech_robust_bench.core.seeding import clip_rng

SAMPLES = np.array([0.5, -0.25, 0, 1, -1], np.float32)


class Spoken:
    """The sound of synthetic speech, which knows its voice."""

    name = "voice"
    parameters = {"voice": "slt"}  # noqa: RUF012


def utterance(clip_id: str = "c1", audio: object = None, **more: object) -> Utterance:
    known = {"speaker": "s1", "gender": "female", "age": "30", "accent": "Scottish", "licence": "MIT"}
    return Utterance(clip_id, audio, "good morning", "en", corpus="mine", **(known | more))  # type: ignore[arg-type]


def made(job: str, clip: Utterance, samples: np.ndarray, seed: str = "") -> Row:
    [row] = RowGenerator((job_named(job),), Banks(), seed).rows(clip, samples)
    return row


def test_every_field_of_a_clean_row():
    columns = (("region", "north"), ("device", "phone"))
    row = made("en-mine_clean", utterance(columns=columns), SAMPLES).stored()
    stored, rate = soundfile.read(io.BytesIO(row["audio"].pop("bytes")), dtype="int16")
    assert stored.tolist() == [16384, -8192, 0, 32767, -32768]
    assert rate == 16_000
    assert row == {
        "id": "c1",
        "audio": {"path": "c1.flac"},
        "text": "good morning",
        "language": "en",
        "speaker": "s1",
        "gender": "female",
        "age": "30",
        "accent": "Scottish",
        "corpus": "mine",
        "licence": "MIT",
        "duration": 5 / 16_000,
        "source": None,
        "scenario": "clean",
        "severity": 0,
        "parameters": "{}",
        "snr_db": None,
        "clipped": 0,
        "sha256": row_digest("c1", "good morning", stored),
        "region": "north",
        "device": "phone",
    }


def test_a_perturbed_row_says_what_was_done():
    clip = np.random.default_rng(1).uniform(-0.1, 0.1, 1600).astype(np.float32)
    perturbed = made("en-mine_gaussian_sev2", utterance(), clip)
    row, pcm = perturbed.decoded(), perturbed.pcm
    assert (row["scenario"], row["severity"], row["source"]) == ("gaussian", 2, "en-mine_clean")
    assert json.loads(row["parameters"]) == {"snr_db": 20}
    assert row["snr_db"] == pytest.approx(20, abs=0.01)
    assert (row["audio"]["path"], row["audio"]["sampling_rate"]) == ("c1.flac", 16_000)
    assert row["audio"]["array"].tolist() == (pcm / np.float32(32768)).tolist()
    noise = clip_rng("mine", "c1", "gaussian", 2).standard_normal(1600, dtype=np.float32).astype(np.float64)
    scale = np.sqrt((clip.astype(np.float64) ** 2).sum() / (noise**2).sum() / 100)
    assert np.abs(pcm / 32768 - (clip + scale * noise)).max() < 1 / 32768
    assert made("en-mine_gaussian_sev2", utterance(), clip, "private").sha256 != row["sha256"]


def test_a_recording_beyond_full_scale_is_clipped_and_counted():
    row = made("en-mine_clean", utterance(), np.array([2, -1.5, 1, -1, 0.5], np.float32))
    assert row.perturbed.clipped == 2
    assert row.pcm.tolist() == [32767, -32768, 32767, -32768, 16384]


def test_synthetic_speech_tells_its_voice():
    spoken = made("en-mine_clean", utterance(audio=Spoken()), SAMPLES).stored()
    assert json.loads(spoken["parameters"]) == {"voice": "slt"}
    silent = made("en-mine_silence", utterance(), SAMPLES)
    assert silent.stored()["text"] == ""
    assert silent.sha256 == row_digest("c1", "", silent.pcm)


def test_the_schema_has_the_columns_of_the_corpus_last():
    schema = schema_with(["region"])
    assert schema.names == [*SCHEMA.names, "region"]
    assert schema.field("audio").type == pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    kinds = {name: str(schema.field(name).type) for name in ("duration", "severity", "clipped", "region")}
    assert kinds == {"duration": "double", "severity": "int32", "clipped": "int64", "region": "string"}
    features = json.loads(schema.metadata[b"huggingface"])["info"]["features"]
    assert features["audio"] == {"sampling_rate": 16_000, "_type": "Audio"}
    assert features["severity"] == {"dtype": "int32", "_type": "Value"}
    assert features["region"] == {"dtype": "string", "_type": "Value"}
    assert list(features) == schema.names


def test_the_columns_of_a_corpus_are_all_that_any_clip_has():
    first, second = utterance(columns=(("b", "1"), ("a", "2"))), utterance(columns=(("a", "3"), ("c", "4")))
    assert own_columns([first, second]) == ("b", "a", "c")
    assert own_columns([utterance()]) == ()


@pytest.mark.parametrize("count", [1, 25, 27])
def test_tables_hold_the_rows_of_every_clip_in_order(count):
    """25 clips are gathered at a time; a column that a clip lacks is null."""
    jobs = ("en-mine_gain_sev1", "en-mine_gain_sev2")
    clips = [
        (utterance(f"c{n}", columns=(("region", f"r{n}"),) if n % 2 else ()), SAMPLES * np.float32(n / 32 / count))
        for n in range(count)
    ]
    tables = RowGenerator(tuple(map(job_named, jobs)), Banks(), "secret").tables(clips, ["region"])
    assert len(tables) == 2
    for job, table in zip(jobs, tables, strict=True):
        rows = [{"region": None} | made(job, *clip, "secret").stored() for clip in clips]
        assert table.schema.equals(schema_with(["region"]), check_metadata=True)
        assert table.to_pylist() == [{name: row[name] for name in table.schema.names} for row in rows]


def test_tables_without_columns_and_with_a_secret():
    jobs, clips = (job_named("en-mine_gaussian_sev4"),), [(utterance(), np.full(400, 0.1, np.float32))]
    (plain,), (secret,) = (RowGenerator(jobs, Banks(), seed).tables(clips) for seed in ("", "secret"))
    assert plain.schema.equals(SCHEMA, check_metadata=True)
    assert plain["sha256"].to_pylist() != secret["sha256"].to_pylist()
    assert plain["sha256"][0].as_py() == made("en-mine_gaussian_sev4", *clips[0]).sha256


def test_the_analysis_of_a_clip_is_made_once_for_all_severities(monkeypatch):
    jobs = tuple(job_named(f"en-mine_pitch_up_sev{level}") for level in (1, 2))
    clip = np.sin(np.arange(3200) / 9).astype(np.float32) / 2
    alone = [made(str(job.name), utterance(), clip).sha256 for job in jobs]
    asked = []
    scenario = jobs[0].scenario
    monkeypatch.setitem(
        scenario.__dict__, "prepare", lambda samples, prepare=scenario.prepare: asked.append(1) or prepare(samples)
    )
    assert [row.sha256 for row in RowGenerator(jobs, Banks()).rows(utterance(), clip)] == alone
    assert asked == [1]
