"""Banks in folders: where published data sets have their recordings, and which data set a folder is.

A folder given by the user may be a data set (`musan/`), a part of one (`musan/noise/`), a folder that holds several of
them side by side, or any folder of audio of their own. Simulated rooms are ordered by RT60, from the data set's
`room_info` by Sabine's formula; real rooms by SRMR, from high to low (paper, Appendix A), from the table that was
measured for the benchmark's published data.

`Banks` are all banks of one run: those in the folders that the user named, and the built-in ones otherwise.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from speech_robust_bench.builders.banks.recording import (
    Bins,
    Material,
    Recording,
    RecordingBank,
    bins,
    decode,
    measured_rt60_s,
    published_srmr,
    read_room_info,
    room_srmr,
)
from speech_robust_bench.core.audio import RATE, Samples
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import file_state

AUDIO = (".wav", ".flac", ".ogg", ".mp3")
# How far below the user's folder a data set may be: a parent folder, and an archive unpacked into a folder of its name.
DEPTH = 2
# Recordings of isotropic noise that OpenSLR 28 keeps among its real rooms
_ISOTROPIC_NOISE = re.compile(r"(RVB2014|RWCP)_type\d+_noise_", re.IGNORECASE)


@dataclass(frozen=True)
class Layout:
    """A published data set: the folder that holds a bank's recordings, and what else shows that it is this data set."""

    title: str
    url: str
    folder: str
    beside: tuple[str, ...] = ()

    def find(self, root: Path) -> Path | None:
        """The recordings' folder, where `root` is the data set or is that folder itself."""
        base = root.parent if root.name == self.folder else root
        if not (base / self.folder).is_dir():
            return None
        if self.beside and not any((base / name).exists() for name in self.beside):
            return None
        return base / self.folder


_MUSAN = ("MUSAN (OpenSLR 17)", "https://www.openslr.org/17/")
_SLR28 = ("RIRS_NOISES (OpenSLR 28)", "https://www.openslr.org/28/")
LAYOUTS = {
    "noise": Layout("MS-SNSD", "https://github.com/microsoft/MS-SNSD", "noise_test"),
    "noise_esc50": Layout("ESC-50", "https://github.com/karolpiczak/ESC-50", "audio", ("meta", "esc50.csv")),
    "noise_musan": Layout(*_MUSAN, "noise", ("music", "speech")),
    "noise_wham": Layout("WHAM!", "http://wham.whisper.ai", "tt"),
    "music": Layout(*_MUSAN, "music", ("noise", "speech")),
    "speech": Layout(*_MUSAN, "speech", ("noise", "music")),
    "rir": Layout(*_SLR28, "simulated_rirs"),
    "real_rir": Layout(*_SLR28, "real_rirs_isotropic_noises"),
}
ROOMS = ("rir", "real_rir")


@dataclass(frozen=True)
class FolderBank:
    """A folder of recordings, listed once in sorted order."""

    kind: str
    title: str
    root: Path
    files: tuple[str, ...]
    stand_in: ClassVar[bool] = False

    def draw(self, rng: np.random.Generator, *, clip: Samples, severity: int) -> Recording:
        name = self.files[int(rng.integers(len(self.files)))]
        return Recording(name, decode(self.root / name, len(clip)))


# The SRMR range of the published data. Its lower end is a recording of noise that stood in the authors' list of rooms
# (RWCP_type5_noise_cirline_ofc_ambient2.wav). We leave such recordings out but keep the range, so that every real room
# has the severity that it has there.
PUBLISHED_SRMR = (0.478, 11.159)


@dataclass(frozen=True)
class FolderRooms:
    """A folder of room impulse responses, each with its reverberance in `measure` (`rt60_s` or `srmr`)."""

    kind: str
    title: str
    root: Path
    files: tuple[str, ...]
    measure: str
    values: tuple[float, ...]
    bins: Bins
    stand_in: ClassVar[bool] = False

    @property
    def version(self) -> int:
        """2 where a response begins in its first 10 ms, which version 1 cut off; 1 where none does."""
        return 2 if any(_begins_early(self.root / name) for name in self.files) else 1

    def draw(self, rng: np.random.Generator, *, clip: Samples, severity: int) -> Recording:
        index = self.bins.draw(rng, severity)
        name = self.files[index]
        return Recording(name, decode(self.root / name), {self.measure: round(self.values[index], 3)})


def _begins_early(path: Path) -> bool:
    from speech_robust_bench.builders.perturb.environment import has_lead_in

    try:
        return not has_lead_in(decode(path), RATE)
    except UserError:  # a damaged file: whoever draws it is told
        return False


def simulated_rooms(kind: str, title: str, root: Path, files: tuple[str, ...]) -> FolderRooms:
    """Rooms by RT60: from `room_info` where there is one above the room's folder, else measured on the response."""
    info: dict[Path, dict[str, float]] = {}
    values = []
    for name in files:
        path = root / name
        above = path.parent.parent
        if above not in info:
            listing = above / "room_info"
            info[above] = read_room_info(listing) if listing.is_file() else {}
        known = info[above].get(path.parent.name)
        values.append(measured_rt60_s(decode(path)) if known is None else known)
    return FolderRooms(kind, title, root, files, "rt60_s", tuple(values), bins(values))


def real_rooms(kind: str, title: str, root: Path, files: tuple[str, ...]) -> FolderRooms:
    """Rooms by SRMR: from the published table by file name, else measured on a fixed utterance."""

    table = published_srmr()
    values, listed = [], False
    for name in files:
        known = table.get(Path(name).name)
        listed = listed or known is not None
        values.append(room_srmr(Recording(name, decode(root / name))) if known is None else known)
    low, high = (-PUBLISHED_SRMR[1], -PUBLISHED_SRMR[0]) if listed else (None, None)
    return FolderRooms(kind, title, root, files, "srmr", tuple(values), bins([-v for v in values], low, high))


def open_bank(kind: str, folder: str | os.PathLike | None = None) -> RecordingBank:
    """The bank of a kind from a folder, or the built-in bank where no folder is given."""
    if kind not in LAYOUTS:
        raise UserError(f"bank {kind!r}: no such bank; there are {', '.join(LAYOUTS)}")
    if folder is None:
        from speech_robust_bench.builders.banks.builtin import builtin_bank

        return builtin_bank(kind)
    given = Path(folder)
    layout = LAYOUTS[kind]
    get = f"get {layout.title} from {layout.url}, or leave the folder out to use the built-in bank"
    if not given.is_dir():
        raise UserError(f"{given}: no such folder (for the bank {kind!r}); {get}")
    root, title = _locate(kind, given)
    if root is None:
        raise UserError(f"{given}: no {layout.folder}/ of {layout.title} in it (for the bank {kind!r}); {get}")
    files = _audio_files(root)
    if kind in ROOMS:
        files = _without_noises(root, files)
    if not files:
        raise UserError(f"{root}: no audio in it ({', '.join(AUDIO)}; for the bank {kind!r}); {get}")
    if kind == "rir":
        return simulated_rooms(kind, title, root, files)
    if kind == "real_rir":
        return real_rooms(kind, title, root, files)
    return FolderBank(kind, title, root, files)


def _locate(kind: str, given: Path) -> tuple[Path | None, str]:
    """The folder of a kind's recordings and its title; none where the folder holds other data sets but not this one."""
    layout = LAYOUTS[kind]
    candidates = list(_folders(given))
    for candidate in candidates:
        folder = layout.find(candidate)
        if folder is not None:
            return folder, layout.title
    if any(other.find(candidate) for other in LAYOUTS.values() for candidate in candidates):
        return None, ""
    return given, f"recordings in {given.name}"


def _folders(root: Path, depth: int = DEPTH) -> Iterator[Path]:
    """The folder and those below it, nearest first, in sorted order."""
    yield root
    level = [root]
    for _ in range(depth):
        level = sorted(Path(child) for folder in level for child in os.scandir(folder) if child.is_dir())
        yield from level


def _audio_files(root: Path) -> tuple[str, ...]:
    """Every audio file below a folder, by its path from there, in sorted order; hidden files are passed over."""
    files = []
    for folder, _, names in os.walk(root, followlinks=True):
        relative = Path(folder).relative_to(root)
        files += [
            (relative / name).as_posix() for name in names if name.lower().endswith(AUDIO) and not name.startswith(".")
        ]
    return tuple(sorted(files))


def _without_noises(root: Path, files: tuple[str, ...]) -> tuple[str, ...]:
    """Leave out recordings that are no rooms: those missing from the data set's `rir_list`, and isotropic noises."""
    listing = root / "rir_list"
    rooms = [name for name in files if not _ISOTROPIC_NOISE.match(Path(name).name)]
    if listing.is_file():
        # A line is Kaldi's: options, then the path from the data set's parent folder.
        lines = listing.read_text(encoding="utf-8", errors="replace").splitlines()
        listed = {line.split()[-1].rsplit("/", 1)[-1] for line in lines if line.strip()}
        rooms = [name for name in rooms if Path(name).name in listed]
    return tuple(rooms)


@dataclass
class Banks:
    """Opens a bank when it is first asked for. Small when pickled: workers open their own."""

    noise_dir: str | os.PathLike | None = None
    rir_dir: str | os.PathLike | None = None
    _open: dict[str, RecordingBank] = field(default_factory=dict, repr=False, compare=False)
    _fingerprints: dict[str, str | None] = field(default_factory=dict, repr=False, compare=False)
    _versions: dict[str, int] = field(default_factory=dict, repr=False, compare=False)

    def get(self, kind: str) -> RecordingBank:
        """The bank of a kind named in the scenario table."""
        if kind not in self._open:
            self._open[kind] = open_bank(kind, self.rir_dir if kind in ROOMS else self.noise_dir)
        return self._open[kind]

    def version(self, kind: str) -> int:
        """The version of the data that a bank's recordings make."""
        if kind not in self._versions:
            bank = self.get(kind)
            self._versions[kind] = bank.version if isinstance(bank, FolderRooms) else 1
        return self._versions[kind]

    def describe(self, *kinds: str) -> str | None:
        """Where the recordings of some banks come from, each source once; None without a bank."""
        return " + ".join(dict.fromkeys(self.get(kind).title for kind in kinds)) or None

    def material(self, *kinds: str) -> Material | None:
        """The same, and whether any of them stand in for the paper's."""
        title = self.describe(*kinds)
        return Material(title, any(self.get(kind).stand_in for kind in kinds)) if title else None

    def fingerprint(self, *kinds: str) -> str | None:
        """Hash of the recordings of some banks (size, time and parts of each file), None for built-in ones."""
        return " + ".join(filter(None, map(self._fingerprint, kinds))) or None

    def _fingerprint(self, kind: str) -> str | None:
        if kind not in self._fingerprints:
            self._fingerprints[kind] = self._read_fingerprint(kind)
        return self._fingerprints[kind]

    def _read_fingerprint(self, kind: str) -> str | None:
        bank = self.get(kind)
        if not isinstance(bank, FolderBank | FolderRooms):
            return None
        digest = hashlib.sha256(repr(getattr(bank, "values", None)).encode())
        for name in bank.files:
            digest.update(f"{name} {file_state(bank.root / name)}\n".encode())
        return digest.hexdigest()

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_open": {}}
