"""A build loses nothing: it touches only what it made, and makes anew what is damaged."""

import json
import os
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import soundfile
from support.speech import speech_like

from speech_robust_bench.builders import build as builder
from speech_robust_bench.builders.manifests import read_manifest
from speech_robust_bench.cli.main import main
from speech_robust_bench.core.audio import RATE
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.seeding import edition_name

CLIPS = 3


@pytest.fixture
def corpus(tmp_path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    for number in range(CLIPS):
        soundfile.write(folder / f"{number}.wav", speech_like(1, number), RATE, "PCM_16")
        (folder / f"{number}.txt").write_text(f"sentence number {number}")
    return folder


def build(out: Path, corpus: Path, *words: str) -> int:
    return main(["build", "en-mine_clean", "--out", str(out), "--corpus", f"en-mine={corpus}", *words])


def content(out: Path) -> str:
    return read_manifest(out / "en-mine_clean").content_sha256


@pytest.mark.parametrize("damage", ["deleted", "cut", "fewer rows"])
def test_a_config_with_a_bad_shard_is_not_already_there(tmp_path, corpus, monkeypatch, capsys, damage):
    out = tmp_path / "srb"
    monkeypatch.setattr("speech_robust_bench.builders.row_generator.ROWS_PER_SHARD", 1)
    assert build(out, corpus) == 0
    before = content(out)
    shard = out / "en-mine_clean" / "test-00001-of-00003.parquet"
    if damage == "deleted":
        shard.unlink()
    elif damage == "cut":
        shard.write_bytes(shard.read_bytes()[:-100])
    else:
        pq.write_table(pq.read_table(shard).slice(0, 0), shard)
    with pytest.raises(UserError, match="en-mine_clean"):
        builder.shard_paths(out / "en-mine_clean", read_manifest(out / "en-mine_clean"))
    assert build(out, corpus) == 0
    assert "1 configs built, 0 already there" in capsys.readouterr().out
    assert pq.read_table(out / "en-mine_clean").num_rows == CLIPS
    assert content(out) == before


def test_other_samples_of_the_same_size_and_time_are_noticed(tmp_path, corpus, capsys):
    out, clip = tmp_path / "srb", corpus / "1.wav"
    assert build(out, corpus) == 0
    state = clip.stat()
    soundfile.write(clip, speech_like(1, 99), RATE, "PCM_16")
    os.utime(clip, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert clip.stat().st_size == state.st_size
    assert build(out, corpus) == 2
    assert "built from other clips" in capsys.readouterr().err


def test_other_noises_of_the_same_size_and_time_are_noticed(tmp_path, corpus, capsys):
    out, noise = tmp_path / "srb", tmp_path / "noises" / "rain.wav"
    noise.parent.mkdir()
    soundfile.write(noise, speech_like(1, 1), RATE, "PCM_16")
    words = ["en-mine_noise_sev1", "--corpus", f"en-mine={corpus}", "--noise-dir", str(noise.parent), "--out", str(out)]
    assert main(["build", *words]) == 0
    state = noise.stat()
    soundfile.write(noise, speech_like(1, 2), RATE, "PCM_16")
    os.utime(noise, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert noise.stat().st_size == state.st_size
    assert main(["build", *words]) == 2
    assert "built from other clips, noises" in capsys.readouterr().err


def test_a_clip_that_changes_during_the_build_stops_it(tmp_path, corpus, monkeypatch, capsys):
    def spoil_then_write(shard, tick):
        soundfile.write(corpus / "2.wav", speech_like(1, 98), RATE, "PCM_16")
        write_shard(shard, tick)

    write_shard = builder.write_shard
    monkeypatch.setattr(builder, "write_shard", spoil_then_write)
    assert build(tmp_path / "srb", corpus) == 2
    assert "2.wav: has changed while the build was running" in capsys.readouterr().err
    monkeypatch.setattr(builder, "write_shard", write_shard)
    assert build(tmp_path / "srb", corpus) == 0


@pytest.mark.parametrize("damage", ["bit flipped", "cut", "not parquet", "hash missing"])
def test_a_bad_shard_of_an_interrupted_build_is_made_anew(tmp_path, corpus, monkeypatch, damage):
    assert build(tmp_path / "whole", corpus) == 0
    out = tmp_path / "srb"

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(builder, "_finish", stop)
        assert build(out, corpus) == 130
    [shard] = out.glob(".partial/*/*.parquet")
    data = bytearray(shard.read_bytes())
    if damage == "bit flipped":
        data[len(data) // 3] ^= 4
    elif damage == "hash missing":
        shard.with_name(f"{shard.name}.sha256").unlink()
    shard.write_bytes({"cut": data[:-50], "not parquet": b"PAR1"}.get(damage, bytes(data)))
    assert build(out, corpus) == 0
    assert content(out) == content(tmp_path / "whole")
    assert (out / "en-mine_clean" / shard.name).read_bytes() == (
        tmp_path / "whole" / "en-mine_clean" / shard.name
    ).read_bytes()
    assert sorted(path.name for path in (out / "en-mine_clean").iterdir()) == ["_manifest.json", shard.name]


def test_a_whole_shard_of_an_interrupted_build_is_kept(tmp_path, corpus, monkeypatch):
    out = tmp_path / "srb"
    with monkeypatch.context() as patch:
        patch.setattr(builder, "_finish", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        assert build(out, corpus) == 130
    [shard] = out.glob(".partial/*/*.parquet")
    before = shard.stat().st_ino
    assert build(out, corpus) == 0
    assert (out / "en-mine_clean" / shard.name).stat().st_ino == before


@pytest.mark.parametrize("mine", ["README.md", "en-mine_clean/diary.txt", ".partial/work"])
@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
def test_what_no_build_made_is_not_touched(tmp_path, corpus, capsys, mine, overwrite):
    path = tmp_path / "srb" / mine
    path.parent.mkdir(parents=True)
    path.write_text("my own")
    assert build(tmp_path / "srb", corpus, *overwrite) == 2
    assert "move it away" in capsys.readouterr().err
    assert path.read_text() == "my own"


@pytest.mark.parametrize("name", ["notes.txt", "mine.parquet", ".hidden"])
def test_a_file_of_the_users_in_a_built_config_is_not_touched(tmp_path, corpus, capsys, name):
    out = tmp_path / "srb"
    assert build(out, corpus) == 0
    note = out / "en-mine_clean" / name
    note.write_text("my own")
    assert build(out, corpus, "--limit", "1", "--overwrite") == 2
    assert f"{name}: was not made by" in capsys.readouterr().err
    assert note.read_text() == "my own"


def test_the_unfinished_files_of_other_programs_stay(tmp_path, corpus):
    out = tmp_path / "srb"
    (out / "films" / "deep").mkdir(parents=True)
    others = [out / ".film.part", out / "films" / ".film.123.part", out / "films" / "deep" / ".a.1.srb-part"]
    for path in others:
        path.touch()
    assert build(out, corpus) == 0
    assert all(path.exists() for path in others)


@pytest.mark.parametrize("torn", ["", "{", "null", "[]", "[" * 100_000, '{"config": "en-mine_clean"}'])
def test_a_torn_manifest_is_one_line_and_overwrite_repairs_it(tmp_path, corpus, capsys, torn):
    out = tmp_path / "srb"
    assert build(out, corpus) == 0
    (out / "en-mine_clean" / "_manifest.json").write_text(torn)
    capsys.readouterr()
    assert build(out, corpus) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "is damaged" in error


def test_only_language_codes_become_rows(tmp_path, corpus, capsys):
    manifest = corpus / "list.csv"
    manifest.write_text('audio,text,language\n0.wav,one,"$(touch pwned)"\n1.wav,two,pt-BR\n')
    assert main(["build", "en-mine_clean", "--out", str(tmp_path / "srb"), "--corpus", f"en-mine={manifest}"]) == 2
    assert "is not a language code" in capsys.readouterr().err
    words = ["--corpus", f"en-mine={manifest}", "--on-error", "skip"]
    assert main(["build", "en-mine_clean", "--out", str(tmp_path / "srb"), *words]) == 0
    assert pq.read_table(tmp_path / "srb" / "en-mine_clean")["language"].to_pylist() == ["pt-BR"]


@pytest.mark.parametrize("bad", ["\x1b[2J", "\ud800", "\x00", "\u202e"])
def test_control_characters_become_no_rows(tmp_path, corpus, capsys, bad):
    manifest = corpus / "list.jsonl"
    rows = [{"audio": "0.wav", "text": f"one{bad}"}, {"audio": "1.wav", "text": "two\u200e"}]
    manifest.write_text("\n".join(json.dumps(row) for row in rows))
    words = ["--corpus", f"en-mine={manifest}", "--on-error", "skip"]
    assert main(["build", "en-mine_clean", "--out", str(tmp_path / "srb"), *words]) == 0
    assert pq.read_table(tmp_path / "srb" / "en-mine_clean")["text"].to_pylist() == ["two\u200e"]
    assert f"U+{ord(bad[0]):04X}" in capsys.readouterr().err


def test_a_private_edition_draws_otherwise_and_shows_no_secret(tmp_path, corpus, capsys):
    secret = tmp_path / "secret"
    secret.write_text("correct horse battery staple")
    words = ["en-mine_noise_sev2", "en-mine_clean", "--corpus", f"en-mine={corpus}"]
    for name, extra in (("public", []), ("private", ["--secret", str(secret)]), ("again", ["--secret", str(secret)])):
        assert main(["build", *words, "--out", str(tmp_path / name), *extra]) == 0
    one, two, three = (read_manifest(tmp_path / name / "en-mine_noise_sev2") for name in ("public", "private", "again"))
    assert one.content_sha256 != two.content_sha256 == three.content_sha256
    assert two.private is True
    assert one.private is None
    assert content(tmp_path / "public") != content(tmp_path / "private") == content(tmp_path / "again")
    assert two.scenario_version == three.scenario_version
    assert edition_name(two.scenario_version).startswith("private-")
    assert one.scenario_version is None
    for path in (tmp_path / "private").rglob("*"):
        assert not path.is_file() or b"battery" not in path.read_bytes()
    columns = [pq.read_table(tmp_path / name / "en-mine_noise_sev2").schema for name in ("public", "private")]
    assert columns[0] == columns[1]
    assert main(["build", *words, "--out", str(tmp_path / "public"), "--secret", str(secret)]) == 2
    secret.write_text("short")
    assert main(["build", *words, "--out", str(tmp_path / "p"), "--secret", str(secret)]) == 2
    assert "at least 16 bytes" in capsys.readouterr().err


def test_two_secrets_draw_different_noise(tmp_path):
    from speech_robust_bench.core.seeding import clip_rng, secret_seed

    draws = [clip_rng("c", "id", "noise", 1, secret_seed(key)).random() for key in (b"", b"a" * 16, b"b" * 16)]
    assert len(set(draws)) == 3
    assert clip_rng("c", "id", "noise", 1).random() == draws[0]
    assert np.isfinite(draws).all()


def test_shards_of_another_config_are_not_run(tmp_path, corpus, capsys):
    data = tmp_path / "srb"
    words = ["--corpus", f"en-mine={corpus}", "--out", str(data), "--workers", "1"]
    assert main(["build", "en-mine_clean", "en-mine_gain_sev1", *words]) == 0
    clean, louder = (next((data / config).glob("*.parquet")) for config in ("en-mine_clean", "en-mine_gain_sev1"))
    louder.write_bytes(clean.read_bytes())
    capsys.readouterr()
    run = ["run", "--model", "python:test_build_safety:nothing", "--data", str(data), "--out", str(tmp_path / "runs")]
    assert main([*run, "en-mine_gain_sev1", "--quiet"]) == 2
    assert "en-mine_gain_sev1: its rows are not those that its manifest was written for" in capsys.readouterr().err
    assert main([*run, "en-mine_clean", "--quiet"]) == 0


def nothing(clips, rate, language):
    return [""] * len(clips)
