"""Which configs may be published, and under what terms.

A config is made from a corpus and sometimes from a bank of noises or rooms; the terms of each hold for what is made
from it. No derivatives (ND) means that it must stay here; an unknown licence means the same until somebody knows it;
share-alike (SA) goes with the data, and cannot be met together with non-commercial (NC). The corpora's licences are in
the manifests, those of the banks are here; docs/concepts/licences.md says where each was read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from speech_robust_bench.core.records import Manifest
from speech_robust_bench.core.untrusted_files import damage_named, row_groups

BANKS = {
    "built-in bank (synthesised)": "Apache-2.0",
    "MS-SNSD": "CC-BY-SA-3.0",  # its noises are from DEMAND, and CC0 ones from Freesound
    "ESC-50": "CC-BY-NC-3.0",
    "MUSAN (OpenSLR 17)": "CC-BY-4.0",
    "RIRS_NOISES (OpenSLR 28)": "Apache-2.0",
    "WHAM!": "CC-BY-NC-4.0",
}
_UNKNOWN = {"", "unknown", "other", "none", "null", "n/a"}
# The identifiers that the Hub's cards know, of those that occur here.
_HUB = {
    "apache-2.0",
    "mit",
    "cc0-1.0",
    "cc-by-2.0",
    "cc-by-3.0",
    "cc-by-4.0",
    "cc-by-sa-3.0",
    "cc-by-sa-4.0",
    "cc-by-nc-3.0",
    "cc-by-nc-4.0",
    "cc-by-nc-sa-4.0",
}


@dataclass(frozen=True)
class LicenceTerms:
    """What a config is made from, and the licence of each: source -> licence."""

    config: str
    sources: Mapping[str, str]
    forbids_derivatives: bool
    banks: tuple[str, ...] = ()  # those of the sources that are banks

    def refusal(self) -> str | None:
        """Why the config may not be published, None if it may."""
        for source, licence in self.sources.items():
            if is_unknown(licence):
                return f"the licence of {source} is unknown; {self._way_out(source)}"
            if no_derivatives(licence):
                return f"{source} is {licence}, which forbids publishing what is made from it"
        closed = [licence for licence in self.licences if _has("NC", licence)]
        free = [licence for licence in self.share_alike if licence not in closed]
        if closed and free:
            return f"it is made from {free[0]} and {closed[0]}, which cannot both be kept"
        if self.forbids_derivatives:
            return f"{next(iter(self.sources))} forbids publishing what is made from it"
        return None

    def _way_out(self, source: str) -> str:
        if source in self.banks:
            return f"name it with --bank-licence '{source}=LICENCE'"
        return "give every clip one in the column 'licence' of the corpus' manifest, and build the config again"

    @property
    def licences(self) -> list[str]:
        return list(dict.fromkeys(self.sources.values()))

    @property
    def share_alike(self) -> list[str]:
        """The licences under which the config itself must be shared."""
        return [licence for licence in self.licences if _has("SA", licence)]


def bank_names(manifest: Manifest) -> list[str]:
    """The banks that a config was made with: none, one, or, of a chain, several. Rows have the terms of voices."""
    names = manifest.bank.split(" + ") if manifest.bank else []
    return [name for name in names if not name.endswith("text-to-speech)")]


def terms(manifest: Manifest, rows: Iterable[str] = (), banks: Mapping[str, str] | None = None) -> LicenceTerms:
    """The terms of a config: of its corpus, of its rows where they have their own, and of its bank."""
    corpus, own = manifest.corpus, str(manifest.corpus.licence or "")
    others = sorted(set(rows) - {own, *(part.strip() for part in own.split(" AND "))})
    by_clip = is_unknown(own) and bool(others) and own not in rows  # every clip has a licence of its own
    sources = {} if by_clip else {corpus.title: next(filter(is_unknown, others), own)}
    for licence in others:
        name = f"some clips of {corpus.title}" if sources else corpus.title
        sources[f"{name} ({licence})" if name in sources else name] = licence
    names = bank_names(manifest)
    sources |= {bank: {**BANKS, **(banks or {})}.get(bank, "unknown") for bank in names}
    return LicenceTerms(manifest.config, sources, not (corpus.derivatives_allowed or by_clip), tuple(names))


def row_licences(files: Iterable[Path]) -> set[str]:
    """The licences that the rows of a config name."""
    import pyarrow.parquet as pq

    licences: set[str] = set()
    for path in files:
        with damage_named(path):
            if "licence" in pq.read_schema(path).names:
                for table in row_groups(path, ["licence"]):
                    licences |= {str(value or "") for value in table["licence"].unique().to_pylist()}
    return licences


def is_unknown(licence: str) -> bool:
    return licence.strip().lower() in _UNKNOWN


def no_derivatives(licence: str) -> bool:
    """Whether a licence forbids derivatives, as `CC-BY-NC-ND-3.0` does."""
    return _has("ND", licence) or "noderiv" in licence.lower()


def _has(clause: str, licence: str) -> bool:
    return bool(re.search(rf"\b{clause}\b", licence, re.IGNORECASE))


def hub_licence(licences: Iterable[str]) -> str | list[str]:
    """What the card's header says: one identifier, a list of them, or `other` where the Hub has no name for one."""
    parts = sorted({part.strip().lower() for licence in licences for part in licence.split(" AND ")})
    if not parts or not set(parts) <= _HUB:
        return "other"
    return parts[0] if len(parts) == 1 else parts
