"""The reader of CTranslate2's model.bin gives back the weights that CTranslate2's own converter wrote."""

from __future__ import annotations

import importlib.util
import struct
from pathlib import Path

import pytest

pytest.importorskip("ctranslate2", reason="needs ctranslate2")
torch = pytest.importorskip("torch", reason="needs torch")
transformers = pytest.importorskip("transformers", reason="needs transformers")

SCRIPT = importlib.util.spec_from_file_location("whisper_ct2", Path(__file__).parents[2] / "benchmarks/whisper_ct2.py")
whisper_ct2 = importlib.util.module_from_spec(SCRIPT)
SCRIPT.loader.exec_module(whisper_ct2)

SIZES = {"d_model": 8, "encoder_layers": 2, "decoder_layers": 3, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
HEADS = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "num_mel_bins": 4}
TOKENS = {"vocab_size": 30, "bos_token_id": 1, "eos_token_id": 1, "pad_token_id": 1, "decoder_start_token_id": 2}


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    context = {"max_source_positions": 12, "max_target_positions": 10}
    return transformers.WhisperForConditionalGeneration(
        transformers.WhisperConfig(**SIZES, **HEADS, **TOKENS, **context, tie_word_embeddings=True)
    )


@pytest.fixture(scope="module")
def file(model, tmp_path_factory):
    from ctranslate2.converters.transformers import WhisperLoader

    spec = WhisperLoader().get_model_spec(model)
    spec.register_vocabulary([str(token) for token in range(30)])
    spec.validate()
    spec.optimize()
    folder = tmp_path_factory.mktemp("ct2")
    spec.save(str(folder))
    return folder / "model.bin"


def test_every_weight_comes_back(model, file):
    state = whisper_ct2.state_dict(whisper_ct2.read_variables(file))
    expected = {name: values for name, values in model.state_dict().items() if name != "proj_out.weight"}
    assert set(state) == set(expected)
    for name, values in expected.items():
        assert torch.equal(torch.from_numpy(state[name]), values), name


def test_the_sizes_are_read_off_the_tensors(file):
    sizes = whisper_ct2.dimensions(whisper_ct2.read_variables(file))
    assert sizes["n_vocab"] == 30
    assert (sizes["n_audio_layer"], sizes["n_text_layer"]) == (2, 3)
    assert (sizes["n_audio_ctx"], sizes["n_text_ctx"]) == (12, 10)
    assert (sizes["n_audio_head"], sizes["n_text_head"], sizes["n_mels"]) == (2, 2, 4)


def test_another_version_of_the_format_is_refused(file, tmp_path):
    older = tmp_path / "model.bin"
    older.write_bytes(struct.pack("<I", 5) + file.read_bytes()[4:])
    with pytest.raises(ValueError, match="version 5"):
        whisper_ct2.read_variables(older)
