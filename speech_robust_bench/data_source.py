"""Where the clips of a command come from: configs that were built, or corpora that are perturbed as they are read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from speech_robust_bench.builders.config_sources import open_data, select
from speech_robust_bench.builders.corpora import Corpora, as_sources
from speech_robust_bench.builders.custom import load_table
from speech_robust_bench.builders.live_config import LiveConfigs, default_workers
from speech_robust_bench.builders.plan import DEMO, check_limit
from speech_robust_bench.core.errors import UserError, warn
from speech_robust_bench.core.progress import tasks
from speech_robust_bench.options import DataOptions, Place
from speech_robust_bench.perturbation import open_banks

if TYPE_CHECKING:
    from speech_robust_bench.builders.configs import ConfigSource
    from speech_robust_bench.builders.suites import Suite


@dataclass
class DataSource:
    """The configs of a built folder or Hub dataset, `data`, or those that can be made from some corpora."""

    corpus: Corpora = None
    data: Place | None = None
    limit: int | None = None
    options: DataOptions = field(default_factory=DataOptions)
    workers: int | None = None
    progress: bool = True

    def __post_init__(self) -> None:

        check_limit(self.limit)
        if self.data is not None and self.corpus:
            raise UserError("give either data, for configs that were built, or corpus, to perturb it now")
        self.perturbed: LiveConfigs | None = None
        self._stored: ConfigSource | None = None
        if self.data is None:
            self.perturbed = LiveConfigs(
                as_sources(self.corpus, follow_links=self.options.follow_links) or DEMO,
                open_banks(self.options.noise_dir, self.options.rir_dir),
                load_table(self.options.scenario_file),
                limit=self.limit,
                tts=self.options.tts,
                on_error=self.options.on_error,
                workers=self.workers or default_workers(),
                report=lambda problem: warn(str(problem)),
            )

    @property
    def where(self) -> str:
        """The data as a run file names it."""
        return os.fspath(self.data) if self.data is not None else self.perturbed.where  # type: ignore[union-attr]

    @property
    def configs(self) -> ConfigSource:
        """The place itself."""

        if self.perturbed is not None:
            return self.perturbed
        if self._stored is None:
            self._stored = open_data(self.where)
        return self._stored

    def select(self, patterns: Sequence[str], suite: Suite | None = None) -> list[str]:
        """The names of the configs that patterns or a suite mean; without any, all."""

        if self.perturbed is not None:
            tts = bool(self.options.tts)
            return self.perturbed.select(suite.configs(self.perturbed.sources, tts=tts) if suite else patterns)
        return select(self.configs, suite.on_data(self.configs.names()) if suite else patterns, self.where)

    def open(self, names: Sequence[str]) -> list[Any]:
        """The configs of these names; clips that are perturbed now are checked first."""

        if self.perturbed is None:
            return [self.configs.config(name) for name in names]
        with tasks(not self.progress) as show:
            self.perturbed.progress = show
            return list(self.perturbed.configs(names))

    def __enter__(self) -> DataSource:
        return self

    def __exit__(self, *_: Any) -> None:
        if self.perturbed is not None:
            self.perturbed.close()
