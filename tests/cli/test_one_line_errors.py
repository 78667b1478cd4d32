"""A file that cannot be written or read is one line on stderr that names it, and exit code 2."""

import pytest

from speech_robust_bench.cli.main import main


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "file"
    path.write_text("not a folder")
    return path


@pytest.mark.parametrize(
    "words",
    [
        ["metrics", "export", "werd", "{file}/space"],
        ["difficulty", "--out", "{file}/table.csv"],
        ["difficulty", "--out", "{folder}/no/such/folder/table.csv"],
        ["ls", "custom", "--scenario-file", "{folder}"],
        ["perturb", "{folder}", "{folder}/out.wav", "--scenario", "echo", "--severity", "1"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_place_that_cannot_be_used(words, file, capsys):
    named = [word.format(file=file, folder=file.parent) for word in words]
    assert main(named) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert said[-1].startswith(f"srb {words[0]}: ")
    assert str(file.parent) in said[-1] or "file" in said[-1]


def test_a_full_disk_is_named(monkeypatch, tmp_path, capsys):
    import errno
    from pathlib import Path

    def full(self, *_, **__):
        raise OSError(errno.ENOSPC, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_text", full)
    monkeypatch.setattr(Path, "write_bytes", full)
    assert main(["metrics", "export", "werd", str(tmp_path / "space")]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith(f"srb metrics: {tmp_path / 'space'}")
    assert line.endswith("no space left on device")
