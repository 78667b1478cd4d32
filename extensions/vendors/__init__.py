"""Recognisers behind an HTTP interface: vendors, OpenAI-compatible servers and chat models."""
