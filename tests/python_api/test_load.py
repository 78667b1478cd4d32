"""`srb.load`: rows equal to those of the built config, hash by hash, without a build."""

import numpy as np
import pyarrow.parquet as pq
import pytest

import speech_robust_bench as srb
from speech_robust_bench.cli.main import main
from speech_robust_bench.core.audio import read

CONFIGS = ["en-demo_clean", "en-demo_noise_sev3", "en-demo_slow_sev4"]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built") / "srb"
    assert main(["build", *CONFIGS, "--limit", "4", "--out", str(folder)]) == 0
    return folder


@pytest.mark.parametrize("config", CONFIGS)
def test_rows_equal_those_of_the_built_config(built, config):
    wanted = [row for path in sorted((built / config).glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
    assert list(srb.load(config, limit=4, decode=False)) == wanted
    for row, stored in zip(srb.load(config, limit=4), wanted, strict=True):
        audio = row.pop("audio")
        assert np.array_equal(audio["array"], read(stored.pop("audio")["bytes"]))
        assert audio["sampling_rate"] == 16_000
        assert row == stored


def test_map_style_perturbs_what_is_indexed():
    streamed = list(srb.load("en-demo_noise_sev3", limit=4))
    dataset = srb.load("en-demo_noise_sev3", limit=4, streaming=False)
    assert len(dataset) == 4
    assert dataset[2]["sha256"] == streamed[2]["sha256"]
    assert dataset[1:3]["sha256"] == [row["sha256"] for row in streamed[1:3]]
    assert np.array_equal(dataset[3]["audio"]["array"], streamed[3]["audio"]["array"])


def test_a_data_loader_with_workers_reads_every_row_once():
    torch = pytest.importorskip("torch")
    dataset = srb.load("en-demo_gain_sev1", limit=5)
    for workers in (0, 2):
        loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=workers)
        assert sorted(row["id"] for row in loader) == sorted(row["id"] for row in dataset)


def test_a_corpus_of_ones_own(tmp_path):
    import soundfile

    soundfile.write(tmp_path / "a.wav", np.sin(np.arange(8000) / 9) / 2, 8000)
    (tmp_path / "a.txt").write_text("hello world")
    for corpus in (tmp_path, {"en-mine": tmp_path}):
        (row,) = srb.load("en-mine_gaussian_sev1", corpus)
        assert (row["id"], row["text"], row["corpus"]) == ("a", "hello world", "mine")
        made = srb.perturb(*soundfile.read(tmp_path / "a.wav"), "gaussian", 1, corpus="mine", id="a")
        assert np.array_equal(row["audio"]["array"], made.samples)


@pytest.mark.parametrize(
    ("config", "corpus", "said"),
    [
        ("en-demo_nosie_sev3", None, "did you mean noise"),
        ("en-demo_noise", None, "needs a severity"),
        ("noise", None, "not a config name"),
        ("en_clean", None, "no data for LibriSpeech"),
        ("en-mine_clean", "/nowhere/at/all", "no such folder"),
        ("en-mine_clean", {"en mine": "x"}, "LANGUAGE-NAME=PATH"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(config, corpus, said):
    with pytest.raises(ValueError, match=said):
        srb.load(config, corpus)
