"""Nothing that attacks make themselves stays on the CPU when the model is elsewhere.

On torch's `meta` device an operation with a stray CPU tensor fails, as it would on a GPU. What transformers and torch
do after our part (attention masks, CTC) cannot run there; on a GPU itself none of this has been tried.
"""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from support.small_models import ATTACKED_MODELS, whisper_folder
from support.tiny_recognisers import save
from support.tone_configs import one_thread  # noqa: F401

from speech_robust_bench.attacks.clips import AttackBatch, Bound, mask_of, padded
from speech_robust_bench.attacks.pgd import tensor_of
from speech_robust_bench.attacks.views import base
from speech_robust_bench.attacks.views.open_view import open_view
from speech_robust_bench.extensions.attacks.auto import hinge
from speech_robust_bench.extensions.defences.views import random_noise
from speech_robust_bench.models.interface import open_model

FOLDERS = {
    **{name: ATTACKED_MODELS[name] for name in ("wav2vec2", "data2vec", "moonshine")},
    "whisper": whisper_folder,
    "parakeet_tdt": lambda place: save("parakeet_tdt", place),
}


def meta(*shape: int, dtype=torch.float32):
    return torch.zeros(*shape, dtype=dtype, device="meta")


def test_a_stray_tensor_is_noticed_here() -> None:
    with pytest.raises(RuntimeError):
        meta(3) + torch.zeros(3)


@pytest.mark.parametrize("name", FOLDERS)
def test_what_a_model_is_given_is_where_the_waveforms_are(name, tmp_path) -> None:
    view = open_view(open_model(f"hf:{FOLDERS[name](tmp_path)}?device=cpu"))
    view.model.to("meta")
    assert view.device == "meta"
    waves, lengths = padded([np.ones(9000, np.float32), np.ones(12000, np.float32)], view.device)
    given = view.inputs(waves, lengths)
    assert {tensor.device.type for tensor in given.values()} == {"meta"}


def test_losses_are_where_the_scores_are() -> None:
    tokens = [torch.tensor([1, 2]), torch.tensor([3])]  # as tokenizers give them
    assert base.cross_entropy(meta(2, 2, 7), tokens, 1.0).device.type == "meta"
    assert base.transducer(meta(2, 5, 3, 7), meta(2, dtype=torch.long), tokens).device.type == "meta"
    assert hinge(meta(2, 4, 7), meta(2, 4, dtype=torch.long)).device.type == "meta"


def test_bounds_starts_and_noise_are_where_the_waveforms_are() -> None:
    waves, radii = meta(2, 100), meta(2)
    for bound in (Bound("l2", 20), Bound("linf", eps=0.1)):
        assert bound.project(bound.step(waves, radii), radii).device.type == "meta"
    assert tensor_of([np.ones(50, np.float32)] * 2, waves).device.type == "meta"
    lengths = torch.tensor([100, 80])
    assert mask_of(lengths.to("meta"), 100).device.type == "meta"
    rngs = [np.random.default_rng(seed) for seed in range(2)]
    assert random_noise(0.1)(waves, AttackBatch(lengths, ["", ""], rngs=rngs)).device.type == "meta"
