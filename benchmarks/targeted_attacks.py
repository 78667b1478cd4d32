"""Our `cw` and `transfer_cw` beside the first stage of ART's ImperceptibleASRPyTorch, with the same settings and clips.

    pip install --no-deps adversarial-robustness-toolbox
    python benchmarks/targeted_attacks.py --clips 20 --steps 100 --eps 0.05 0.1 0.2

The model is a small CTC model of tones (tests/attacks/small.py), trained here in seconds. robust_speech's attack is
ART's with c |delta| added to the loss (its cw.py); its package needs an old SpeechBrain, so its objective runs here in
ART's loop. torchattacks has attacks on image classifiers only. `transfer_cw` takes steps of a thirtieth of the ball, as
Olivier does (D.2.2), on a model without dropout that is its own judge. Each line has the number of clips that say their
target after storing as 16 bits, and the mean SNR of these.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from art.attacks.evasion import ImperceptibleASRPyTorch
from art.estimators.pytorch import PyTorchEstimator
from art.estimators.speech_recognition.speech_recognizer import PytorchSpeechRecognizerMixin, SpeechRecognizerMixin

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support.tones import clip_of, ctc

from speech_robust_bench.attacks.clips import AttackBatch, AttackClip, snr_db, to_float, word_errors
from speech_robust_bench.attacks.views.base import View
from speech_robust_bench.attacks.views.open_view import open_view
from speech_robust_bench.core.audio import to_pcm16
from speech_robust_bench.extensions.attacks.targeted import CarliniWagner, closest
from speech_robust_bench.extensions.attacks.transfer import TransferCw
from speech_robust_bench.models.adapters.python import Function

TARGETS = ("ba dc", "ab", "dcab cd")
LEARNING_RATE, SHRINK, EVERY, REGULARISATION = 0.01, 0.7, 10, 0.25
TRANSFER_STEP = 1 / 30  # of the ball
Results = list[tuple[bool, float | None]]


class ViewEstimator(PytorchSpeechRecognizerMixin, SpeechRecognizerMixin, PyTorchEstimator):
    """One of our views as ART sees a recogniser; it decodes every EVERY steps, as ours does."""

    device, input_shape, sample_rate = torch.device("cpu"), None, 16_000

    def __init__(self, view: View, clips: Sequence[AttackClip]) -> None:
        super().__init__(model=torch.nn.Identity(), clip_values=None, channels_first=None, device_type="cpu")
        self.view, self.clips, self.calls = view, clips, 0

    def compute_loss_and_decoded_output(
        self, masked_adv_input: torch.Tensor, original_output: np.ndarray, real_lengths: np.ndarray
    ) -> tuple[torch.Tensor, np.ndarray]:
        waves, goals = masked_adv_input.float(), [str(goal) for goal in original_output]
        batch = AttackBatch(torch.tensor(real_lengths), goals, "en", ids=[clip.id for clip in self.clips])
        said = [""] * len(goals)
        if self.calls % EVERY == 0:
            signals = [wave[:length].detach().numpy() for wave, length in zip(waves, real_lengths, strict=True)]
            heard = self.view.transcribe([to_float(to_pcm16(signal.clip(-1, 1))) for signal in signals], "en")
            said = [goal if not error else "" for goal, error in zip(goals, word_errors(goals, heard), strict=True)]
        self.calls += 1
        return self.view.losses(waves, batch).sum(), np.array(said)

    def _unused(self, *args: Any, **options: Any) -> None: ...

    get_activations = predict = fit = loss_gradient = to_training_mode = set_batchnorm = _unused


class WithNorm(ImperceptibleASRPyTorch):
    """robust_speech's objective."""

    def _forward_1st_stage(self, *args: Any, **options: Any) -> tuple:
        loss, *others, change = super()._forward_1st_stage(*args, **options)
        return loss + REGULARISATION * change.norm(dim=1).sum(), *others, change


@dataclass(frozen=True)
class Trial:
    view: View
    clips: list[AttackClip]
    steps: int
    eps: float

    def ours(self, regularisation: float = REGULARISATION) -> Results:
        attack = CarliniWagner(
            TARGETS, self.eps, LEARNING_RATE, self.steps, regularisation, SHRINK, transcribe_every=EVERY
        )
        return self._outcomes(attack)

    def ours_transfer(self) -> Results:
        rate = TRANSFER_STEP * self.eps
        return self._outcomes(TransferCw(TARGETS, self.eps, rate, self.steps, REGULARISATION, EVERY, dropout=False))

    def _outcomes(self, attack: CarliniWagner | TransferCw) -> Results:
        found = attack.run(self.view, self.clips)
        return [(one.facts["success"] == 1, snr_db(one.clip.samples, one.pcm)) for one in found]

    def art(
        self, kind: type[ImperceptibleASRPyTorch] = ImperceptibleASRPyTorch, rate: float = LEARNING_RATE, **more: Any
    ) -> Results:
        longest = max(len(clip.samples) for clip in self.clips)
        settings = {"decrease_factor_eps": SHRINK, "num_iter_decrease_eps": EVERY, "batch_size": len(self.clips)}
        steps = {"max_iter_1": self.steps, "max_iter_2": 1, "learning_rate_1": rate, **more}
        estimator = ViewEstimator(self.view, self.clips)
        attack = kind(estimator, eps=self.eps, global_max_length=longest, **steps, **settings)
        attack.global_optimal_delta.data = torch.zeros(len(self.clips), longest, dtype=torch.float64)
        signals = np.empty(len(self.clips), object)
        for index, clip in enumerate(self.clips):
            signals[index] = clip.samples.astype(np.float64)
        goals = [closest(clip.text, TARGETS) for clip in self.clips]
        attacked, _ = attack._attack_1st_stage(signals, np.array(goals))
        pcms = [
            to_pcm16(wave[: len(clip.samples)].detach().numpy().clip(-1, 1))
            for wave, clip in zip(attacked, self.clips, strict=True)
        ]
        errors = word_errors(goals, self.view.transcribe([to_float(pcm) for pcm in pcms], "en"))
        reached = [snr_db(clip.samples, pcm) for clip, pcm in zip(self.clips, pcms, strict=True)]
        return [(not error, snr) for error, snr in zip(errors, reached, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=int, default=20)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--eps", type=float, nargs="+", default=[0.05, 0.1, 0.2])
    args = parser.parse_args()
    model = ctc()
    view = open_view(Function("small", "1", {}, 8, model.transcribe, model))
    for eps in args.eps:
        trial = Trial(view, [clip_of(seed) for seed in range(args.clips)], args.steps, eps)
        attacks: dict[str, Callable[[], Results]] = {
            "cw": trial.ours,
            "cw without penalty": lambda trial=trial: trial.ours(0.0),  # type: ignore[misc]
            "ART": trial.art,
            "ART with robust_speech's penalty": lambda trial=trial: trial.art(WithNorm),  # type: ignore[misc]
            "transfer_cw": trial.ours_transfer,
            "ART with SGD and the penalty": lambda trial=trial: trial.art(  # type: ignore[misc]
                WithNorm, TRANSFER_STEP * trial.eps, optimizer_1=torch.optim.SGD
            ),
        }
        for name, run in attacks.items():
            start, results = time.process_time(), run()
            reached = [snr for success, snr in results if success and snr is not None]
            mean = round(float(np.mean(reached)), 1) if reached else None
            seconds = round(time.process_time() - start, 1)
            facts = {"eps": eps, "attack": name, "success": len(reached), "clips": len(results), "mean_snr_db": mean}
            print(json.dumps({**facts, "cpu_seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
