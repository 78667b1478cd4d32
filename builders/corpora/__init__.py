"""Every corpus by name, and `open_corpus`, which finds its data.

`--corpus en=PATH` names the data of a language's default corpus, `--corpus en-tedlium=PATH` that of another one, and
any other name (`en-mine=PATH`) is the user's own. PATH is a folder, a manifest file, or a Hugging Face dataset,
`hf:<id or folder>[:config][:split]` (`hf-stream:` reads it without downloading it first; `hf:` alone is the corpus'
standard dataset on the Hub). `links:` before it allows links to files outside that folder, as `--follow-links` does.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from speech_robust_bench.builders.corpora import (
    conversations,
    folder,
    read_speech,
    speaker_traits,
)
from speech_robust_bench.builders.corpora.base import Corpus, FileAudio, KnownCorpus, Problem, Utterance
from speech_robust_bench.builders.corpora.folder import HubSpec, parse_hub, read_hub
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.extensions import registered_objects
from speech_robust_bench.core.files import check_link, check_tree
from speech_robust_bench.core.names import default_corpus

_KEY = re.compile(r"(?P<language>[a-z]{2,3})(?:-(?P<name>[a-z0-9]+))?")
LINKS = "links:"  # before a source whose links may lead anywhere
Corpora = Mapping[str, str | os.PathLike | None] | None  # {"en": FOLDER, "en-mine": "hf:ID", "en-demo": None}
Sources = Mapping[tuple[str, str], str | None]  # the same by language and name; None for what is built in


_DEV_NAMES = ("librispeech", "mls", "tedlium")
DEV = "dev"  # at the end of a corpus' name: its dev split, with clips that are in no test config


def _dev_split(entry: KnownCorpus) -> KnownCorpus:
    hub = entry.info.hub and entry.info.hub.replace(":clean:test", ":clean:validation").replace("}:test", "}:dev")
    info = replace(
        entry.info,
        name=f"{entry.info.name}{DEV}",
        title=entry.info.title.replace("test", DEV),
        hub=hub,
        get=entry.info.get.replace("test-clean", "dev-clean"),
    )
    return replace(entry, info=info, read=partial(entry.read, split=DEV), layout=entry.layout.replace("test", DEV))


_WITH_DEV = tuple(entry for entry in read_speech.CORPORA if entry.info.name in _DEV_NAMES)
CORPORA = {
    entry.info.name: entry
    for entry in (
        *registered_objects("CORPORA").values(),
        *read_speech.CORPORA,
        *map(_dev_split, _WITH_DEV),
        *conversations.CORPORA,
        *speaker_traits.CORPORA,
        KnownCorpus(folder.DEMO, folder.read_demo, "manifest.csv", ("en", "es"), sort=False),
    )
}


@dataclass(frozen=True)
class Recorded:
    """A scenario that is a selection of real recordings: from which corpus, and which of its utterances."""

    corpus: str
    far: bool = False
    keep: Callable[[Utterance], bool] | None = None
    min_p808: float | None = None  # the DNSMOS P.808 rating that a clip must reach


# The scenarios of the paper that come from real recordings (its Section 3 and Appendix A).
RECORDED = {
    "accent": Recorded("commonvoice", keep=read_speech.is_accented, min_p808=read_speech.MIN_P808),
    "social_ami_near": Recorded("ami"),
    "social_ami_far": Recorded("ami", far=True),
    "social_chime_near": Recorded("chime"),
    "social_chime_far": Recorded("chime", far=True),
}


def as_sources(
    given: str | os.PathLike | Corpora, only: tuple[str, str] | None = None, *, follow_links: bool = False
) -> Sources:
    """Corpora by language and name, or the folder alone where it can be `only` one corpus."""
    if not isinstance(given, Mapping | None):
        if only is None or not isinstance(given, str | os.PathLike):
            raise UserError(f"corpus={given!r}: say which corpus that is, as in {{'en-mine': FOLDER}}")
        return {only: os.fspath(given)}
    sources: dict[tuple[str, str], str | None] = {}
    for name, where in (given or {}).items():
        match, source = _KEY.fullmatch(name), None if where is None else os.fspath(where)
        flag = name if source is None else f"{name}={source}"
        if not match or not (source or match["name"] == folder.DEMO.name):
            raise UserError(f"--corpus {flag}: {_flag_problem(name)}")
        key = match["language"], match["name"] or default_corpus(match["language"])
        if key in sources:
            raise UserError(f"--corpus {flag}: {_flag(*key)} is given twice; name one of them otherwise")
        sources[key] = f"{LINKS}{source.removeprefix(LINKS)}" if source and follow_links else source
    return sources


def _flag_problem(flag: str) -> str:
    language, dash, name = flag.partition("-")
    odd = re.sub(r"[a-z0-9]", "", name)
    if not (dash and odd and re.fullmatch("[a-z]{2,3}", language)):
        return "write LANGUAGE=PATH or LANGUAGE-NAME=PATH, as in en=data/LibriSpeech"
    better = re.sub(r"[^a-z0-9]", "", name.lower())
    return (
        f"the name '{name}' has '{odd[0]}', and the name of a corpus has small letters and digits alone (write it as "
        f"LANGUAGE-NAME=PATH{f', as in {language}-{better}=...' if better else ''})"
    )


def dev_splits(sources: Sources, patterns: Iterable[str]) -> tuple[Sources, list[str]]:
    """`--split dev`: the same corpora and configs of their dev splits; `en-tedlium_clean` is `en-tedliumdev_clean`."""
    wanted = list(patterns)
    changed: dict[tuple[str, str], str | None] = {}
    for (language, name), source in sources.items():
        if f"{name}{DEV}" not in CORPORA:
            known = ", ".join(entry.info.name for entry in _WITH_DEV)
            raise UserError(f"--split dev: {_flag(language, name)} has no dev split that SRB reads; {known} have one")
        changed[language, f"{name}{DEV}"] = source
        prefix = f"{_flag(language, name)}_"
        own = f"{language}-{name}{DEV}_"
        wanted = [own + pattern.removeprefix(prefix) if pattern.startswith(prefix) else pattern for pattern in wanted]
    return changed, wanted


def open_corpus(
    source: str | Path | None, language: str, name: str | None = None, scenario: str | None = None
) -> Corpus:
    """A corpus from its folder or Hugging Face dataset; nothing is read before it is iterated.

    `name` is the language's default corpus unless given; a name that is not known is a plain folder. `scenario` picks
    the selection of RECORDED that the scenario is (`social_ami_far`). Without a source only `demo` can be opened.
    """
    recorded = RECORDED.get(scenario or "")
    name = name or (recorded.corpus if recorded else default_corpus(language))
    entry = CORPORA.get(name)
    if entry and entry.languages and language not in entry.languages:
        raise UserError(f"the corpus {name} has no language '{language}'; it has {', '.join(entry.languages)}")
    if source is None and name == "demo":
        source = folder.DEMO_FOLDER
    if source is None:
        raise UserError(_how_to_get(entry, language, name))
    info = entry.info if entry else folder.info(name)
    if recorded is None or recorded.corpus != name:
        recorded = Recorded(name)
    far, keep = recorded.far, recorded.keep
    listen = None if recorded.min_p808 is None else partial(_filter_p808, minimum=recorded.min_p808)
    follow_links = str(source).startswith(LINKS) or source == folder.DEMO_FOLDER
    source = str(source).removeprefix(LINKS)
    spec = parse_hub(source)
    if spec:
        spec = complete(spec, entry.info.hub if entry else None, language, far)
        spec = replace(spec, follow_links=follow_links)
        read_rows = partial(_read_rows, spec, language, entry.amend if entry else None)
        return Corpus(info, language, source, read_rows, sort=not spec.streaming, keep=keep, listen=listen)
    root = Path(source).expanduser().absolute()  # a worker may run in another folder
    if not root.exists():
        get = f"; {entry.info.get}" if entry else ""
        raise UserError(f"{root}: no such folder (--corpus {_flag(language, name)}={source}){get}")
    read = partial(entry.read, far=far) if entry and far else entry.read if entry else folder.read
    read_some = partial(_read_some, read, root, language, entry, follow_links=follow_links)
    sort = entry.sort if entry else True
    return Corpus(info, language, source, read_some, sort=sort, keep=keep, listen=listen)


def standard(template: str, language: str, far: bool = False) -> HubSpec:
    """A corpus' standard Hub dataset, for a language and a microphone."""
    filled = template.format(
        language=language, mls=read_speech.MLS_LANGUAGES.get(language, language), ami="sdm" if far else "ihm"
    )
    spec = parse_hub(filled)
    assert spec is not None
    return spec


def complete(spec: HubSpec, template: str | None, language: str, far: bool = False) -> HubSpec:
    """Fill in what was left out: `hf:` alone is the corpus' standard dataset, its id alone the standard config."""
    if template is None:
        if not spec.path:
            raise UserError("there is no standard Hub dataset for this corpus; write hf:<dataset>[:config][:split]")
        return spec
    usual = standard(template, language, far)
    if spec.path and spec.path != usual.path:
        return spec
    return replace(spec, path=usual.path, config=spec.config or usual.config, split=spec.split or usual.split)


def _filter_p808(utterances: list[Utterance], minimum: float) -> Iterable[Utterance | Problem]:
    from speech_robust_bench.builders.quality import filter_p808  # it needs packages that nothing else here does

    return filter_p808(utterances, minimum, os.cpu_count() or 1)


def _read_rows(
    spec: HubSpec, language: str, amend: Callable[[Utterance], Utterance | None] | None
) -> Iterable[Utterance | Problem]:
    for item in read_hub(spec, language):
        amended = amend(item) if amend and isinstance(item, Utterance) else item
        if amended is not None:
            yield amended


def _read_some(
    read: Callable[[Path, str], Iterable[Utterance | Problem]],
    root: Path,
    language: str,
    entry: KnownCorpus | None,
    follow_links: bool,
) -> Iterable[Utterance | Problem]:
    """What the reader finds; nothing at all means that the folder has another layout."""
    check_tree(root, follow_links)
    listed = root.is_file() and not follow_links  # a manifest: its folder is not read, only what it names
    empty = True
    try:
        for item in read(root, language):
            empty = False
            if listed and isinstance(item, Utterance) and isinstance(item.audio, FileAudio):
                check_link(root.parent, item.audio.path)
            yield item
    except UserError:
        raise
    except _MISREAD as error:
        what = f"as {entry.info.title} ({entry.layout})" if entry else "as a corpus"
        raise UserError(f"{root}: cannot be read {what}: {type(error).__name__}, {_short(error)}") from None
    if empty and entry:
        raise UserError(
            f"{root}: nothing here looks like {entry.info.title} in '{language}' ({entry.layout}); "
            f"for recordings of your own give them a name, --corpus {language}-mine={root}"
        )


# what a reader of a layout meets in files that are of another one, or damaged
_MISREAD = (ValueError, LookupError, TypeError, AttributeError, RecursionError, csv.Error)


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:120]


def _how_to_get(entry: KnownCorpus | None, language: str, name: str) -> str:
    flag = _flag(language, name)
    if entry is None:
        return f"where is the corpus '{name}'? Point to its folder with --corpus {flag}=PATH ({folder.info(name).get})"
    hint = f"no data for {entry.info.title}: {entry.info.get}, then --corpus {flag}=PATH"
    return hint + (f", or --corpus {flag}=hf: to take it from the Hub" if entry.info.hub else "")


def _flag(language: str, name: str) -> str:
    return language if name == default_corpus(language) else f"{language}-{name}"
