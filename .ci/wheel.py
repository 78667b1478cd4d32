"""Build the wheel and the sdist, install the wheel into an empty environment outside the repository, and use it there.

    python .ci/wheel.py [--constraints constraints.txt] --work DIR

Needs the package `build` (or `uv` on the PATH, which is quicker). Runs on Linux, macOS and Windows.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOUR = Path(__file__).with_name("wheel_tour.py")
UV = shutil.which("uv")
BEGIN = time.monotonic()


def call(*command: str | Path, where: Path, **extra: str) -> None:
    """Run a command and stop at an error; nothing of the repository is on its path."""
    print(f"== {time.monotonic() - BEGIN:4.0f} s:", *command, flush=True)
    kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment = kept | extra
    subprocess.run([str(part) for part in command], cwd=where, env=environment, check=True)


def build(work: Path) -> tuple[Path, Path]:
    """The sdist, and the wheel made from it, of a clean copy of what git tracks."""
    source, out = work / "source", work / "dist"
    for name in tracked():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    call(*([UV, "build", "-q", "--out-dir"] if UV else [sys.executable, "-m", "build", "--outdir"]), out, where=source)
    return next(out.glob("*.whl")), next(out.glob("*.tar.gz"))


def tracked() -> list[str]:
    """The files of the repository."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def missing(wheel: Path) -> list[str]:
    """The files of the rooms that the wheel does not have."""
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    rows = (line.split("=") for line in setup["options"]["package_dir"].splitlines() if "=" in line)
    rooms = {folder.strip(): name.strip().replace(".", "/") for name, folder in rows}
    has = set(zipfile.ZipFile(wheel).namelist())
    parts = [(name.split("/", 1), name) for name in tracked() if name.split("/", 1)[0] in rooms]
    return [name for (room, rest), name in parts if f"{rooms[room]}/{rest}" not in has]


def empty_environment(work: Path, wheel: Path, constraints: str | None) -> Path:
    """The programs of a new environment with the wheel and the extra `demo`."""
    place = work / "environment"
    pinned = ["-c", str(Path(constraints).resolve())] if constraints else []
    programs = place / ("Scripts" if os.name == "nt" else "bin")
    if UV:
        call(UV, "venv", "-q", "--python", sys.executable, place, where=work)
        call(UV, "pip", "install", "-q", "--python", programs / "python", *pinned, f"{wheel}[demo]", where=work)
    else:
        call(sys.executable, "-m", "venv", place, where=work)
        call(programs / "python", "-m", "pip", "install", "-q", *pinned, f"{wheel}[demo]", where=work)
    return programs


def main() -> None:
    """Build, check the content, install, use."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--constraints", metavar="FILE", help="versions to install beside the wheel")
    parser.add_argument(
        "--work", type=Path, required=True, metavar="DIR", help="an empty folder outside the repository"
    )
    args = parser.parse_args()
    work = args.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    wheel, sdist = build(work)
    if lacking := missing(wheel):
        sys.exit(f"{wheel.name} lacks {', '.join(lacking)}; see packages and package_data in setup.cfg")
    with tarfile.open(sdist) as archive:
        licensed = any(name.endswith("/LICENSE") for name in archive.getnames())
    if not licensed:
        sys.exit(f"{sdist.name} lacks LICENSE")
    programs = empty_environment(work, wheel, args.constraints)
    outside = work / "outside"
    outside.mkdir()
    call(programs / "python", TOUR, programs / "srb", where=outside, HF_HOME=str(work / "huggingface"))
    print(f"== {time.monotonic() - BEGIN:4.0f} s: {wheel.name} works")


if __name__ == "__main__":
    main()
