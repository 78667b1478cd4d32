"""The attacks beyond the paper's two as rows of the scenario table, and Kenansville's, which perturbs without a model.

Olivier's thesis, chapters 5 to 7 and Appendix D; Kenansville is Abdullah et al.'s (IEEE S&P 2021).
"""

from __future__ import annotations

import numpy as np

from speech_robust_bench.builders.scenario import ATTACK_SNR_DB, Scenario, attack_scenario
from speech_robust_bench.core.audio import Samples, to_pcm16

OLIVIER = "Olivier 2023"


def kenansville(samples: Samples, rate: int, snr_db: float, rng: np.random.Generator) -> Samples:
    """Zero the weakest DFT bins of the whole clip, down to an SNR. A silent clip has none to lose."""
    from scipy import fft

    spectrum = fft.rfft(samples.astype(float))
    order, lost = _weakest_first(spectrum, len(samples))
    allowed = lost[-1] * 10 ** (-snr_db / 10)
    count = int(np.searchsorted(lost, allowed, side="right"))
    del lost  # of an hour each of these arrays takes 230 MB or more
    while True:
        kept = spectrum.copy()
        kept[order[:count]] = 0
        filtered = _stored(fft.irfft(kept, len(samples), overwrite_x=True))
        del kept
        if count == 0 or _energy(filtered - samples) <= allowed / len(samples):
            return filtered.astype(np.float32) if count else samples.copy()
        count -= max(1, count // 500)  # rounding took the rest of what is allowed


def _weakest_first(spectrum: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """The bins of a real signal's spectrum in the order of their power, and their cumulative power."""
    power = np.abs(spectrum)
    np.square(power, out=power)
    # Parseval: every bin but the first and, of an even number of samples, the last stands for two
    power[1 : len(power) - (length % 2 == 0)] *= 2
    order = np.argsort(power, kind="stable")
    power = power[order]
    return order, np.cumsum(power, out=power)


def _energy(difference: np.ndarray) -> float:
    return float(np.sum(np.square(difference, out=difference)))


def _stored(samples: np.ndarray) -> np.ndarray:
    return to_pcm16(np.clip(samples, -1, 1, out=samples).astype(np.float32)) / 32768.0


AUTO = attack_scenario("auto", "adv_auto", "Croce and Hein", "the worst of an ensemble without knobs")
GENETIC = attack_scenario("genetic", "adv_other", OLIVIER, "genetic, by queries alone")
KENANSVILLE = Scenario(
    name="kenansville",
    category="adv_other",
    help="weakest DFT bins zeroed",
    source=OLIVIER,
    function=kenansville,
    parameter="snr_db",
    severities=ATTACK_SNR_DB,
    has_snr=True,
)
TRANSFER = attack_scenario("transfer", "adv_other", OLIVIER, "PGD on proxy models")
TRANSFER_CW = attack_scenario("transfer_cw", "adv_other", OLIVIER, "targeted, on proxy models, for others", ())
CW = attack_scenario("cw", "adv_other", OLIVIER, "targeted, as faint as it gets", ())
PSYCHOACOUSTIC = attack_scenario("psychoacoustic", "adv_other", "Qin 2019", "targeted, under the masking threshold", ())
LANGUAGE = attack_scenario("language", "adv_other", OLIVIER, "Whisper mistakes the language", (45,))
LANGUAGE_UNIVERSAL = attack_scenario("language_universal", "adv_other", OLIVIER, "the same, by one perturbation", (40,))
