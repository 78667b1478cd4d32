"""YAML files that a user gives, within bounds: aliases make gigabytes of a few lines ("billion laughs")."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from speech_robust_bench.core.csv_tables import read_text
from speech_robust_bench.core.errors import UserError

MOST_BYTES = 200_000
MOST_NODES = 50_000  # with each alias counted as a copy of what it stands for
LONGEST_SCALAR = 5_000  # `1:2:3:...` is one number in YAML 1.1, which takes quadratic time


def read_yaml(path: str | Path) -> Any:
    """The content of a YAML file, as plain values."""
    import yaml

    text = read_text(path, MOST_BYTES)
    try:
        root = yaml.compose(text, yaml.SafeLoader)
        _check_size(root, path)
        return yaml.safe_load(text)
    except UserError:
        raise
    except RecursionError:
        raise UserError(f"{path}: is nested too deeply") from None
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError) as error:  # `!!int ""`, `!!timestamp x`
        raise UserError(f"{path}: is not YAML ({' '.join(str(error).split())[:200]})") from None


def _check_size(root: Any, path: str | Path) -> None:
    waiting, count = [root], 0
    while waiting and count <= MOST_NODES:
        value = waiting.pop().value if waiting[-1] else ""
        count += 1
        if isinstance(value, str) and len(value) > LONGEST_SCALAR:
            raise UserError(f"{path}: has a value of more than {LONGEST_SCALAR} characters")
        for child in value if isinstance(value, list) else ():
            waiting += child if isinstance(child, tuple) else [child]
    if waiting:
        raise UserError(f"{path}: has more than {MOST_NODES} values once its aliases are expanded")
