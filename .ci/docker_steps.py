"""Run the steps of the Dockerfile without Docker, in an empty folder, and then its command.

    python .ci/docker_steps.py --work DIR [--system]

/opt/srb and /home/srb of the image are folders below DIR. `COPY . source` copies what .dockerignore leaves. Steps that
install packages are run with --system alone, as root on Debian; the image's account is not made, because it would stay.
A `RUN` that fails ends the script.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACES = ("/opt/srb", "/home/srb")
PACKAGES, ACCOUNTS = "apt-get", "useradd"
KNOWN = {"FROM", "ARG", "SHELL", "RUN", "WORKDIR", "COPY", "ENV", "USER", "CMD"}


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Each instruction and its arguments, on one line."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        if line.strip():
            name, _, rest = line.partition(" ")
            if name not in KNOWN:
                sys.exit(f"Dockerfile: this script does not know {name}")
            yield name, rest.strip()


def context(ignore: str) -> list[str]:
    """The files of the repository that `COPY .` takes: tracked, and not left out by .dockerignore."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    rules = [line for line in ignore.splitlines() if line and not line.startswith("#")]
    kept = [rule[1:] for rule in rules if rule.startswith("!")]
    if rules[0] != "*" or [rule for rule in rules[1:] if not rule.startswith(("!", "**/"))]:
        sys.exit(".dockerignore: this script knows '*', then '!NAME', then '**/NAME'")
    return [name for name in listed.split("\0") if name and any(fnmatch.fnmatch(name.split("/")[0], k) for k in kept)]


class Machine:
    """What the instructions change: variables, the working directory and files below a folder."""

    def __init__(self, work: Path, system: bool) -> None:
        self.work, self.system = work, system
        os.environ["PIP_RETRIES"] = "0"  # where the extra index of the Dockerfile cannot be reached, it is asked once
        self.variables = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
        self.folder = work

    def placed(self, text: str) -> str:
        """The text with the folders of the image below the folder of work."""
        for place in PLACES:
            text = text.replace(place, f"{self.work}{place}")
        return text

    def run(self, name: str, rest: str) -> None:
        """Carry out one instruction."""
        if name in ("ARG", "ENV"):
            for key, value in re.findall(r"(\w+)=(\S+)", rest):
                self.variables[key] = os.path.expandvars(self.placed(value).replace("$PATH", self.variables["PATH"]))
        elif name == "WORKDIR":
            self.folder = Path(self.placed(rest))
            self.folder.mkdir(parents=True, exist_ok=True)
        elif name == "COPY":
            self.copy(*rest.split())
        elif name == "RUN" and ACCOUNTS not in rest and (self.system or PACKAGES not in rest):
            self.call(["bash", "-o", "pipefail", "-c", self.placed(rest)])
        elif name == "RUN":
            print(f"-- left out: {rest}")
        elif name == "CMD":
            self.call(json.loads(rest))

    def copy(self, source: str, to: str) -> None:
        """`COPY . FOLDER`."""
        if source != ".":
            sys.exit(f"Dockerfile: this script knows COPY . FOLDER, not COPY {source}")
        for name in context((ROOT / ".dockerignore").read_text("utf-8")):
            place = self.folder / to / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, place)

    def call(self, command: list[str]) -> None:
        """Run a command in the working directory."""
        subprocess.run(command, cwd=self.folder, env=self.variables, check=True)


def main() -> None:
    """Run every step and say how long it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, metavar="DIR", help="an empty folder")
    parser.add_argument("--system", action="store_true", help="also install the packages of the system")
    args = parser.parse_args()
    begin = time.monotonic()
    machine = Machine(args.work.resolve(), args.system)
    machine.work.mkdir(parents=True, exist_ok=True)
    for name, rest in instructions((ROOT / "Dockerfile").read_text("utf-8")):
        print(f"== {time.monotonic() - begin:4.0f} s: {name} {rest}", flush=True)
        machine.run(name, rest)
    machine.call(["python", "-c", "import torch, transformers; print('torch', torch.__version__)"])
    machine.call(["srb", "ls", "--suite"])
    print(f"== {time.monotonic() - begin:4.0f} s: the image works")


if __name__ == "__main__":
    main()
