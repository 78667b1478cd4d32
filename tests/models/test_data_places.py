"""Every place that `--data` can name: a built folder, the datasets cache, the Hub, the authors' published data."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.run_folders import lines, run_json, srb_run
from support.small_configs import tone, write_config

from speech_robust_bench.builders import config_sources, configs
from speech_robust_bench.builders.config_sources import open_data
from speech_robust_bench.builders.configs import ClipRow
from speech_robust_bench.core.audio import encode_flac, to_pcm16
from speech_robust_bench.models.transcriber import plan

HEARD = [f"clip {i} in en" for i in range(23)]


def published_split(folder: Path, config: str, split: str, count: int = 23) -> None:
    """One split as the authors publish it: file, audio, text, speaker_id, chapter_id, id."""
    audio = [{"bytes": encode_flac(to_pcm16(tone(i))), "path": None} for i in range(count)]
    table = pa.table(
        {
            "file": [f"/root/{i}.flac" for i in range(count)],
            "audio": pa.array(audio, pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
            "text": [f"REFERENCE {i}" for i in range(count)],
            "speaker_id": [1000 + i % 3 for i in range(count)],
            "chapter_id": [5] * count,
            "id": [f"1089-134686-{i:04d}" for i in range(count)],
        }
    )
    (folder / config).mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / config / f"{split}-00000-of-00001.parquet", row_group_size=7)


@pytest.fixture
def authors(tmp_path: Path) -> Path:
    folder = tmp_path / "authors"
    for split in ("None.0", "gnoise.1", "env_noise_esc50.4", "voice_conversion_vctk.1"):
        published_split(folder, "librispeech_asr-test.clean", split)
    published_split(folder, "multilingual_librispeech-spanish_test", "pitch_up.2", 5)
    published_split(folder, "social_ami", "farfield", 5)
    return folder


def test_the_authors_data_under_our_names(authors: Path, tmp_path: Path) -> None:
    ours = ["en_clean", "en_gaussian_sev1", "en_noise_esc50_sev4", "en_social_ami_far", "en_tts", "es_pitch_up_sev2"]
    assert open_data(str(authors)).names() == ours
    assert srb_run("python:support.standin:count", authors, tmp_path / "runs", "en_gauss*", "es_*") == 0
    got = lines(tmp_path / "runs/support.standin-count/en_gaussian_sev1.jsonl")
    assert [line["pred_text"] for line in got] == HEARD
    assert (got[4]["speaker"], got[4]["text"], got[4]["language"]) == ("1001", "REFERENCE 4", "en")
    assert got[4]["duration"] == pytest.approx(len(tone(4)) / 16_000)
    about = run_json(tmp_path / "runs/support.standin-count")["configs"]
    assert (about["en_gaussian_sev1"]["scenario"], about["en_gaussian_sev1"]["severity"]) == ("gaussian", 1)
    assert about["en_gaussian_sev1"]["source"] == "en_clean"
    assert about["es_pitch_up_sev2"]["language"] == "es"


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (("librispeech_asr-test.clean", "None.0"), "en_clean"),
        (("librispeech_asr-test.clean", "env_noise.3"), "en_noise_sev3"),
        (("librispeech_asr-test.clean", "universal_adv.2"), "en_universal_sev2"),
        (("librispeech_asr-test.clean", "real_rir.4"), "en_real_rir_sev4"),
        (("multilingual_librispeech-german_test", "gnoise.4"), "de_gaussian_sev4"),
        (("multilingual_librispeech-spanish_test", "voice_conversion_bark.1"), "es_tts"),
        (("tedlium-release3_test", "chorus.4"), "en-tedlium_chorus_sev4"),
        (("accented_cv", "test.clean"), "en_accent"),
        (("accented_cv_fr", "test"), "fr_accent"),
        (("social_chime", "nearfield"), "en_social_chime_near"),
    ],
)
def test_their_splits_have_names_of_ours(theirs: tuple[str, str], ours: str) -> None:
    assert config_sources.config_name(*theirs) == ours


def test_splits_without_a_name_of_ours_are_left_out() -> None:
    assert config_sources.config_name("accented_cv", "test") is None  # the 1,355 clips before the quality filter
    assert config_sources.config_name("librispeech_asr-test.clean_pertEval_500_30", "gnoise.1") is None


def test_the_datasets_cache(tones: Path, tmp_path: Path, monkeypatch) -> None:
    datasets = pytest.importorskip("datasets")
    from speech_robust_bench.builders.dataset import to_cache

    cache = tmp_path / "cache"
    for module in (datasets.config, datasets.builder.config):
        monkeypatch.setattr(module, "HF_DATASETS_CACHE", cache)
    for name in ("en-demo_clean", "en-demo_noise_sev3"):
        to_cache(tones, name)
    monkeypatch.chdir(tmp_path / "srb" / "en-demo_clean")  # where there is no folder ./srb
    assert open_data("srb").names() == ["en-demo_clean", "en-demo_noise_sev3"]
    assert srb_run("python:support.standin:count", Path("srb"), tmp_path / "runs") == 0
    assert [line["pred_text"] for line in lines(tmp_path / "runs/support.standin-count/en-demo_clean.jsonl")] == HEARD


@pytest.mark.parametrize("repo", ["someone/srb", config_sources.AUTHORS_REPO])
def test_the_hub(tones: Path, authors: Path, tmp_path: Path, monkeypatch, repo: str) -> None:
    import huggingface_hub

    mirror = authors if repo == config_sources.AUTHORS_REPO else tones
    fetched = []

    def list_repo_files(self, repo_id, repo_type, revision):
        assert (repo_id, repo_type, revision) == (repo, "dataset", "v1")
        return [path.relative_to(mirror).as_posix() for path in mirror.rglob("*") if path.is_file()]

    def hf_hub_download(repo_id, file, repo_type, revision):
        fetched.append(file)
        return str(mirror / file)

    monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_files", list_repo_files)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", hf_hub_download)
    config = "en_gaussian_sev1" if repo == config_sources.AUTHORS_REPO else "en-demo_clean"
    monkeypatch.chdir(tmp_path)
    assert srb_run("python:support.standin:count", Path(f"{repo}@v1"), tmp_path / "runs", config) == 0
    assert [line["pred_text"] for line in lines(tmp_path / f"runs/support.standin-count/{config}.jsonl")] == HEARD
    assert len(fetched) == (1 if repo == config_sources.AUTHORS_REPO else 2)  # its shard, and our manifest


def test_a_hub_that_does_not_answer_is_one_line(tmp_path: Path, monkeypatch, capsys) -> None:
    import huggingface_hub

    def fail(self, *_, **__):
        raise ConnectionError("no route\nto host")

    monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_files", fail)
    assert srb_run("python:support.standin:count", Path("someone/srb"), tmp_path / "runs") == 2
    assert "neither a folder here nor a dataset that the Hub gives (no route)" in capsys.readouterr().err


def test_small_windows_give_the_same_predictions(tones: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(configs, "WINDOW_BYTES", 1)  # one row group of four clips at a time
    assert srb_run("python:support.standin:count", tones, tmp_path / "runs", "en-demo_clean") == 0
    assert [line["pred_text"] for line in lines(tmp_path / "runs/support.standin-count/en-demo_clean.jsonl")] == HEARD


def test_an_id_that_occurs_twice_is_refused(tmp_path: Path, capsys) -> None:
    place = write_config(tmp_path / "srb", "en-demo_clean", [tone(0), tone(1)])
    table = pq.read_table(place / "test-00000-of-00001.parquet")
    pq.write_table(pa.concat_tables([table.slice(0, 1)] * 2), place / "test-00000-of-00001.parquet")
    assert srb_run("python:support.standin:count", tmp_path / "srb", tmp_path / "runs") == 2
    assert "'clip-0000' occurs twice" in capsys.readouterr().err


@given(
    durations=st.lists(st.floats(0, 60), max_size=60),
    batch_size=st.integers(1, 9),
    batch_seconds=st.none() | st.floats(1, 100),
)
def test_batches_hold_every_clip_once_and_keep_their_bounds(durations, batch_size, batch_seconds) -> None:
    rows = [
        ClipRow(i, str(i), "", duration, "en" if i % 3 else "es", None, None, None, None)
        for i, duration in enumerate(durations)
    ]
    batches = plan(rows, batch_size, batch_seconds)
    assert sorted(row.position for batch in batches for row in batch) == list(range(len(rows)))
    for batch in batches:
        assert len(batch) <= batch_size
        assert len({row.language for row in batch}) == 1
        assert [row.duration for row in batch] == sorted((row.duration for row in batch), reverse=True)
        if batch_seconds is not None and len(batch) > 1:
            assert len(batch) * batch[0].duration <= batch_seconds


def test_text_that_unpacks_to_gigabytes_is_one_line(tmp_path, monkeypatch, capsys) -> None:
    """Each group is small enough; all of them together are not."""
    monkeypatch.setattr(configs, "MOST_TEXT_BYTES", 5_000_000)
    write_config(tmp_path / "srb", "en-demo_noise_sev3", [tone(i) for i in range(20)], texts=["x" * 500_000] * 20)
    assert srb_run("python:support.standin:count", tmp_path / "srb", tmp_path / "runs") == 2
    assert "en-demo_noise_sev3: its rows hold more than 5 MB beside the audio" in capsys.readouterr().err


def test_one_row_group_of_too_much_text_is_one_line(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(configs, "MOST_TEXT_BYTES", 1_000_000)
    write_config(tmp_path / "srb", "en-demo_noise_sev3", [tone(0)], texts=["x" * 2_000_000])
    assert srb_run("python:support.standin:count", tmp_path / "srb", tmp_path / "runs") == 2
    assert "row group 0 unpacks to more than 0.001 GB" in capsys.readouterr().err
