"""Any recogniser of SRB as a model of Inspect: `inspect eval speech_robust_bench/srb --model srb/moonshine`.

What follows `srb/` is a spec as `srb run --model` takes it: `srb/hf:openai/whisper-tiny.en?dtype=float32`. The prompt
is not read; the last audio of the conversation is transcribed, in the language that the task names for it. One clip at
a time is transcribed, whatever Inspect's number of connections: a recogniser is not re-entrant.
"""

from __future__ import annotations

import asyncio
import threading
from base64 import b64decode
from typing import Any

from inspect_ai.model import ChatMessage, ContentAudio, GenerateConfig, ModelAPI, ModelOutput, ModelUsage, modelapi
from inspect_ai.tool import ToolChoice, ToolInfo

from speech_robust_bench.core.audio import RATE, read
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.models.interface import open_model

PROVIDER = "srb"
_NO_TOKENS = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # else Inspect loads a tokenizer from the web


@modelapi(name=PROVIDER)
class RecogniserModel(ModelAPI):
    """A recogniser behind Inspect's model interface."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig | None = None,
        **model_args: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config or GenerateConfig())
        if model_args:
            raise UserError(f"options of a recogniser stand in its spec: srb/{model_name}?{next(iter(model_args))}=...")
        self.recogniser = open_model(model_name)
        self._one_at_a_time = threading.Lock()

    async def generate(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> ModelOutput:
        """The transcript of the last audio."""
        message, audio = _last_audio(input)
        language = (message.metadata or {}).get("language")
        text = await asyncio.to_thread(self._transcribe, audio, language)
        output = ModelOutput.from_content(f"{PROVIDER}/{self.model_name}", text)
        output.usage = _NO_TOKENS
        return output

    def _transcribe(self, audio: str, language: str | None) -> str:
        source = b64decode(audio.partition(",")[2]) if audio.startswith("data:") else audio  # Inspect inlines files
        clip = read(source)
        with self._one_at_a_time:
            return str(self.recogniser.transcribe([clip], RATE, language)[0])

    def max_connections(self) -> int:
        """A clip is prepared while another one is transcribed."""
        return 2

    async def aclose(self) -> None:
        """Give back the recogniser's processes and memory."""
        self.recogniser.close()


def _last_audio(messages: list[ChatMessage]) -> tuple[ChatMessage, str]:
    for message in reversed(messages):
        if isinstance(message.content, list):
            for part in reversed(message.content):
                if isinstance(part, ContentAudio):
                    return message, part.audio
    raise UserError("a recogniser needs audio: this conversation has none")
