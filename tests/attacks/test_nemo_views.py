"""Views of NeMo's own classes, on tiny models with random weights: CTC and RNN-T over letters."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from support import toolkits
from support.tiny_views import assert_gradients_are_right, assert_pgd_raises_the_loss, batch_of, clip_of

from speech_robust_bench.attacks.views.open_view import open_view
from speech_robust_bench.attacks.views.toolkit_models import NemoCtcView
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.models.adapters.nemo import Nemo

toolkits.skip_without("nemo")

LETTERS = [" ", *"abcdefghijklmnopqrstuvwxyz"]
MELS, WIDTH = 16, 12
ENCODER = {
    "_target_": "nemo.collections.asr.modules.ConvASREncoder",
    "feat_in": MELS,
    "activation": "relu",
    "conv_mask": True,
    "jasper": [
        {
            "filters": WIDTH, "repeat": 1, "kernel": [5], "stride": [2], "dilation": [1],
            "dropout": 0.0, "residual": False, "separable": True,
        }
    ],
}  # fmt: skip
FEATURES = {
    "_target_": "nemo.collections.asr.modules.AudioToMelSpectrogramPreprocessor",
    "features": MELS, "sample_rate": 16_000, "window_size": 0.025, "window_stride": 0.01, "normalize": "per_feature",
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def nemo_here():
    with toolkits.importable("nemo"):
        yield


def ctc():
    from nemo.collections.asr.models import EncDecCTCModel
    from omegaconf import OmegaConf

    decoder = {
        "_target_": "nemo.collections.asr.modules.ConvASRDecoder",
        "feat_in": WIDTH, "num_classes": len(LETTERS), "vocabulary": LETTERS,
    }  # fmt: skip
    settings = {"sample_rate": 16_000, "preprocessor": FEATURES, "encoder": ENCODER, "decoder": decoder}
    return EncDecCTCModel(OmegaConf.create({**settings, "labels": LETTERS, "optim": {"name": "sgd", "lr": 0.1}}))


def rnnt():
    from nemo.collections.asr.models import EncDecRNNTModel
    from omegaconf import OmegaConf

    modules = "nemo.collections.asr.modules"
    settings = {
        "labels": LETTERS,
        "sample_rate": 16_000,
        "model_defaults": {"enc_hidden": WIDTH, "pred_hidden": 8, "joint_hidden": 8},
        "preprocessor": FEATURES,
        "encoder": ENCODER,
        "decoder": {
            "_target_": f"{modules}.RNNTDecoder",
            "normalization_mode": None,
            "random_state_sampling": False,
            "blank_as_pad": True,
            "prednet": {"pred_hidden": 8, "pred_rnn_layers": 1, "dropout": 0.0},
        },
        "joint": {
            "_target_": f"{modules}.RNNTJoint",
            "log_softmax": None,
            "fuse_loss_wer": False,
            "jointnet": {"joint_hidden": 8, "activation": "relu", "dropout": 0.0},
        },
        "decoding": {"strategy": "greedy", "greedy": {"max_symbols": 5}},
        "loss": {"loss_name": "pytorch"},
        "optim": {"name": "sgd", "lr": 0.1},
    }
    return EncDecRNNTModel(OmegaConf.create(settings))


@pytest.fixture(scope="module", params=["ctc", "rnnt"])
def view(request, nemo_here):
    torch.manual_seed(0)
    model = {"ctc": ctc, "rnnt": rnnt}[request.param]()
    return open_view(Nemo("tiny", None, {}, 4, model=model.eval()))


class Louder:
    """A preprocessor that gives other features than its featurizer."""

    def __init__(self, preprocessor) -> None:
        self.preprocessor, self.featurizer = preprocessor, preprocessor.featurizer

    def __call__(self, **given):
        features, frames = self.preprocessor(**given)
        return 2 * features, frames


def test_it_writes_as_the_model_does(view) -> None:
    assert view.spell("The fox.") == "the fox"
    with pytest.raises(UserError, match="cannot write: ж"):
        view.spell("the жox")


def test_the_model_is_given_what_transcribing_gives_it(view) -> None:
    view.check([clip_of(0.7)])
    louder = Louder(view.model.preprocessor)
    with pytest.MonkeyPatch.context() as patch:  # NeMo's own way, other than what is below it
        patch.delitem(view.model._modules, "preprocessor")
        patch.setattr(view.model, "preprocessor", louder, raising=False)
        with pytest.raises(UserError, match="would prove nothing"):
            view.check([clip_of(0.7)])


def test_the_loss_is_that_of_nemo(view) -> None:
    """Its own training loss, on what its own forward gives."""
    waves, batch = batch_of(view, clip_of(1.0))
    tokens = torch.tensor([view.tokens("the fox")])
    count = torch.tensor([tokens.shape[1]])
    model = view.model
    with view._as_it_transcribes():
        outputs = model.forward(input_signal=waves, input_signal_length=batch.lengths)
    if hasattr(model, "joint"):
        said, _, _ = model.decoder(targets=tokens, target_length=count)
        joint = model.joint(encoder_outputs=outputs[0], decoder_outputs=said)
        theirs = model.loss(log_probs=joint, targets=tokens, input_lengths=outputs[1], target_lengths=count)
    else:
        theirs = model.loss(log_probs=outputs[0], targets=tokens, input_lengths=outputs[1], target_lengths=count)
    assert view.values(waves, batch)[0].item() * count.item() == pytest.approx(theirs.item(), rel=1e-4)


def test_gradients_are_those_of_finite_differences(view) -> None:
    assert_gradients_are_right(view)


def test_margins_are_of_the_scores_that_are_chosen_from(view) -> None:
    waves, batch = batch_of(view, clip_of(0.5))
    right = view.right_tokens(waves, batch)
    scores = view.token_scores(waves, batch, right)[0, : len(right[0])]
    if isinstance(view, NemoCtcView):
        assert scores.argmax(-1).tolist() == right[0].tolist()
    else:  # the best alignment has a part of the probability of all
        chosen = scores.log_softmax(-1).gather(1, right[0][:, None]).sum()
        assert float(chosen) <= -float(view.values(waves, batch)[0]) * len(view.tokens(batch.texts[0])) + 1e-4


def test_digital_silence_has_a_finite_gradient(view) -> None:
    clip = clip_of(0.5)
    clip.samples[:4000] = 0
    waves, batch = batch_of(view, clip)
    assert view.gradient(waves, batch)[1].isfinite().all()


def test_pgd_raises_the_loss(view) -> None:
    assert_pgd_raises_the_loss(view)
