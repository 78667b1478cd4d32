"""Loads models by transformers: without its chatter, and whatever is wrong with a model is one line."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.install_hint import install_hint
from speech_robust_bench.core.remote_code import closed_stdin
from speech_robust_bench.models.interface import folder_revision, need, out_of_memory

INSTALL = install_hint("models")


def quiet_transformers(adapter: str) -> Any:
    """The package, which from here on prints errors alone; nor does the Hub's client tell of every retry."""
    transformers = need("transformers", adapter, INSTALL)
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    return transformers


@contextmanager
def loading(spec: str) -> Iterator[None]:
    """A model that is not there, is damaged, or is of another kind: transformers raises what it likes."""
    try:
        with closed_stdin():
            yield
    except UserError:
        raise
    except (OSError, ValueError, ImportError) as error:
        raise UserError(f"{spec}: {first_line(error)}") from None
    except Exception as error:  # a folder with gaps in it
        if out_of_memory(error):
            raise
        raise UserError(
            f"{spec}: cannot be loaded ({first_line(error)[:200]}); a whole folder has config.json, weights that "
            "fit it, a processor and a tokenizer, as save_pretrained writes them"
        ) from None


def first_line(error: Exception) -> str:
    """What an error says, in short."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def revision_of(target: str, config: Any) -> str | None:
    """The commit on the Hub, or a hash over the files of a folder."""
    if Path(target).is_dir():
        return folder_revision(Path(target), ("*.json", "*.safetensors", "*.bin", "*.model", "*.txt", "*.py"))
    return getattr(config, "_commit_hash", None)
