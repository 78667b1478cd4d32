"""Membership inference: models whose training data is known, statistics by scikit-learn, command and report."""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import soundfile
from support.run_folders import write_run
from support.tones import LETTERS, SmallCtc, text_of, tones

import speech_robust_bench as srb
from speech_robust_bench.attacks.clips import padded
from speech_robust_bench.cli.main import main
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.contamination.features import (
    Clips,
    auc,
    cross_fit,
    fit_logistic,
    hits_at_false_alarms,
    permutation_p,
    permuted_aucs,
    refit_error,
    share_interval,
    transcript_features,
    white_noise,
    widened,
)
from speech_robust_bench.extensions.contamination.result import conclusion

OPTIONS = {"snrs": (10.0, 30.0), "draws": 2, "radii": (0.001, 0.01), "replicates": 300}


@cache
def memorised(seeds: range, steps: int = 150) -> SmallCtc:
    """A CTC model overfitted on clips whose words are not what is heard, so that it can only learn them by heart."""
    torch.manual_seed(0)
    model = SmallCtc()
    optimiser = torch.optim.Adam(model.parameters(), 0.01)
    waves, lengths = padded([tones(text_of(seed), seed, 0.2) for seed in seeds])
    texts = [text_of(5000 + seed) for seed in seeds]
    for _ in range(steps):
        loss = model.losses(waves, lengths, texts).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model.eval().requires_grad_(False)


class OnFirstHalf:
    """The model that has learnt the clips from 0 to 23."""

    def __new__(cls):
        return memorised(range(24))


class OnNeither:
    """The model that has learnt other clips."""

    def __new__(cls):
        return memorised(range(1000, 1024))


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    """Two halves of one corpus, as folders of files with their texts."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("halves")
    for name, seeds in (("seen", range(24)), ("unseen", range(100, 124))):
        (folder / name).mkdir()
        for seed in seeds:
            soundfile.write(folder / name / f"clip{seed}.wav", tones(text_of(seed), seed, 0.2), 16_000)
            (folder / name / f"clip{seed}.txt").write_text(text_of(5000 + seed))
    return folder


def infer(halves, model, out, **more):
    return srb.contamination(
        model,
        {"en-seen": halves / "seen"},
        {"en-unseen": halves / "unseen"},
        out=out,
        contamination_options=srb.ContaminationOptions(**{**OPTIONS, **more.pop("options", {})}),
        progress=False,
        **more,
    )


@pytest.fixture
def importable(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def test_it_knows_the_half_that_a_model_was_trained_on(halves, tmp_path):
    result = infer(halves, OnFirstHalf(), tmp_path, reference=OnNeither())
    assert (result.suspects.clips, result.fresh.clips) == (24, 24)
    for each in result.sets[1:]:  # all that have the loss
        assert each.auc.value > 0.9, each.name
        assert each.auc.interval[0] > 0.7
        assert each.hits is None  # 24 fresh clips cannot show 1 % false alarms
    assert result.headline.p == 0.005
    assert result.reference.auc.interval[0] < 0.5 < result.reference.auc.interval[1]
    assert result.reference.difference.interval[0] > 0
    assert "a sign that it was trained on the suspects" in conclusion(result)


def test_it_finds_nothing_in_a_model_of_neither_half(halves, tmp_path):
    result = infer(halves, OnNeither(), tmp_path)
    assert result.headline.auc.interval[0] < 0.5 < result.headline.auc.interval[1]
    assert result.headline.p > 0.025
    assert conclusion(result).startswith("No sign that the model was trained")
    assert conclusion(result).endswith("(24 suspects, 24 fresh clips)")


def test_a_black_box_gives_its_transcripts_alone(halves, tmp_path):
    result = infer(halves, OnFirstHalf(), tmp_path, options={"access": "transcripts"})
    assert [each.name for each in result.sets] == ["transcripts"]
    assert "Only transcripts were used" in conclusion(result) or "No verdict" in conclusion(result)


def test_there_is_no_verdict_on_a_mute_recogniser(halves, tmp_path):
    mute = lambda clips, rate, language: [""] * len(clips)  # noqa: E731
    result = infer(halves, mute, tmp_path)
    assert (result.access, result.headline.auc.value) == ("transcripts", 0.5)
    assert conclusion(result).startswith("No verdict: WER on clean speech is 100.0")


def test_a_reference_must_give_as_much_as_the_model(halves, tmp_path):
    deaf = lambda clips, rate, language: ["a"] * len(clips)  # noqa: E731
    with pytest.raises(UserError, match="--access transcripts"):
        infer(halves, OnFirstHalf(), tmp_path, reference=deaf, options={"radii": (0.01,), "snrs": (20.0,)})


def test_the_command_goes_on_prints_and_is_in_the_report(halves, tmp_path, importable, capsys):
    words = ["contamination", "--model", "python:test_contamination:OnFirstHalf", "--out", str(tmp_path / "runs" / "m")]
    words += ["--suspects", f"en-seen={halves / 'seen'}", "--fresh", f"en-unseen={halves / 'unseen'}", "--quiet"]
    words += ["--access", "losses", "--snrs", "20", "--limit", "10"]
    assert main(words) == 0
    assert "AUC" in capsys.readouterr().out
    stored = tmp_path / "runs" / "m" / "contamination-model.jsonl"
    before = stored.read_text().splitlines()
    assert len(before) == 1 + 20
    stored.write_text("\n".join(before[:5]) + '\n{"id": "torn')  # a kill in the middle of a line
    assert main([*words, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert stored.read_text().splitlines() == before
    assert result["suspects"]["clips"] == 10
    run = write_run(tmp_path / "scored", "m", {"clean": ["the quick brown fox"] * 4})
    shutil.copy(tmp_path / "runs" / "m" / "contamination.json", run)
    assert main(["table", str(run), "--contamination"]) == 0
    assert "loss and noise" in capsys.readouterr().out
    assert main(["report", str(run), "--out", str(tmp_path / "page.html")]) == 0
    assert "Was it trained on this speech?" in (tmp_path / "page.html").read_text()
    assert main([word for word in words if not word.startswith("en-unseen") and word != "--fresh"]) == 2
    assert "needs --fresh" in capsys.readouterr().err


def clips_of(suspect: np.ndarray, speakers: list | None = None, folds: int = 5) -> Clips:
    ids = [f"c{n}" for n in range(len(suspect))]
    return Clips.of(ids, speakers or [None] * len(ids), list(suspect), folds, 0)


def test_regression_and_auc_are_those_of_scikit_learn():
    linear_model = pytest.importorskip("sklearn.linear_model")
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    labels = np.arange(80) < 30
    values = rng.standard_normal((80, 3)) + labels[:, None] * [0.8, 0.0, -0.4]
    weights = fit_logistic(values, labels)
    theirs = linear_model.LogisticRegression(C=1.0, class_weight="balanced", tol=1e-8).fit(values, labels)
    assert weights == pytest.approx([*theirs.intercept_, *theirs.coef_[0]], abs=1e-3)
    scores = values @ weights[1:]
    assert auc(scores, clips_of(labels), within_folds=False)[0] == pytest.approx(metrics.roc_auc_score(labels, scores))


def test_cross_fitting_finds_nothing_in_noise():
    """Many features and few clips: a regression that judged its own training clips would find everything."""
    found = []
    for seed in range(20):
        labels = np.arange(60) < 30
        values = np.random.default_rng(seed).standard_normal((60, 40))
        clips = clips_of(labels)
        found.append(auc(cross_fit(values, clips), clips)[0])
    assert np.mean(found) == pytest.approx(0.5, abs=0.04)


def test_the_permutation_test_keeps_its_level_without_a_difference():
    """30 data sets of speakers who differ, but not by side: at most as many p-values up to 0.2 as chance allows."""
    low = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        suspect = np.arange(40) < 20
        voices = np.repeat(rng.standard_normal((10, 2)), 4, axis=0)
        values = voices + 0.5 * rng.standard_normal((40, 2))
        clips = clips_of(suspect, [f"s{n // 4}" for n in range(40)])
        found = auc(cross_fit(values, clips), clips)[0]
        low += permutation_p(permuted_aucs(values, clips, 19, seed), found) <= 0.2
    assert low <= 12  # 6 are expected; 13 or more have a probability of 0.3 %


def test_intervals_have_a_half_where_nothing_differs():
    """16 data sets of 60 clips a side: fewer of the intervals that take the rules as given have 0.5."""
    narrow = wide = 0
    for seed in range(16):
        suspect = np.arange(120) < 60
        values = np.random.default_rng([7, seed]).standard_normal((120, 6))
        clips = clips_of(suspect)
        scores = cross_fit(values, clips)
        found = auc(scores, clips)[0]
        bounds = share_interval(found, auc(scores, clips, clips.draws(200, 0)), 60, 0.95)
        low, high = widened(bounds, found, refit_error(permuted_aucs(values, clips, 19, seed), found), 0.95)
        narrow += bounds[0] <= 0.5 <= bounds[1]
        wide += low <= 0.5 <= high
    assert wide >= 14
    assert wide > narrow


def test_clips_of_one_speaker_stay_in_one_fold():
    suspect = np.arange(60) < 30
    speakers = [f"s{n // 5}" for n in range(60)]
    clips = clips_of(suspect, speakers)
    assert clips.units.kind == "speakers"
    assert all(len({f for f, s in zip(clips.folds, speakers, strict=True) if s == who}) == 1 for who in speakers)
    assert all({True, False} == set(suspect[clips.folds == fold]) for fold in range(5))
    assert clips_of(suspect, ["one"] * 60).units.kind == "clips"  # one voice cannot be drawn again


def test_hits_at_one_per_cent_false_alarms_by_hand():
    suspect = np.arange(220) >= 200
    scores = np.concatenate([np.arange(200) / 200, [0.991] * 5 + [0.988] * 5 + [0.1] * 10])
    # 2 of 200 fresh clips may be accused: the threshold is the third highest, 0.985
    assert hits_at_false_alarms(scores, clips_of(suspect))[0] == pytest.approx(0.5)


def test_perfect_separation_still_has_an_interval():
    low, high = share_interval(1.0, np.ones(100), 10, 0.95)
    assert (round(low, 2), high) == (0.72, 1.0)  # Wilson for 10 of 10
    assert share_interval(1.0, np.ones(100), 4, 0.95) is None


def test_features_of_a_transcript_by_hand():
    found = transcript_features("mister smith saw twenty dogs", "mister smith saw 20 cats", "en")
    assert found["wer"] == pytest.approx(2 / 5)
    assert found["other_spelling"] == pytest.approx(1 / 5)
    clip = np.sin(np.arange(16_000) / 9).astype(np.float32)
    noise = white_noise(clip, 20, np.random.default_rng(0))
    assert 10 * np.log10(np.sum(clip**2) / np.sum(noise**2)) == pytest.approx(20, abs=0.01)
    assert set(text_of(3)) <= set(LETTERS)
