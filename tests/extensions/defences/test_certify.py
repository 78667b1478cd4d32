"""Certificates: the arithmetic by hand and by scipy, on a recogniser whose agreement is known, and the command."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.stats import binomtest, norm

torch = pytest.importorskip("torch")

from support.tone_configs import one_thread, tone_data  # noqa: F401

from speech_robust_bench.cli.main import main
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.defences.smooth import CertifyOptions, Smooth, certify_clip, lowest_share, noise
from speech_robust_bench.models.interface import Described


class Half(Described):
    """Writes "loud" where the mean of the samples is above a limit, so its agreement under noise is known."""

    def transcribe(self, clips, rate, language):
        return ["loud" if clip.mean() > self.options["limit"] else "soft" for clip in clips]


def smoothed(limit: float, sigma: float = 0.1) -> Smooth:
    inner = Half("half", "1", {"limit": limit}, 64)
    return Smooth("smooth-half", "1", {}, 8, inner=inner, sigma=sigma, n=9)


@pytest.mark.parametrize(("agree", "draws"), [(100, 100), (90, 100), (51, 100), (0, 10)])
def test_the_lowest_share_is_that_of_clopper_and_pearson(agree, draws) -> None:
    exact = binomtest(agree, draws, alternative="greater").proportion_ci(0.999, method="exact").low
    assert lowest_share(agree, draws, 0.001) == pytest.approx(exact, abs=1e-9)


def test_the_radius_is_below_the_true_one_and_near_it() -> None:
    """A linear rule: the true radius is the distance to its plane, (mean - limit) x sqrt(n)."""
    samples = np.full(400, 0.3, np.float32)
    model = smoothed(limit=0.29)
    found = certify_clip(model, "c", samples, "loud", "en", CertifyOptions(draws=4000))
    true = (0.3 - 0.29) * math.sqrt(len(samples))
    assert found.transcript == "loud"
    assert 0.8 * true < found.radius <= true
    assert found.radius == pytest.approx(0.1 * norm.ppf(found.share))
    assert found.snr_db == pytest.approx(20 * math.log10(0.3 * 20 / found.radius))
    inside = samples - np.float32(0.99 * found.radius / math.sqrt(len(samples)))  # the worst perturbation there is
    heard = model.hypotheses(list(model.copies(inside, 2000)), 16_000, "en")
    assert heard.count("loud") > len(heard) / 2


def test_a_clip_on_the_edge_abstains() -> None:
    found = certify_clip(
        smoothed(limit=0.3), "c", np.full(400, 0.3, np.float32), "loud", "en", CertifyOptions(draws=200)
    )
    assert found.abstains
    assert (found.radius, found.snr_db) == (0, None)


def test_the_command_certifies_resumes_and_refuses(tone_data, tmp_path, capsys) -> None:  # noqa: F811
    out = tmp_path / "certificates.jsonl"
    words = ["certify", "--model", "smooth:python:support.tones:Ctc?sigma=0.02&n=3", "en-tones_clean", "--data"]
    words += [str(tone_data), "--out", str(out), "--quiet", "--draws", "20", "--alpha", "0.05"]
    assert main([*words, "--limit", "2"]) == 0
    first = out.read_text()
    with out.open("a") as file:
        file.write('{"id": "torn')  # a kill in the middle of a line
    assert main([*words, "--limit", "3"]) == 0
    lines = out.read_text().splitlines()
    assert out.read_text().startswith(first)
    assert len(lines) == 1 + 3
    certificate = json.loads(lines[-1])
    assert certificate["draws"] == 20
    assert certificate["radius"] == pytest.approx(0.02 * norm.ppf(certificate["share"]))  # it agrees with itself
    said = capsys.readouterr().out
    assert "3 clips, abstains on 0.0 %" in said
    assert main([*words, "--alpha", "0.01"]) == 2
    assert "another model, config or settings" in capsys.readouterr().err
    words[2] = "python:support.tones:Ctc"
    assert main(words) == 2
    assert "needs a smoothed model" in capsys.readouterr().err
    words[2] = "smooth:python:support.tones:Ctc?noise=mad"
    assert main(words) == 2
    assert "needs white noise" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [{"draws": 0}, {"alpha": 0.0}, {"wer": 1.0}])
def test_options_have_bounds(wrong) -> None:
    with pytest.raises(UserError, match=next(iter(wrong))):
        CertifyOptions(**wrong)


def test_mad_noise_has_half_the_power_and_no_low_frequencies() -> None:
    white, mad = (noise(kind, 0.1, 1 << 14, np.random.default_rng(0)) for kind in ("white", "mad"))
    assert mad.std() == pytest.approx(0.1 / math.sqrt(2), rel=0.03)
    low = [np.abs(np.fft.rfft(signal))[1:200].mean() for signal in (white, mad)]
    assert low[1] < 0.1 * low[0]
