"""Recognisers behind an HTTP interface: vendors, OpenAI-compatible servers and chat models."""

ADAPTERS = {name: f"{__name__}.{name.replace('-', '_')}" for name in ("api", "chat-api", "openai-api")}
