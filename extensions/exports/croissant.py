"""Croissant metadata of a built folder: what its files and columns are, for search engines and `mlcroissant`.

Croissant 1.0 (docs.mlcommons.org/croissant): a file set for the parquet shards of each config, and a record set with a
field for each column. The description of a record set has the config's content hash.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from speech_robust_bench.builders.manifests import TITLE, manifests, parquet_paths
from speech_robust_bench.core import BIBTEX
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import write_atomically
from speech_robust_bench.core.records import Manifest
from speech_robust_bench.core.rows import COLUMNS, QUALITY_COLUMNS
from speech_robust_bench.options import Place

CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataBiases": "cr:dataBiases",
    "dataCollection": "cr:dataCollection",
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "personalSensitiveInformation": "cr:personalSensitiveInformation",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
TYPES = {
    "string": "sc:Text",
    "float64": "sc:Float",
    "int32": "sc:Integer",
    "int64": "sc:Integer",
    "audio": "sc:AudioObject",
}
Json = dict[str, Any]


def croissant(folder: str | Path, url: str = "") -> Json:
    """The metadata of the complete configs of a folder; `url` is where the data can be found, if it is published."""
    folder = Path(folder)
    complete = manifests(folder)
    if not complete:
        raise UserError(f"{folder}: holds no built configs; build some with `srb build`")
    for config, manifest in complete.items():
        parquet_paths(folder / config, manifest)
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": "speech-robust-bench",
        "alternateName": TITLE,
        "description": "Speech under noise, rooms, effects, codecs, accents and attacks: each record set is one "
        "scenario at one severity, made from the clean clips of the same ids.",
        "version": f"{next(iter(complete.values())).benchmark_version}.0.0",
        "datePublished": _built_on(folder, complete),
        "citeAs": BIBTEX,
        "license": sorted({str(about.corpus.licence) for about in complete.values()}),
        "inLanguage": sorted({about.language for about in complete.values()}),
        "keywords": ["automatic speech recognition", "robustness", "benchmark"],
        **({"url": url} if url else {}),
        "distribution": [_shards(config) for config in complete],
        "recordSet": [_records(config, about) for config, about in complete.items()],
    }


def _built_on(folder: Path, complete: Mapping[str, Manifest]) -> str:
    """The day on which the youngest of the shards was written; a manifest has no clock in it."""
    shards = [path for config, manifest in complete.items() for path in parquet_paths(folder / config, manifest)]
    return datetime.fromtimestamp(max(path.stat().st_mtime for path in shards), UTC).date().isoformat()


def as_json(metadata: Json) -> str:
    """The metadata as a file holds it."""
    return json.dumps(metadata, indent=1, ensure_ascii=False) + "\n"


def _shards(config: str) -> Json:
    return {
        "@type": "cr:FileSet",
        "@id": f"{config}-shards",
        "name": f"{config}-shards",
        "encodingFormat": "application/x-parquet",
        "includes": f"{config}/test-*.parquet",
    }


def _records(config: str, about: Manifest) -> Json:
    return {
        "@type": "cr:RecordSet",
        "@id": config,
        "name": config,
        "description": f"{about.rows} clips, {about.scenario}, content hash {about.content_sha256}",
        "key": {"@id": f"{config}/id"},
        "field": [_field(config, column, kind) for column, kind in _columns(about).items()],
    }


def _columns(about: Manifest) -> dict[str, str]:
    """Every column of a config and its kind: those of every row, quality, and the corpus' own."""
    more = (column for column in (about.columns or ()) if column not in COLUMNS)
    return COLUMNS | {column: "float64" if column in QUALITY_COLUMNS else "string" for column in more}


def _field(config: str, column: str, kind: str) -> Json:
    transform = {"transform": {"jsonPath": "bytes"}} if kind == "audio" else {}
    return {
        "@type": "cr:Field",
        "@id": f"{config}/{column}",
        "name": column,
        "dataType": TYPES[kind],
        "source": {"fileSet": {"@id": f"{config}-shards"}, "extract": {"column": column}, **transform},
    }


def export_croissant(data: Place = "srb", url: str = "") -> tuple[Path, int]:
    """Write Croissant metadata of built data; returns its path and the number of configs.

    Args:
        data: the built folder.
        url: where the data is published.
    """
    metadata = croissant(str(data), url)
    path = Path(data) / "croissant.json"
    write_atomically(path, as_json(metadata))
    return path, len(metadata["recordSet"])
