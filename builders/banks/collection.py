"""All banks of one run: those in the folders that the user named, and the built-in ones otherwise."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from srb.builders.banks.layouts import open_bank
from srb.builders.banks.recording import RecordingBank

ROOMS = ("rir", "real_rir")


@dataclass
class Banks:
    """Opens a bank when it is first asked for. Small when pickled: workers open their own."""

    noise_dir: str | os.PathLike | None = None
    rir_dir: str | os.PathLike | None = None
    _open: dict[str, RecordingBank] = field(default_factory=dict, repr=False, compare=False)

    def get(self, kind: str) -> RecordingBank:
        """The bank of a kind named in the scenario table."""
        if kind not in self._open:
            self._open[kind] = open_bank(kind, self.rir_dir if kind in ROOMS else self.noise_dir)
        return self._open[kind]

    def describe(self, kind: str) -> str:
        """Where a bank's recordings come from."""
        return self.get(kind).title

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_open": {}}
