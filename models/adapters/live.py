"""Any recogniser used live: `live:<model>?policy=local-agreement&chunk=1.0` (see `models/streaming/policies.py`).

The model's own options go before: `live:hf:openai/whisper-tiny.en?beams=2?policy=hold-n&hold=3`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.models.interface import Clip, Described, Recogniser, open_model
from speech_robust_bench.models.streaming.policies import POLICIES, Policy, PolicySession
from speech_robust_bench.models.streaming.replay import replay
from speech_robust_bench.models.streaming.session import Streams
from speech_robust_bench.models.streaming.voice_activity import Endpointer

DETECTORS = ("silero", "none")
PAUSE_S = 0.5


@dataclass
class Live(Described):
    """A recogniser of whole clips behind a policy."""

    inner: Recogniser = None  # type: ignore[assignment]
    policy: Policy = field(default_factory=Policy)
    pause_s: float | None = None  # None: no endpoints

    def stream(self, rate: int, language: str | None) -> PolicySession:
        def transcribe(clip: Clip) -> str:
            return self.inner.transcribe([clip], rate, language)[0]

        endpointer = Endpointer(rate, self.pause_s) if self.pause_s is not None else None
        return PolicySession(transcribe, rate, self.policy, endpointer)

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        return [replay(self.stream(rate, language), clip, rate).text for clip in clips]

    def close(self) -> None:
        self.inner.close()


def as_live(recogniser: Recogniser) -> Recogniser:
    """A recogniser that can be used live: itself, or by local agreement where it only knows whole clips."""
    return recogniser if isinstance(recogniser, Streams) else _behind(recogniser, Policy(), PAUSE_S)


def _behind(inner: Recogniser, policy: Policy, pause_s: float | None) -> Live:
    about = {"policy": policy.name, "chunk": policy.chunk_s, "hold": policy.hold, "longest": policy.longest_s}
    about |= {"vad": "none" if pause_s is None else "silero", "pause": pause_s}
    return Live(
        name=f"live-{inner.name}",
        revision=inner.revision,
        options={**inner.options, "model": inner.name, **about},
        inner=inner,
        policy=policy,
        pause_s=pause_s,
    )


def load(
    target: str,
    *,
    policy: str = "local-agreement",
    chunk: float = 1.0,
    hold: int = 2,
    longest: float = 28.0,
    vad: str = "silero",
    pause: float = PAUSE_S,
    device: str = "",
) -> Recogniser:
    """`chunk`, `longest` and `pause` in seconds; `vad=none` has no endpoints but the end of the stream."""
    if not target:
        raise UserError("'live' needs a recogniser: live:moonshine?policy=local-agreement&chunk=1.0")
    for what, given, known in (("policy", policy, POLICIES), ("vad", vad, DETECTORS)):
        if given not in known:
            raise UserError(f"live: no {what} '{given}'; {did_you_mean(given, known)}")
    if not (0 < chunk <= longest) or hold < 0 or pause <= 0:
        raise UserError("live: 0 < chunk <= longest, hold is 0 or more, and pause more than 0 s")
    inner = open_model(target, device=device or None)
    return _behind(inner, Policy(policy, chunk, hold, longest), pause if vad != "none" else None)
