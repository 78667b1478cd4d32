"""A finished config's `manifest.json`: what it was made from, and the hash that proves its content."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from srb.builders.errors import UserError

MANIFEST = "manifest.json"


def read_manifest(config: Path) -> dict[str, Any]:
    """The manifest in a config's folder."""
    path = config / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        manifest["config"]
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(f"{path}: is damaged; remove {config} and build it again") from None
    return manifest


def manifests(out: Path) -> dict[str, dict[str, Any]]:
    """The manifests of the complete configs in a folder, by config name."""
    return {path.parent.name: read_manifest(path.parent) for path in sorted(out.glob(f"*/{MANIFEST}"))}
