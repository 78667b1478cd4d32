"""One file per kind of recogniser: `hf:openai/whisper-tiny.en` is opened by `load` in `hf.py`.

A new adapter is a new file here. Its name is the file's name (`faster_whisper.py` is `faster-whisper:`), the first line
of its docstring is its help, and `load(target, *, ...)` returns a `Recogniser`; the keyword arguments of `load`, with
their types and defaults, are the options that a spec may set after `?`.
"""
