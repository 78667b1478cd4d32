"""Files appear whole or not at all; a folder has one writer; what leaves the machine names no folders."""

import contextlib
import errno
import hashlib
import os
import subprocess
import sys
import threading

import filelock
import pytest

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import (
    LOCK_FILE,
    file_digest,
    file_state,
    locked,
    locked_folder,
    path_inside,
    replacing,
    replacing_folder,
    write_atomically,
)
from speech_robust_bench.core.secrets import without_folders


@pytest.mark.parametrize("data", ["naïve", "naïve".encode()])
def test_a_written_file_holds_what_was_given(tmp_path, data):
    path = tmp_path / "file"
    path.write_text("old")
    write_atomically(path, data)
    assert path.read_bytes() == b"na\xc3\xafve"
    assert os.listdir(tmp_path) == ["file"]


def test_the_old_file_is_there_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with replacing(path) as part:
        part.write_text("new")
        assert path.read_text() == "old"
        assert part.parent == tmp_path
        assert part.name == f".file.{os.getpid()}.srb-part"
    assert path.read_text() == "new"


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), replacing(path) as part:
        assert part.write_text("half") / 0
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_the_longest_name_can_be_replaced(tmp_path):
    path = tmp_path / ("x" * 255)
    write_atomically(path, "whole")
    assert path.read_text() == "whole"


def test_what_the_system_refuses_is_named(tmp_path):
    with pytest.raises(UserError, match=r"none/file: cannot be written \(No such file or directory\)"):
        write_atomically(tmp_path / "none" / "file", "x")
    with pytest.raises(UserError, match=r"file: cannot be written \(odd\)"), replacing(tmp_path / "file"):
        raise OSError("odd")


def test_what_was_written_is_on_the_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    flushed = []
    monkeypatch.setattr(os, "fsync", lambda handle: flushed.append(os.readlink(f"/proc/self/fd/{handle}")))
    path = tmp_path / "file"
    with replacing(path) as part:
        part.write_text("new")
        assert not flushed
    assert flushed == [str(part)]


def test_the_handle_that_flushes_is_closed(tmp_path):
    before = os.listdir("/proc/self/fd")
    write_atomically(tmp_path / "file", "x")
    assert os.listdir("/proc/self/fd") == before


def test_the_state_of_a_file_is_its_size_time_and_parts(tmp_path):
    path = tmp_path / "file"

    def state(data: bytes, time: int = 7) -> str:
        path.write_bytes(data)
        os.utime(path, ns=(5, time))
        return file_state(path)

    assert file_state(path) == "none"
    assert state(b"123").startswith("3 7 ")
    assert state(b"123") == state(b"123") != state(b"123", time=8)
    assert state(b"123") != state(b"124")
    assert state(b"") == state(b"")
    long = bytes(9000)
    for place in (0, 3000, 6000, 8999):  # in each of the parts
        assert state(long) != state(long[:place] + b"x" + long[place + 1 :])


def test_a_locked_folder_is_made_and_keeps_others_out(tmp_path):
    folder = tmp_path / "a" / "b"
    with locked_folder(folder):
        assert (folder / LOCK_FILE).name == ".srb.lock"
        refused = pytest.raises(
            UserError, match=r"b: another command is writing to it; wait for it, or use another folder$"
        )
        with refused, locked_folder(folder):
            pass
    with locked_folder(folder):
        pass


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_a_killed_command_left_is_removed(tmp_path, when):
    (tmp_path / "sub").mkdir()
    left = tmp_path / "sub" / ".file.12.srb-part"
    kept = tmp_path / "sub" / "file.part"
    kept.touch()
    if when == "before":
        left.touch()
    with locked_folder(tmp_path):
        assert not left.exists()
        if when == "after":
            left.touch()
    assert not left.exists()
    assert kept.exists()


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"file: cannot be used \(File exists\)"), locked_folder(tmp_path / "file"):
        pass
    with pytest.raises(UserError, match=r"cannot be used \(odd\)"), locked_folder(tmp_path / "c"):
        raise OSError("odd")


def test_a_lock_file_may_lie_in_a_new_folder_and_refuses_at_once(tmp_path):
    path = tmp_path / "new" / "folder" / "lock"
    with locked(path, "taken"), pytest.raises(UserError, match=r"^taken$"), locked(path, "taken"):
        pass
    with locked(path, "taken"):
        pass


def test_waiting_for_a_lock_waits(tmp_path):
    path, order = tmp_path / "lock", []

    def second() -> None:
        with locked(path, "taken", wait=True):
            order.append("second")

    thread = threading.Thread(target=second)
    with locked(path, "taken"):
        thread.start()
        order.append("first")
    thread.join(60)
    assert order == ["first", "second"]


@pytest.mark.parametrize(
    ("text", "public"),
    [
        ('{"data": "/home/ann/secret/srb"}', '{"data": "srb"}'),
        ("/home/ann/a.flac: bad", "a.flac: bad"),
        ("see https://example.org/a/b and ./x/y", "see https://example.org/a/b and ./x/y"),
        ("a/b/c 1/2", "a/b/c 1/2"),
        ("from /a/b/c and '/d/e f'", "from c and 'e f'"),
    ],
)
def test_absolute_paths_become_names(text, public):
    assert without_folders(text) == public


def test_a_state_hashes_four_parts_of_a_kibibyte_each(tmp_path):
    path = tmp_path / "file"
    data = bytes(number % 251 for number in range(10_000))
    path.write_bytes(data)
    os.utime(path, ns=(5, 7))
    parts = b"".join(data[start : start + 1024] for start in (0, 2992, 5984, 8976))
    assert file_state(path) == f"10000 7 {hashlib.sha256(parts).hexdigest()[:16]}"
    path.write_bytes(data[:1024])  # no room for four: the same part four times
    os.utime(path, ns=(5, 7))
    assert file_state(path) == f"1024 7 {hashlib.sha256(4 * data[:1024]).hexdigest()[:16]}"


def test_the_name_of_a_part_keeps_the_last_forty_characters(tmp_path):
    name = "".join(chr(97 + number % 26) for number in range(60))
    with replacing(tmp_path / name) as part:
        part.touch()
        assert part.name == f".{name[20:]}.{os.getpid()}.srb-part"


def test_a_path_out_of_data_stays_below_its_folder(tmp_path):
    root = tmp_path / "data"
    (root / "sub").mkdir(parents=True)
    assert path_inside(root, "sub/a.flac", "clip") == root / "sub" / "a.flac"
    assert path_inside(root, "sub/../a.flac", "clip") == root / "a.flac"
    with pytest.raises(UserError, match="is no path"):
        path_inside(root, "a\0.flac", "clip")
    (root / "out").symlink_to(tmp_path)
    for path in ("../secret", "/etc/passwd", "out/secret"):
        with pytest.raises(UserError, match=rf"clip: its audio path '{path}' lies outside the dataset"):
            path_inside(root, path, "clip")


def test_the_digest_of_a_file_is_its_sha256(tmp_path):
    (tmp_path / "file").write_bytes(b"abc")  # FIPS 180-2, Appendix B.1
    assert file_digest(tmp_path / "file") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.mark.parametrize(("wait", "timeout"), [(False, 0), (True, -1)])
def test_a_lock_waits_for_ever_or_not_at_all(tmp_path, monkeypatch, wait, timeout):
    asked = []
    lock = filelock.FileLock
    monkeypatch.setattr(
        filelock, "FileLock", lambda path, timeout: asked.append(timeout) or lock(path, timeout=timeout)
    )
    with locked(tmp_path / "lock", "taken", wait=wait):
        assert asked == [timeout]


def test_a_problem_with_a_file_in_a_locked_folder_names_it(tmp_path):
    with pytest.raises(UserError, match=r"/none/x: cannot be used \(No such"), locked_folder(tmp_path / "folder"):
        open("/none/x").close()


@contextlib.contextmanager
def filled(folder, content):
    with replacing_folder(folder) as part:
        assert part.name == folder.name
        assert not list(part.iterdir())
        (part / "file").write_text(content)
        yield


@pytest.mark.parametrize("old", [None, "old"])
def test_a_folder_appears_whole_and_replaces_the_old_one(tmp_path, old):
    folder = tmp_path / "new" / "folder"
    if old:
        folder.mkdir(parents=True)
        (folder / "other").write_text(old)
    with filled(folder, "new"):
        assert folder.exists() == bool(old)
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"file": "new"}
    assert os.listdir(folder.parent) == ["folder"]


def test_a_failure_leaves_the_old_folder_and_nothing_else(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_text("old")
    with pytest.raises(UserError, match="folder: cannot be written"), filled(folder, "new"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert (folder / "file").read_text() == "old"
    assert os.listdir(tmp_path) == ["folder"]


def test_what_a_killed_process_left_is_put_back_and_removed(tmp_path):
    """Killed between its two renames: the old folder has been put aside, and the new one is not in its place yet."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    aside = tmp_path / f".folder.{gone.pid}.srb-part" / "old" / "folder"
    aside.mkdir(parents=True)
    (aside / "file").write_text("old")
    running = tmp_path / ".folder.1.srb-part"
    running.mkdir()
    with pytest.raises(ZeroDivisionError), filled(tmp_path / "folder", "new"):
        assert 1 / 0
    assert (tmp_path / "folder" / "file").read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == [".folder.1.srb-part", "folder"]
