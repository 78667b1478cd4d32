"""The mode `--word-timing` of `srb run`: whole clips as ever, and where the words of the reference lie besides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from speech_robust_bench.builders.configs import Config
    from speech_robust_bench.core.records import Prediction, Settings, Told
    from speech_robust_bench.models.interface import Key, Recogniser


@dataclass(frozen=True)
class WordTimingOptions:
    """Align the reference of each clean clip with its audio, and keep the times with the predictions."""

    about: ClassVar[str] = "store where each word of the reference lies (forced alignment), to check word times"
    suffix: ClassVar[str] = "timed"
    advanced: ClassVar[bool] = True

    @property
    def flags(self) -> str:
        """The option of `srb run`."""
        return " --word-timing"

    @classmethod
    def of_run(cls, options: Settings) -> None:
        """A timed run differs from others in what is known of its clips alone, so nothing in its options tells."""

    def adapted(self, recogniser: Recogniser) -> Recogniser:
        """The recogniser as it is."""
        return recogniser

    def wrap(self, recogniser: Recogniser) -> Recogniser:
        """The recogniser as it is."""
        return recogniser

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
        """Nothing besides the words is compared."""
        return None, None
