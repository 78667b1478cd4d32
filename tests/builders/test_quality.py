"""Quality scores against the packages that define them, and the columns that `srb quality` adds."""

import copy
import os
import shutil
import sys

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from speech_robust_bench.builders import quality, quality_columns
from speech_robust_bench.builders.corpora import open_corpus
from speech_robust_bench.cli.main import main
from speech_robust_bench.core.audio import encode_flac, to_pcm16
from speech_robust_bench.core.errors import UserError

pytest.importorskip("speechmos", reason="speechmos is not installed")
pesq = pytest.importorskip("pesq", reason="pesq is not installed")


SIZE = 38_400  # 2.4 s, four times which fill one window and not two: the cheapest clip to score


@pytest.fixture(scope="module")
def speech():
    """A minute of the demo corpus."""
    clips = open_corpus(None, "en", "demo").utterances
    return np.concatenate([clip.load() for clip in clips[::3]])


def test_dnsmos_equals_speechmos(speech):
    from speechmos import dnsmos

    clip = speech[:200_123]  # three windows, so that what they share and their edges both count
    theirs = dnsmos.run(clip, 16_000)
    ours = quality.dnsmos(clip)
    for name in ("p808", "sig", "bak", "ovrl"):
        assert ours[f"dnsmos_{name}"] == pytest.approx(float(theirs[f"{name}_mos"]), abs=1e-5)
    assert quality.p808(clip) == ours["dnsmos_p808"]


class Nothing:
    """In place of the large network, so that many windows can be compared in a short time."""

    def run(self, outputs, inputs):
        return np.zeros((1, 1, 3))


# Shorter than a window (repeated), just short of one (doubled: nine windows, of which rounding drops some), and longer.
@pytest.mark.parametrize("size", [1_000, 30_001, 144_159, 144_160, 160_000, 300_000])
def test_windows_are_those_of_speechmos(speech, size):
    from speechmos import dnsmos

    if dnsmos.dnsmos is None:
        dnsmos.run(speech[:1_000], 16_000)
    theirs = copy.copy(dnsmos.dnsmos)
    theirs.onnx_sess = Nothing()
    expected = theirs(speech[:size], 16_000, False)["p808_mos"]
    assert quality.p808(speech[:size]) == pytest.approx(float(expected), abs=1e-5)


def test_silence_too(speech):
    assert np.isfinite(quality.p808(np.zeros(1_000, np.float32)))


def test_pesq_equals_the_package(speech):
    clean = speech[:64_000]
    noisy = clean + 0.02 * np.random.default_rng(0).standard_normal(64_000).astype(np.float32)
    assert quality.pesq(noisy, clean) == pytest.approx(pesq.pesq(16_000, clean, noisy, "wb"))
    assert quality.pesq(clean, clean) == pytest.approx(4.64, abs=0.01)  # the top of P.862.2's scale


def test_pesq_of_other_lengths(speech):
    clean = speech[:64_000]
    assert 1.0 <= quality.pesq(np.repeat(clean, 2), clean) <= 4.65
    assert 1.0 <= quality.pesq(clean[::2].copy(), clean) <= 4.65


def test_pesq_of_a_long_clip_is_the_same_in_its_own_process(speech):
    clean = speech[: 21 * 16_000]
    assert quality.pesq(0.5 * clean, clean) == pytest.approx(pesq.pesq(16_000, clean, 0.5 * clean, "wb"))


def test_what_has_no_pesq_is_none(speech):
    clean = speech[:64_000]
    assert quality.pesq(np.zeros_like(clean), clean) is None
    assert quality.pesq(clean, np.zeros_like(clean)) is None
    assert quality.pesq(clean[:1_000], clean[:1_000]) is None


def test_a_clip_that_overruns_the_reference_code_is_no_crash():
    """Bursts of 0.25 s every 0.5 s: 60 utterances, where the code of P.862 has room for 50."""
    bursts = np.random.default_rng(0).standard_normal(30 * 16_000).astype(np.float32) * 0.3
    bursts *= np.arange(len(bursts)) % 8_000 < 4_000
    assert quality.pesq(bursts, bursts) is None


def test_a_missing_package_is_one_clear_line(monkeypatch, speech):
    monkeypatch.setitem(sys.modules, "pesq", None)
    monkeypatch.setattr(quality.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install .*\[quality\]"):
        quality.pesq(speech, speech)


def config(root, name, clips, source=None):
    """A built config as docs/concepts/files.md describes it, in two files, as far as quality needs it."""
    rows = {
        "id": list(clips),
        "audio": [{"bytes": encode_flac(to_pcm16(clip)), "path": f"{clip_id}.flac"} for clip_id, clip in clips.items()],
        "text": ["words"] * len(clips),
        "source": [source] * len(clips),
    }
    plain = datasets.Dataset.from_dict(
        rows,
        features=datasets.Features(
            {
                "id": datasets.Value("string"),
                "audio": {"bytes": datasets.Value("binary"), "path": datasets.Value("string")},
                "text": datasets.Value("string"),
                "source": datasets.Value("string"),
            }
        ),
    )
    dataset = plain.cast(datasets.Features({**plain.features, "audio": datasets.Audio(decode=False)}))
    table = dataset.data.table
    (root / name).mkdir(parents=True)
    for part in range(2):
        pq.write_table(table.slice(part * 2, 2), root / name / f"test-0000{part}-of-00002.parquet", row_group_size=1)


@pytest.fixture
def built(tmp_path, speech):
    clean = {str(number): speech[number * SIZE : (number + 1) * SIZE] for number in range(3)}
    config(tmp_path / "srb", "en_clean", clean)
    loud = {clip_id: np.clip(10 * clip, -1, 1) for clip_id, clip in clean.items()}
    config(tmp_path / "srb", "en_gain_sev1", dict(reversed(loud.items())), "en_clean")
    return tmp_path / "srb"


def test_srb_quality_adds_the_columns(built, monkeypatch, tmp_path, speech):
    before = {path.name: pq.read_table(path) for path in (built / "en_gain_sev1").iterdir()}
    assert main(["quality", "--data", str(built), "en_gain*", "--workers", "2", "--quiet"]) == 0
    for path in (built / "en_gain_sev1").iterdir():
        table = pq.read_table(path)
        assert table.select(before[path.name].column_names).equals(before[path.name])
        assert table.schema.names[-5:] == list(quality.COLUMNS)
        assert {table.schema.field(name).type for name in quality.COLUMNS} == {pa.float32()}
        assert pq.ParquetFile(path).num_row_groups == len(table)
    assert missing_everywhere(built / "en_clean")  # was not asked for

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    rows = datasets.load_dataset("parquet", data_files=str(built / "en_gain_sev1" / "*.parquet"), split="train")
    assert isinstance(rows.features["audio"], datasets.Audio)
    clean = speech[:SIZE]
    loud = np.clip(10 * to_pcm16(clean).astype(np.float32) / 32_768, -1, 1)
    row = next(row for row in rows.cast_column("audio", datasets.Audio(decode=False)) if row["id"] == "0")
    assert row["pesq"] == pytest.approx(quality.pesq(loud, clean), abs=0.01)
    assert row["dnsmos_p808"] == pytest.approx(quality.p808(loud), abs=0.01)


def missing_everywhere(folder):
    return all(quality_columns.missing(path) == list(quality.COLUMNS) for path in folder.iterdir())


def test_a_second_run_computes_only_what_is_missing(built, monkeypatch, capsys):
    monkeypatch.setattr(quality_columns, "dnsmos", lambda samples: dict.fromkeys(quality.DNSMOS_COLUMNS, 3.0))
    assert main(["quality", "--data", str(built), "en_gain_sev1", "--no-pesq", "--workers", "1", "--quiet"]) == 0
    monkeypatch.setattr(quality_columns, "dnsmos", lambda samples: pytest.fail("computed twice"))
    monkeypatch.setattr(quality_columns, "pesq", lambda samples, clean: 2.0)
    assert main(["quality", "--data", str(built), "en_gain_sev1", "--workers", "1", "--quiet"]) == 0
    table = pq.read_table(built / "en_gain_sev1")
    assert table["dnsmos_sig"].to_pylist() == [3.0] * 3
    assert table["pesq"].to_pylist() == [2.0] * 3
    assert main(["quality", "--data", str(built), "en_gain_sev1", "--workers", "1", "--quiet"]) == 0
    assert "0 rows scored; 1 of 1 configs had their columns already" in capsys.readouterr().out


def test_an_interrupted_run_goes_on_where_it_was(built, monkeypatch, capsys):
    """Three clips in two files, interrupted in the second one."""
    before = pq.read_table(built / "en_clean")
    scored = []

    def interrupted(samples):
        scored.append(len(samples))
        if len(scored) == 3:
            raise KeyboardInterrupt
        return dict.fromkeys(quality.DNSMOS_COLUMNS, 3.0)

    monkeypatch.setattr(quality_columns, "dnsmos", interrupted)
    command = ["quality", "--data", str(built), "en_clean", "--workers", "1", "--quiet"]
    assert main(command) == 130
    files = sorted((built / "en_clean").glob("test-*"))
    assert pa.concat_tables(map(pq.read_table, files)).equals(before)
    assert [path.name for path in (built / "en_clean").glob(".*")] == [".test-00000-of-00002.parquet.quality"]
    assert main(command) == 0
    assert len(scored) == 4
    assert "1 rows scored; 0 of 1 configs" in capsys.readouterr().out
    assert pq.read_table(built / "en_clean")["dnsmos_bak"].to_pylist() == [3.0] * 3
    assert list((built / "en_clean").glob(".*")) == []


def test_a_successor_of_an_older_build_is_not_used(built, monkeypatch):
    monkeypatch.setattr(quality_columns, "dnsmos", lambda samples: dict.fromkeys(quality.DNSMOS_COLUMNS, 3.0))
    shard = built / "en_clean" / "test-00000-of-00002.parquet"
    list(quality_columns.add_columns(shard, quality.COLUMNS, quality_columns.CleanClips(built)))
    assert quality_columns.ready(shard, quality.COLUMNS)
    later = shard.stat().st_mtime + 10
    os.utime(shard, (later, later))  # as a new build leaves it
    assert not quality_columns.ready(shard, quality.COLUMNS)


def test_recordings_have_no_pesq(built, monkeypatch):
    monkeypatch.setattr(quality_columns, "dnsmos", lambda samples: dict.fromkeys(quality.DNSMOS_COLUMNS, 3.0))
    assert main(["quality", "--data", str(built), "en_clean", "--workers", "1", "--quiet"]) == 0
    assert pq.read_table(built / "en_clean")["pesq"].to_pylist() == [None] * 3


def test_mistakes_are_explained(built, capsys, tmp_path):
    assert main(["quality", "--data", str(built), "en_gain_sev2"]) == 2
    assert "has no config 'en_gain_sev2'; did you mean en_gain_sev1" in capsys.readouterr().err
    assert main(["quality", "--data", str(tmp_path / "nothing")]) == 2
    assert "has no built configs; make some with srb build" in capsys.readouterr().err
    shutil.rmtree(built / "en_clean")
    assert main(["quality", "--data", str(built), "--quiet", "--workers", "1"]) == 2
    assert "en_clean is not built: srb build en_clean" in capsys.readouterr().err
