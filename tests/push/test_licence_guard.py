"""What may not be published stays here, and what may carries its terms."""

from __future__ import annotations

import pytest
import yaml
from support.built_data import make_config
from support.part_records import part_of

from speech_robust_bench.core.records import Manifest
from speech_robust_bench.push.dataset_upload import hub_licence, terms

REPO = "acme/srb"


def test_no_derivatives_is_refused_with_the_reason(hub, srb, built):
    folder = built(["en_clean", "en-tedlium_clean", "en-tedlium_noise_sev1"])
    done = srb("push", "data", "--dataset", REPO, "--data", folder, code=2)
    assert "refused en-tedlium_noise_sev1: TED-LIUM 3 test is CC-BY-NC-ND-3.0, which forbids" in done.stderr
    assert ("dataset", REPO) not in hub.repos
    srb("push", "data", "--dataset", REPO, "--data", folder, "--skip-refused")
    assert not any("tedlium" in path for path in hub.repo(REPO).files)
    assert "tedlium" not in hub.repo(REPO).files["README.md"].data.decode()


def test_an_unknown_licence_is_refused(hub, srb, built):
    folder = built(["en_clean"], licence="unknown")
    assert (
        "licence of LibriSpeech test-clean is unknown"
        in srb("push", "data", "--dataset", REPO, "--data", folder, code=2).stderr
    )
    assert ("dataset", REPO) not in hub.repos


def test_a_clip_with_other_terms_than_its_corpus_counts(hub, srb, built):
    folder = built(["en_clean"], licence="CC-BY-NC-ND-4.0")
    manifest = folder / "en_clean" / "_manifest.json"
    manifest.write_text(manifest.read_text().replace("CC-BY-NC-ND-4.0", "CC-BY-4.0"))
    assert "some clips of LibriSpeech" in srb("push", "data", "--dataset", REPO, "--data", folder, code=2).stderr


def test_a_bank_of_ones_own_needs_its_licence_named(hub, srb, built):
    folder = built(["en_noise_sev1"], bank="recordings in mine")
    words = ("push", "data", "--dataset", REPO, "--data", folder)
    assert "licence of recordings in mine is unknown" in srb(*words, code=2).stderr
    srb(*words, "--bank-licence", "recordings in mine=CC0-1.0")
    assert "**recordings in mine** (noises, music or rooms), CC0-1.0" in hub.repo(REPO).files["README.md"].data.decode()


def test_the_card_has_attribution_and_carries_share_alike(hub, srb, built):
    folder = built(["en_clean", "en-chime_clean"])
    make_config(folder, "en_noise_sev2", bank="MS-SNSD")
    srb("push", "data", "--dataset", REPO, "--data", folder)
    card = hub.repo(REPO).files["README.md"].data.decode()
    header = yaml.safe_load(card.split("---\n")[1])
    assert header["license"] == ["cc-by-4.0", "cc-by-sa-3.0", "cc-by-sa-4.0"]
    assert "Panayotov" in card  # the citation of LibriSpeech
    assert "These configs are under CC-BY-SA-4.0: `en-chime_clean`." in card
    assert "These configs are under CC-BY-SA-3.0: `en_noise_sev2`." in card
    assert 'load_dataset("acme/srb"' in card


@pytest.mark.parametrize(
    ("licences", "said"),
    [
        (["CC-BY-4.0"], "cc-by-4.0"),
        (["CC-BY-4.0", "Apache-2.0"], ["apache-2.0", "cc-by-4.0"]),
        (["Apache-2.0 AND MIT"], ["apache-2.0", "mit"]),
        (["MIT-Festival"], "other"),
    ],
)
def test_the_hubs_names_of_licences(licences, said):
    assert hub_licence(licences) == said


def test_a_corpus_that_forbids_it_in_another_way():
    corpus = {"title": "Mine", "licence": "CC-BY-4.0", "derivatives_allowed": False}
    assert "forbids" in (terms(part_of(Manifest, {"config": "x", "corpus": corpus})).refusal() or "")


@pytest.mark.parametrize(
    ("corpus", "bank", "refused"),
    [
        ("CC-BY-SA-4.0", "ESC-50", "CC-BY-SA-4.0 and CC-BY-NC-3.0, which cannot both be kept"),
        ("CC-BY-NC-4.0", "MS-SNSD", "CC-BY-SA-3.0 and CC-BY-NC-4.0, which cannot both be kept"),
        ("CC-BY-NC-SA-4.0", None, None),  # one licence that asks for both
        ("CC-BY-4.0", "WHAM!", None),
        ("CC-BY-4.0", "a bank that nobody named", "--bank-licence 'a bank that nobody named=LICENCE'"),
    ],
)
def test_terms_that_exclude_each_other(corpus, bank, refused):
    about = {"title": "Mine", "licence": corpus, "derivatives_allowed": True}
    assert (terms(part_of(Manifest, {"config": "x", "corpus": about, "bank": bank})).refusal() or "").endswith(
        refused or ""
    )
    assert bool(refused) == bool(terms(part_of(Manifest, {"config": "x", "corpus": about, "bank": bank})).refusal())


LOCAL = {"title": "mine (a local corpus)", "licence": "unknown", "derivatives_allowed": False}


@pytest.mark.parametrize(
    ("rows", "refused"),
    [
        (["unknown"], "column 'licence' of the corpus' manifest"),
        (["CC0-1.0", "unknown"], "column 'licence' of the corpus' manifest"),
        (["CC0-1.0"], None),
        (["CC0-1.0", "MIT"], None),
        (["CC-BY-NC-ND-4.0", "MIT"], "CC-BY-NC-ND-4.0, which forbids"),
        (["CC-BY-NC-4.0", "CC-BY-SA-4.0"], "which cannot both be kept"),
    ],
)
def test_clips_of_a_local_corpus_bring_their_own_licences(rows, refused):
    refusal = terms(part_of(Manifest, {"config": "x", "corpus": LOCAL}), rows).refusal()
    assert (refused in refusal) if refused else refusal is None
