"""A corpus gives only its own files: links that leave it, pipes and devices are refused before anything is read."""

import os

import numpy as np
import pytest
import soundfile
from support.speech import RATE

from speech_robust_bench.builders.corpora import as_sources, open_corpus
from speech_robust_bench.cli.main import main
from speech_robust_bench.core.errors import UserError


@pytest.fixture
def corpus(tmp_path):
    """A folder with one clip, and files outside of it."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    for path in (folder / "a.wav", tmp_path / "private.wav"):
        soundfile.write(path, np.full(RATE // 2, 0.1, np.float32), RATE)
    (folder / "a.txt").write_text("a cat")
    (tmp_path / "secret.txt").write_text("root x 0 0")
    return folder


def texts(source):
    return [clip.text for clip in open_corpus(source, "en", "mine")]


def test_a_transcript_that_links_outside_is_not_published(corpus, tmp_path, capsys):
    (corpus / "a.txt").unlink()
    (corpus / "a.txt").symlink_to(tmp_path / "secret.txt")
    command = ["build", "en-mine_clean", "--corpus", f"en-mine={corpus}", "--out", str(tmp_path / "srb")]
    assert main(command) == 2
    error = capsys.readouterr().err
    assert "a.txt: is a link to" in error
    assert "--follow-links" in error
    assert main([*command, "--follow-links"]) == 0


@pytest.mark.parametrize("target", ["secret.txt", "private.wav", "."])
def test_any_link_that_leaves_is_refused_and_can_be_allowed(corpus, tmp_path, target):
    (corpus / "sub").mkdir()
    (corpus / "sub" / "link").symlink_to(tmp_path / target)
    with pytest.raises(UserError, match="outside the corpus"):
        texts(corpus)
    assert "a cat" in texts(f"links:{corpus}")


def test_links_inside_the_corpus_and_to_the_corpus_are_followed(corpus, tmp_path):
    for suffix in (".wav", ".txt"):
        (corpus / f"b{suffix}").symlink_to(f"a{suffix}")
    (tmp_path / "elsewhere").symlink_to(corpus)
    assert texts(tmp_path / "elsewhere") == ["a cat", "a cat"]


def test_a_known_layout_is_checked_too(tmp_path):
    chapter = tmp_path / "LibriSpeech" / "test-clean" / "1" / "2"
    chapter.mkdir(parents=True)
    soundfile.write(chapter / "1-2-0000.flac", np.full(RATE, 0.1, np.float32), RATE)
    (tmp_path / "other.txt").write_text("1-2-0000 PRIVATE WORDS\n")
    (chapter / "1-2.trans.txt").symlink_to(tmp_path / "other.txt")
    with pytest.raises(UserError, match="outside the corpus"):
        open_corpus(tmp_path / "LibriSpeech", "en").utterances  # noqa: B018
    assert len(open_corpus(f"links:{tmp_path / 'LibriSpeech'}", "en").utterances) == 1


def test_audio_that_a_manifest_names_through_a_link_is_refused(corpus, tmp_path):
    (corpus / "b.wav").symlink_to(tmp_path / "private.wav")
    (corpus / "list.csv").write_text("audio,text\nb.wav,words\n")
    with pytest.raises(UserError, match=r"b\.wav: is a link to"):
        texts(corpus / "list.csv")
    assert texts(f"links:{corpus / 'list.csv'}") == ["words"]
    (corpus / "list.csv").write_text(f"audio,text\n{tmp_path / 'private.wav'},named outright\n")
    assert texts(corpus / "list.csv") == ["named outright"]


def test_a_folder_as_a_dataset_is_checked_too(corpus, tmp_path):
    (corpus / "metadata.csv").write_text("file_name,text\na.wav,a cat\n")
    (corpus / "link.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(UserError, match="outside the corpus"):
        texts(f"hf:{corpus}::train")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
@pytest.mark.parametrize("name", ["manifest.csv", "a.txt"])
def test_a_pipe_is_refused_and_not_waited_for(corpus, name):
    (corpus / name).unlink(missing_ok=True)
    os.mkfifo(corpus / name)
    for source in (corpus, corpus / name, f"links:{corpus}"):
        with pytest.raises(UserError, match="is a pipe or a device"):
            texts(source)


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no such device here")
def test_a_device_is_no_manifest(corpus):
    with pytest.raises(UserError, match="is a pipe or a device"):
        texts("/dev/zero")


def test_the_option_marks_every_source_that_was_given():
    corpora = {"en": "/data/a", "es-mine": "links:b", "en-demo": None}
    assert as_sources(corpora, follow_links=True) == {
        ("en", "librispeech"): "links:/data/a",
        ("es", "mine"): "links:b",
        ("en", "demo"): None,
    }
