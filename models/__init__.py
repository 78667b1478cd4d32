"""Recogniser adapters and the runner that transcribes dataset configs."""
