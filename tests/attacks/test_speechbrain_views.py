"""Views of SpeechBrain's own classes, on tiny models with random weights: CTC, a recurrent decoder, a Transformer."""

from __future__ import annotations

import io
from functools import partial
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from support import toolkits
from support.tiny_views import assert_gradients_are_right, assert_pgd_raises_the_loss, batch_of, clip_of

from speech_robust_bench.attacks.views.open_view import open_view
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.models.adapters.speechbrain import SpeechBrainRecogniser

toolkits.skip_without("speechbrain")

KINDS = ["ctc", "recurrent", "transformer"]
FEATURES = 8
TEXT = "THE FOX"


@pytest.fixture(scope="module", autouse=True)
def speechbrain_here():
    with toolkits.importable("speechbrain"):
        yield


@pytest.fixture(scope="module")
def pieces():
    """A small SentencePiece vocabulary of capitals."""
    sentencepiece = pytest.importorskip("sentencepiece")
    model = io.BytesIO()
    text = iter(["THE QUICK BROWN FOX JUMPS OVER THE LAZY DOG"] * 20)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=text, model_writer=model, vocab_size=36, model_type="char", minloglevel=2
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def tiny(kind: str, pieces):
    """A model of SpeechBrain's with its parts, as `from_hparams` would make it from a file."""
    from speechbrain.decoders.ctc import ctc_greedy_decode
    from speechbrain.decoders.seq2seq import S2SRNNBeamSearcher, S2STransformerBeamSearcher
    from speechbrain.inference import ASR
    from speechbrain.lobes.features import Fbank
    from speechbrain.lobes.models.transformer.TransformerASR import TransformerASR
    from speechbrain.nnet.activations import Softmax
    from speechbrain.nnet.containers import LengthsCapableSequential
    from speechbrain.nnet.embedding import Embedding
    from speechbrain.nnet.linear import Linear
    from speechbrain.nnet.RNN import AttentionalRNNDecoder

    torch.manual_seed(0)
    size = pieces.vocab_size()
    fbank, out = Fbank(n_mels=FEATURES), Linear(n_neurons=size, input_size=FEATURES)
    shared = {"tokenizer": pieces, "sample_rate": 16_000, "blank_index": 0}
    search = {"bos_index": 0, "eos_index": 0, "min_decode_ratio": 0.0, "max_decode_ratio": 0.3, "beam_size": 2}
    if kind == "ctc":
        modules = {"encoder": LengthsCapableSequential(fbank, out, Softmax(apply_log=True))}
        more = {"decoding_function": partial(ctc_greedy_decode, blank_id=0)}
    elif kind == "recurrent":
        emb = Embedding(num_embeddings=size, embedding_dim=FEATURES)
        dec = AttentionalRNNDecoder("gru", "location", FEATURES, 6, 1, FEATURES, FEATURES, channels=2, kernel_size=3)
        decoder = S2SRNNBeamSearcher(embedding=emb, decoder=dec, linear=Linear(size, input_size=FEATURES), **search)
        modules, more = {"encoder": LengthsCapableSequential(fbank), "decoder": decoder}, {}
    else:
        transformer = TransformerASR(
            tgt_vocab=size, input_size=FEATURES, d_model=8, nhead=2, num_encoder_layers=1, num_decoder_layers=1,
            d_ffn=16, dropout=0.0, normalize_before=True, causal=False, attention_type="regularMHA",
            encoder_module="transformer",
        )  # fmt: skip
        decoder = S2STransformerBeamSearcher(modules=[transformer, Linear(size, input_size=8)], **search)
        modules = {"encoder": LengthsCapableSequential(fbank), "decoder": decoder, "transformer": transformer}
        more = {"transformer_beam_search": True}
    made = ASR.EncoderASR if kind == "ctc" else ASR.EncoderDecoderASR
    return made(modules=modules, hparams={**shared, **more}, run_opts={"device": "cpu"})


def recogniser_of(model) -> SpeechBrainRecogniser:
    return SpeechBrainRecogniser("tiny", None, {"kind": type(model).__name__}, 4, model=model, rate=16_000)


@pytest.fixture(scope="module", params=KINDS)
def view(request, speechbrain_here, pieces):
    return open_view(recogniser_of(tiny(request.param, pieces)))


def test_it_writes_as_the_model_does(view) -> None:
    assert view.spell("the fox.") == TEXT
    with pytest.raises(UserError, match="cannot write: ж"):
        view.spell("the жox")


def test_the_loss_is_that_of_speechbrain(view) -> None:
    """Its own training losses, on the outputs that its recipes train."""
    from speechbrain.nnet.losses import ctc_loss, nll_loss

    waves, batch = batch_of(view, clip_of(1.0))
    tokens = torch.tensor([view.tokens(TEXT)])
    one, model = torch.ones(1), view.model
    encoded = model.encode_batch(waves, one)
    if model.hparams.__dict__.get("decoding_function"):
        theirs = ctc_loss(encoded, tokens, one, one, blank_index=0, reduction="batch")
    else:  # teacher forcing, as in the recipes' compute_forward
        edge = torch.zeros(1, 1, dtype=torch.int64)
        told, asked = torch.cat([edge, tokens], 1), torch.cat([tokens, edge], 1)
        search = model.mods.decoder
        if "transformer" in model.mods:
            hidden = model.mods.transformer.decode(told, encoded, torch.tensor([encoded.shape[1]]))[0]
        else:
            hidden, _ = search.dec(search.emb(told), encoded, one)
        theirs = nll_loss(search.fc(hidden).log_softmax(-1), asked, one)
    assert view.values(waves, batch)[0].item() == pytest.approx(theirs.item(), rel=1e-5)


def test_gradients_are_those_of_finite_differences(view) -> None:
    assert_gradients_are_right(view)


def test_pgd_raises_the_loss_and_the_recogniser_can_be_asked(view) -> None:
    assert_pgd_raises_the_loss(view)
    assert isinstance(view.transcribe([clip_of(0.6).samples], "en")[0], str)


def test_margins_are_of_the_scores_that_are_chosen_from(view) -> None:
    waves, batch = batch_of(view, clip_of(0.5))
    right = view.right_tokens(waves, batch)
    scores = view.token_scores(waves, batch, right)
    assert scores.shape[:2] == (1, len(right[0]))


def test_a_class_without_a_known_loss_is_refused() -> None:
    model = SimpleNamespace(tokenizer=None)
    recogniser = SpeechBrainRecogniser("tiny", None, {"kind": "WhisperASR"}, 4, model=model, rate=16_000)
    with pytest.raises(UserError, match="WhisperASR"):
        open_view(recogniser)
