"""What the gate was asked and what it found: numbers, a sentence, a table, Markdown for a pull request, JUnit XML."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from speech_robust_bench.core.errors import UserError, for_markdown, for_terminal
from speech_robust_bench.core.files import write_atomically
from speech_robust_bench.core.options import normaliser_option, option, resample_option
from speech_robust_bench.scoring.bootstrap import CLIPS, SPEAKERS

MOST_CLIPS = 1500  # transcriptions at most
BEYOND = 0.1  # the rise above what is allowed that must not be missed
MOST_CONFIGS = 5  # configs named in a table; the JSON has all
WORSE, NOT_WORSE, UNDECIDED = "worse", "not worse", "undecided"
WER = ("baseline WER", "new WER", "rise")


@dataclass(frozen=True)
class GateOptions:
    """The rise that the gate allows, the rise that it must find, and its error rates."""

    worst: float = option(0.0, "allowed relative rise of the noisy WER; 0.05 is 5 %", metavar="R")
    detect: float | None = option(
        None,
        "smallest relative rise that must be found (default: 10 % above the allowed rise)",
        metavar="R",
        advanced=True,
    )
    alpha: float = option(0.05, "error rates of the test: false alarms, and missed rises of --detect", advanced=True)
    clips: int = option(MOST_CLIPS, "maximum number of clips to transcribe", metavar="N")
    normaliser: str = normaliser_option(advanced=True)
    resample: str = resample_option(advanced=True)
    seed: int = option(0, "seed of the order of the clips; another seed takes other clips", advanced=True)

    def __post_init__(self) -> None:
        if not 0 <= self.worst < self.sought:
            raise UserError(
                f"worst {self.worst:g} is not between 0 and detect, {self.sought:g}: 0.05 allows a rise of 5 %"
            )
        if not 0 < self.alpha < 0.5:
            raise UserError(f"alpha {self.alpha:g} is not between 0 and 0.5")
        if self.clips < 2:
            raise UserError(f"{self.clips} clips are too few; the test needs two or more")

    @property
    def sought(self) -> float:
        """The smallest relative rise that must be found."""
        return self.worst + BEYOND if self.detect is None else self.detect


@dataclass(frozen=True)
class Look:
    """One look at the clips so far: the rise, and the interval of it that holds at all looks together."""

    units: int  # speakers, or clips (each with its perturbed versions)
    clips: int
    rise: float
    low: float
    high: float
    verdict: str | None


@dataclass(frozen=True)
class Part:
    """What happened in one part of the clips: all of them, a category or a config."""

    name: str
    kind: str
    units: int  # speakers, or clips (each with its perturbed versions)
    clips: int
    words: int
    old_wer: float
    new_wer: float
    rise: float
    low: float
    high: float
    p: float  # that the rise is above what is allowed, one-sided; corrected for the number of parts of its kind


@dataclass(frozen=True, repr=False)
class GateResult:
    """Result of a gate: the verdict and its parts."""

    model: str
    baseline: str
    verdict: str
    options: GateOptions
    looks: tuple[Look, ...]
    parts: tuple[Part, ...]  # everything first, then categories, then configs
    planned: int  # clips, had every look been needed
    unit: str  # what the test is over: speakers, or clips
    needed: int | None  # clips that would find a rise of `detect` in one look, by the variance seen
    needed_units: int | None  # and of how many units

    @property
    def passed(self) -> bool:
        """Whether the new recogniser may pass: it is not significantly less robust."""
        return self.verdict != WORSE

    @property
    def whole(self) -> Part:
        """The part with all clips."""
        return self.parts[0]

    def of_kind(self, kind: str) -> list[Part]:
        """The parts of one kind, `category` or `config`, the largest rise first."""
        return sorted((part for part in self.parts if part.kind == kind), key=lambda part: (-part.rise, part.name))

    def worse_in(self, kind: str = "category") -> list[Part]:
        """The parts of one kind whose rise is significant by itself."""
        options = self.options
        return [part for part in self.of_kind(kind) if part.p <= options.alpha and part.low > options.worst]

    def summary(self) -> str:
        """The verdict and its reason in one sentence."""
        look, allowed, sought = self.looks[-1], self.options.worst, self.options.sought
        rise = f"a rise of {percent(look.rise)} ({span(look.low, look.high)})"
        seen = f"noisy WER {self.whole.old_wer:.1f} -> {self.whole.new_wer:.1f}, "
        seen += f"{rise if math.isfinite(look.rise) else 'from no errors at all'}, "
        seen += f"after {look.clips} of {self.planned} clips "
        seen += f"of {look.units} speakers" if self.unit == SPEAKERS else "(test over clips)"
        if self.verdict == WORSE:
            return f"significantly less robust: {seen}" + (f"; up to {percent(allowed)} is allowed" if allowed else "")
        if self.verdict == NOT_WORSE:
            return f"not less robust, a rise of {percent(sought)} is ruled out: {seen}"
        more = ""
        if self.needed and self.needed > look.clips:
            of = f" of {self.needed_units} speakers" if self.unit == SPEAKERS else ""
            more = f"; about {self.needed} clips{of} would find it"
        return f"not significantly less robust, but a rise of {percent(sought)} is not ruled out: {seen}{more}"

    def to_json(self) -> dict[str, Any]:
        """The result as plain values."""
        return _finite({**asdict(self), "passed": self.passed, "summary": self.summary()})

    def head(self) -> tuple[str, ...]:
        """The header of the table; its intervals are those of two one-sided tests."""
        return "", *self._sizes(), *WER, f"{100 - 200 * self.options.alpha:g} % interval", ""

    def _sizes(self) -> tuple[str, ...]:
        """The columns that say what a line rests on."""
        return (SPEAKERS, CLIPS) if self.unit == SPEAKERS else (CLIPS,)

    def rows(self) -> list[tuple[str, ...]]:
        """The lines of the table: all clips, every category, and the configs that rose most."""
        configs = [part for part in self.of_kind("config") if part.rise > 0][:MOST_CONFIGS]
        return [self._cells(part) for part in (self.whole, *self.of_kind("category"), *configs)]

    def _cells(self, part: Part) -> tuple[str, ...]:
        wer = f"{part.old_wer:.1f}", f"{part.new_wer:.1f}"
        sizes = [str(part.units), str(part.clips)] if self.unit == SPEAKERS else [str(part.clips)]
        rise = percent(part.rise), span(part.low, part.high)
        return part.name, *sizes, *wer, *rise, WORSE if self._is_worse(part) else ""

    def _is_worse(self, part: Part) -> bool:
        """All clips are judged by the sequential test, a part of them by its own, corrected p-value."""
        return not self.passed if part.kind == "all" else part in self.worse_in(part.kind)

    def markdown(self) -> str:
        """The result in Markdown: the verdict, and a table of categories and configs."""
        outcome, summary = "passed" if self.passed else "failed", self.summary()
        lines = ["| " + " | ".join(map(for_markdown, line)) + " |" for line in (self.head(), *self.rows())]
        lines.insert(1, "|---" + "|---:" * (len(self.head()) - 2) + "|---|")
        title = f"### Robustness gate {outcome}: {for_markdown(self.model)} against {for_markdown(self.baseline)}"
        return "\n".join([title, "", for_markdown(summary[0].upper() + summary[1:]) + ".", "", *lines, ""])

    def write(self, junit: Path | None = None, markdown: Path | None = None, seconds: float = 0.0) -> None:
        """Write the files that are named."""
        if junit:
            write_atomically(junit, self.junit(seconds))
        if markdown:
            write_atomically(markdown, self.markdown())

    def junit(self, seconds: float = 0.0) -> str:
        """The result as JUnit XML: one case for all clips, and one for each category.

        A category alone does not fail the gate, so it fails as a test only together with the whole. The elements are
        those that pytest writes and that GitHub, GitLab and Jenkins read; there is no standard.
        """
        from xml.etree import ElementTree

        parts = [self.whole, *self.of_kind("category")]
        failed = [part for part in parts if not self.passed and self._is_worse(part)]
        counts = {"tests": str(len(parts)), "failures": str(len(failed)), "errors": "0", "skipped": "0"}
        about = {"name": "srb gate", **counts, "time": f"{seconds:.3f}"}
        suites = ElementTree.Element("testsuites", about)
        suite = ElementTree.SubElement(suites, "testsuite", about)
        for part in parts:
            name, time = ("noisy WER", seconds) if part.kind == "all" else (for_terminal(part.name), 0)
            named = {"classname": "srb.gate", "name": name, "time": f"{time:.3f}"}
            case = ElementTree.SubElement(suite, "testcase", named)
            cells = zip((*self._sizes(), *WER), self._cells(part)[1:], strict=False)
            line = for_terminal(", ".join(f"{title} {cell}" for title, cell in cells))
            if part in failed:
                message = for_terminal(self.summary()) if part.kind == "all" else line
                ElementTree.SubElement(case, "failure", {"message": message, "type": "LessRobust"}).text = line
            else:
                ElementTree.SubElement(case, "system-out").text = line
        ElementTree.indent(suites)
        return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"

    def __repr__(self) -> str:
        outcome = "passed" if self.passed else "failed"
        return f"<Gate {outcome}: {self.model} against {self.baseline}, {self.summary()}>"

    def _repr_markdown_(self) -> str:
        return self.markdown()


def percent(share: float) -> str:
    """A relative change as it is shown."""
    return f"{100 * share:+.1f} %" if math.isfinite(share) else "unknown" if math.isnan(share) else "unbounded"


def span(low: float, high: float) -> str:
    """The interval of a relative change."""
    return f"{percent(low)} to {percent(high)}" if math.isfinite(low) else percent(low)


def _finite(value: Any) -> Any:
    """The same without infinities, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
