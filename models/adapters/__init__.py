"""One file per kind of recogniser: `hf:openai/whisper-tiny.en` is opened by `load` in `hf.py` (see CONTRIBUTING.md)."""
