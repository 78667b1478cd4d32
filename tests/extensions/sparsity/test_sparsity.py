"""Adversarial sparsity: closed form on a linear model, the projection on caps, the command, its table and section."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.optimize import minimize

torch = pytest.importorskip("torch")

from support.run_folders import TEXTS, write_run
from support.tone_configs import one_thread, tone_data  # noqa: F401
from support.tones import SmallCtc, clip_of, trained

from speech_robust_bench.attacks.clips import AttackClip
from speech_robust_bench.attacks.views.open_view import open_view
from speech_robust_bench.cli.main import main
from speech_robust_bench.extensions.sparsity.result import ClipAngles, summary
from speech_robust_bench.extensions.sparsity.search import ConeSearch, SearchSettings, on_cap
from speech_robust_bench.models.adapters.python import as_recogniser

SIZE = 300


class Linear:
    """Writes "loud" where w . x is above a limit; its loss rises against w."""

    pads_safely = True

    def __init__(self, limit: float) -> None:
        weights = np.random.default_rng(3).standard_normal(SIZE)
        self.weights = torch.tensor(weights / np.linalg.norm(weights), dtype=torch.float32)
        self.limit = limit

    def transcribe(self, clips, rate, language):
        return ["loud" if float(self.weights @ torch.as_tensor(clip)) > self.limit else "soft" for clip in clips]

    def losses(self, waves, lengths, texts):
        return -(waves @ self.weights)


def search(model, clip: AttackClip, snr_db: float, **settings) -> ConeSearch:
    view = open_view(as_recogniser(model)[1])
    return ConeSearch(view, clip, model.transcribe([clip.samples], 16_000, "en")[0], snr_db, SearchSettings(**settings))


def linear_case(share: float) -> tuple[Linear, AttackClip, float]:
    """A model and a clip from which the plane is `share` of a radius of 0.1 away, and the SNR of that radius."""
    samples = (0.2 * np.random.default_rng(5).standard_normal(SIZE)).astype(np.float32).clip(-0.8, 0.8)
    clip = AttackClip("c", samples, "loud", "en", "noise")
    model = Linear(0.0)
    model.limit = float(model.weights @ torch.from_numpy(clip.samples)) - share * 0.1
    return model, clip, 20 * math.log10(float(np.linalg.norm(clip.samples)) / 0.1)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_on_a_linear_model_the_angle_is_that_of_geometry(share):
    """The adversarial set is the cap around -w of half-angle acos(share): from u it is angle(u, -w) - acos(share)."""
    model, clip, snr_db = linear_case(share)
    cone = search(model, clip, snr_db, directions=12, halvings=12, steps=25)
    found = cone.run()
    centres = torch.cat(list(cone.centres())).numpy()
    exact = np.arccos(centres @ -model.weights.numpy()) - math.acos(share)
    assert found.random == int((exact <= 0).sum())
    assert found.radians == pytest.approx(np.maximum(exact, 0), abs=2 * math.pi / 2**12)


def test_out_of_reach_is_not_vulnerable():
    model, clip, snr_db = linear_case(1.05)
    found = search(model, clip, snr_db, directions=4, steps=10).run()
    assert (found.radians, found.random) == ((), 0)


def test_the_point_on_the_cap_is_the_nearest_one():
    """Compared with a numerical search over the cap."""
    rng = np.random.default_rng(0)
    centre = np.array([[1.0, 0.0, 0.0]] * 4)
    delta = rng.standard_normal((4, 3)) - [[1.0, 0, 0]]  # most of them behind the centre
    angles = np.array([0.3, 1.0, 2.0, 3.0])
    found = on_cap(*map(torch.tensor, (delta, centre, angles)), radius=2.0).numpy()
    assert np.linalg.norm(found, axis=1) == pytest.approx(2.0)
    for point, target, angle in zip(found, delta, angles, strict=True):
        assert math.acos(min(1.0, point[0] / 2)) <= angle + 1e-9

        def away(at, target=target):
            polar, turn = at
            place = 2 * np.array([math.cos(polar), math.sin(polar) * math.cos(turn), math.sin(polar) * math.sin(turn)])
            return float(np.sum((place - target) ** 2))

        bounds = [(0, angle), (-7, 7)]
        best = min(minimize(away, (angle / 2, turn), bounds=bounds).fun for turn in (-2.0, 0.0, 2.0))
        assert np.sum((point - target) ** 2) == pytest.approx(best, abs=1e-5)


def test_a_wider_radius_has_denser_perturbations():
    torch.set_num_threads(1)
    model, clip = trained(SmallCtc), clip_of(1)
    means = [np.mean(search(model, clip, snr, directions=3, halvings=5, steps=6).run().radians) for snr in (14.0, 6.0)]
    assert math.pi / 2 > means[0] > means[1] > 0


def line(clip: str, degrees: float | None, random: int = 0) -> ClipAngles:
    angles = [] if degrees is None else [math.radians(degrees)] * 4
    return ClipAngles(id=clip, severity=1, angles=angles, random=random)


def test_summary_is_over_vulnerable_clips_with_their_n():
    lines = [line(f"c{n}", 40 + 10 * n, n % 2) for n in range(6)] + [line("robust", None)]
    lines.append(line("bad", None).replace(problem="too long"))
    found = summary(lines, 40, 1)
    assert (found.clips, found.vulnerable, found.directions) == (7, 6, 4)
    assert found.degrees == pytest.approx(65)
    assert found.interval[0] < 65 < found.interval[1]
    assert (found.resampled, found.random) == ("6 clips", 0.125)
    assert summary(lines[-2:], 40, 1).degrees is None


def test_the_command_goes_on_and_shows_werd_beside_it(tone_data, tmp_path, capsys):  # noqa: F811
    out = tmp_path / "runs" / "m"
    words = ["sparsity", "en-tones_clean", "--model", "python:support.tones:Ctc", "--data", str(tone_data), "--quiet"]
    words += ["--out", str(out), "--limit", "2", "--severity", "3", "4", "--directions", "2", "--halvings", "3"]
    words += ["--steps", "3"]
    assert main(words) == 0
    before = (out / "sparsity.jsonl").read_text()
    assert len(before.splitlines()) == 1 + 2 * 2
    (out / "sparsity.jsonl").write_text(before[: before.rindex("{") + 9])  # a kill in the middle of a line
    assert main([*words, "--json"]) == 0
    assert (out / "sparsity.jsonl").read_text() == before
    record = json.loads((out / "sparsity.json").read_text())
    assert [level["snr_db"] for level in record["levels"]] == [20.0, 10.0]
    heard = list(TEXTS.values())
    run = write_run(tmp_path / "scored", "m", {"clean": heard, "pgd_sev3": ["the fox", *heard[1:]]})
    record["config"] = "en-tiny_clean"
    (run / "sparsity.json").write_text(json.dumps(record))
    capsys.readouterr()
    assert main(["table", str(run), "--sparsity"]) == 0
    row = next(text for text in capsys.readouterr().out.splitlines() if "20 dB" in text)
    assert "of 2" in row
    assert "11.1" in row  # WERD: 2 of 18 words
    assert main(["report", str(run), "--out", str(tmp_path / "page.html")]) == 0
    assert "How many directions are adversarial?" in (tmp_path / "page.html").read_text()
    assert main([*words[:-6], "--severity", "7"]) == 2
    assert "pgd` has the severities" in capsys.readouterr().err
