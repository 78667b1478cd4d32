"""Recognisers behind an HTTP interface: vendors, OpenAI-compatible servers and chat models."""

ADAPTERS = {
    "api": f"{__name__}.endpoints:load_vendor",
    "chat-api": f"{__name__}.endpoints:load_chat",
    "openai-api": f"{__name__}.endpoints:load_openai",
}
