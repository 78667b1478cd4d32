"""How an upstream is written, `hf:facebook/hubert-base-ls960`, read without torch."""

from __future__ import annotations

from pathlib import Path

from speech_robust_bench.core.errors import UserError


def parsed_upstream(spec: str) -> tuple[str, str, float]:
    """The kind, the model, and the window in seconds if one is given."""
    path, _, option = spec.partition("?")
    kind, _, target = path.partition(":")
    try:
        window_s = float(option.removeprefix("window_s=")) if option.startswith("window_s=") else 0.0
    except ValueError:
        window_s = -1.0
    if option and not 0.1 <= window_s <= 30:
        raise UserError(f"{spec}: the only option is window_s, up to 30 seconds")
    return kind, target, window_s


def upstream_name(spec: str) -> str:
    """What tables call it: `hf:facebook/hubert-base-ls960` -> `hubert-base-ls960`."""
    kind, target, window_s = parsed_upstream(spec)
    last = Path(target).name
    name = last if kind == "hf" else f"{kind}-{last}" if last else kind
    return f"{name}-{window_s:g}s" if window_s else name
