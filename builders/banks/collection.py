"""All banks of one run: those in the folders that the user named, and the built-in ones otherwise."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from typing import Any

from speech_robust_bench.builders.banks.layouts import ROOMS, FolderBank, open_bank
from speech_robust_bench.builders.banks.rooms import FolderRooms
from speech_robust_bench.builders.recording import RecordingBank
from speech_robust_bench.core.files import file_state


@dataclass
class Banks:
    """Opens a bank when it is first asked for. Small when pickled: workers open their own."""

    noise_dir: str | os.PathLike | None = None
    rir_dir: str | os.PathLike | None = None
    _open: dict[str, RecordingBank] = field(default_factory=dict, repr=False, compare=False)
    _fingerprints: dict[str, str | None] = field(default_factory=dict, repr=False, compare=False)

    def get(self, kind: str) -> RecordingBank:
        """The bank of a kind named in the scenario table."""
        if kind not in self._open:
            self._open[kind] = open_bank(kind, self.rir_dir if kind in ROOMS else self.noise_dir)
        return self._open[kind]

    def describe(self, *kinds: str) -> str | None:
        """Where the recordings of some banks come from, each source once; None without a bank."""
        return " + ".join(dict.fromkeys(self.get(kind).title for kind in kinds)) or None

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

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_open": {}}
