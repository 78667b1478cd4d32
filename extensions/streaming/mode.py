"""The mode `--stream` of `srb run`: its options, and what they make of a recogniser."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.options import option
from speech_robust_bench.extensions.streaming.record import (
    CHUNK_MS,
    LONGEST_MS,
    MOST_REPEATS,
    MOST_SPEED,
    SHORTEST_MS,
)

if TYPE_CHECKING:
    from speech_robust_bench.builders.configs import Config
    from speech_robust_bench.core.records import Prediction, Settings, Stream, Told
    from speech_robust_bench.models.interface import Key, Recogniser


@dataclass(frozen=True)
class StreamOptions:
    """How to stream: the length of a chunk, the simulated speed, and whether to pace the audio in real time."""

    about: ClassVar[str] = "stream the audio chunk by chunk, and store when each word appears"
    suffix: ClassVar[str] = "live"
    advanced: ClassVar[bool] = False

    chunk_ms: int = option(CHUNK_MS, "length of a chunk, in milliseconds", metavar="MS")
    speed: float = option(1.0, "simulate a machine that is F times as fast", metavar="F")
    realtime: bool = option(False, "pace the audio in real time (required by most servers)")
    # The processor time of this process hardly depends on what else the machine does.
    processor_time: bool = option(
        False, "measure the processor time of srb itself, all threads, instead of wall-clock time (for a busy machine)"
    )
    # What else the machine does only adds time, so of each call the quickest counts.
    repeats: int = option(
        1, "send every clip N times and keep the quickest time of each call (for a busy machine)", metavar="N"
    )

    def __post_init__(self) -> None:
        if not SHORTEST_MS <= self.chunk_ms <= LONGEST_MS:
            raise UserError(f"chunks are {SHORTEST_MS} to {LONGEST_MS} ms long, not {self.chunk_ms}")
        if not 0 < self.speed <= MOST_SPEED:
            raise UserError(f"the speed of a machine is a factor above 0, not {self.speed}")
        if self.realtime and self.speed != 1:
            raise UserError("in real time no other machine can be simulated: leave the speed out")
        if self.realtime and self.processor_time:
            raise UserError("in real time the clock on the wall counts: leave the processor time out")
        if not 1 <= self.repeats <= MOST_REPEATS:
            raise UserError(f"a clip is repeated 1 to {MOST_REPEATS} times, not {self.repeats}")
        if self.realtime and self.repeats > 1:
            raise UserError("in real time a clip is sent once: leave the repeats out")

    @property
    def flags(self) -> str:
        """The options of `srb run`."""
        repeated = f" --repeats {self.repeats}" if self.repeats > 1 else ""
        return f" --stream --chunk-ms {self.chunk_ms}{repeated}{' --realtime' if self.realtime else ''}"

    @classmethod
    def of_run(cls, options: Settings) -> StreamOptions | None:
        """The pace of a streamed run, by its run.json, which may be a stranger's."""
        kinds = {"chunk_ms": int, "speed": int | float, "realtime": bool}
        if not all(isinstance(options.get(name), kind) for name, kind in kinds.items()):
            return None
        repeats = options.get("repeats", 1)
        return cls(
            options["chunk_ms"],
            options["speed"],
            options["realtime"],
            options.get("processor_time") is True,
            repeats if isinstance(repeats, int) else 1,
        )

    # Speech recognition and its packages are imported when a model is run, not for the help of a command.

    def adapted(self, recogniser: Recogniser) -> Recogniser:
        """A recogniser that can be used live: itself, or by local agreement where it only knows whole clips."""
        from speech_robust_bench.extensions.streaming.live import as_live

        return as_live(recogniser)

    def wrap(self, recogniser: Recogniser) -> Recogniser:
        """The recogniser as it is used live: each clip is replayed to a session, and its timeline is kept."""
        from speech_robust_bench.extensions.streaming.replay import streamed

        return streamed(recogniser, self)

    def facts(
        self, config: Config, clean: Callable[[], Config], wanted: set[int], store: Path
    ) -> Callable[[Prediction], dict[str, Any]]:
        """Where the words of a clip lie, from the clean clip that it was made from."""
        from speech_robust_bench.builders.word_times import word_times_of

        times = word_times_of(config, clean(), wanted, store / ".word_times")
        return lambda line: {"words": times(line)} if times else {}

    def agreement(
        self, sent: Mapping[Key, Prediction], again: Mapping[Key, Told], same: set[Key]
    ) -> tuple[int | None, float | None]:
        """How many of the clips with the same words showed them after the same audio, and how the times compare."""
        pairs = [(key, before, after) for key in sent if (before := sent[key].stream) and (after := again[key].stream)]
        if not pairs or self.realtime:  # a server shows its words when it likes
            return None, None
        shown = sum(key in same and _shown(before) == _shown(after) for key, before, after in pairs)
        before_ms = sum(sum(before.took_ms) for _, before, _ in pairs)
        after_ms = sum(sum(after.took_ms) for _, _, after in pairs)
        return shown, round(after_ms / before_ms, 2) if before_ms else None


def _shown(stream: Stream) -> list[tuple[float, str, str]]:
    """The words shown, and after how much of the audio."""
    return [event[1:] for event in stream.events]
