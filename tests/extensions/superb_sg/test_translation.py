"""Speech translation: the network and its search against other computations, CoVoST 2's layout, a training."""

from __future__ import annotations

import csv
import itertools
import json
import math

import numpy as np
import pytest
import soundfile

torch = pytest.importorskip("torch")
sacrebleu = pytest.importorskip("sacrebleu")
pytest.importorskip("sacremoses")

import speech_robust_bench as srb
from speech_robust_bench.cli.main import main
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.superb_sg.covost import TranslatedClip, covost
from speech_robust_bench.extensions.superb_sg.front_end import superb
from speech_robust_bench.extensions.superb_sg.head_file import PUBLISHED
from speech_robust_bench.extensions.superb_sg.translation_head import (
    END,
    DecoderLayer,
    TranslationHead,
    translate,
    translation_loss,
)
from speech_robust_bench.extensions.superb_sg.translation_training import bleu

RATE = 16_000
TONES_HZ = {"one": 300.0, "two": 700.0, "four": 1500.0, "five": 2600.0}
GERMAN = {"one": "eins", "two": "zwei", "four": "vier", "five": "fünf"}


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_the_head_has_the_size_that_the_paper_names():
    """SUPERB-SG, Table 5: 28.8 million parameters on TERA, which has 4 hidden states of 768."""
    head = TranslationHead(layers=4, width=768, letters=120)
    assert sum(p.numel() for p in head.parameters()) == pytest.approx(28.8e6, rel=0.01)


def test_a_decoder_layer_computes_what_that_of_torch_does():
    torch.manual_seed(0)
    own = DecoderLayer(64, 0.0).eval()
    other = torch.nn.TransformerDecoderLayer(64, 8, 256, 0.0, batch_first=True, norm_first=True).eval()
    pairs = [(own.own, other.self_attn), (own.speech, other.multihead_attn)]
    with torch.no_grad():
        for mine, theirs in pairs:
            theirs.in_proj_weight.copy_(torch.cat([mine.query.weight, mine.key.weight, mine.value.weight]))
            theirs.in_proj_bias.copy_(torch.cat([mine.query.bias, mine.key.bias, mine.value.bias]))
            theirs.out_proj.load_state_dict(mine.out.state_dict())
        other.linear1.load_state_dict(own.wide.state_dict())
        other.linear2.load_state_dict(own.narrow.state_dict())
        x, speech = torch.randn(2, 5, 64), torch.randn(2, 7, 64)
        causal = torch.ones(5, 5, dtype=torch.bool).tril()
        result, _ = own(x, own.speech.keys_values(speech), None, None, causal)
        assert result == pytest.approx(other(x, speech, tgt_mask=~causal), abs=1e-5)


def small_head(letters: int = 5) -> TranslationHead:
    torch.manual_seed(1)
    return TranslationHead(layers=2, width=12, letters=letters, units=16, dropout=0.0).eval()


def log_probability(head: TranslationHead, states, letters: list[int]) -> float:
    """Of a sentence with its end, from the whole of it at once."""
    written = torch.tensor([[END, *letters]])
    with torch.no_grad():
        chances = head([states], written)[0].log_softmax(-1)
    return sum(float(chances[place, letter]) for place, letter in enumerate([*letters, END]))


def test_the_search_finds_the_best_of_all_sentences():
    """Against every sentence of up to three letters, scored without the cache."""
    head, states = small_head(), torch.randn(2, 20, 12)
    known = range(2, 5)
    sentences = [list(each) for length in (1, 2, 3) for each in itertools.product(known, repeat=length)]
    best = max(sentences, key=lambda each: log_probability(head, states, each) / (len(each) + 1))
    assert translate(head, states, beam=60, longest=3) == best


def test_padding_changes_nothing():
    head = small_head()
    short, long = torch.randn(2, 13, 12), torch.randn(2, 31, 12)
    written = torch.tensor([[END, 2, 3], [END, 4, 2]])
    with torch.no_grad():
        together = head([short, long], written)
        alone = head([short], written[:1])
    assert together[0] == pytest.approx(alone[0], abs=1e-5)


def test_the_loss_is_that_of_fairseq():
    """label_smoothed_nll_loss: (1 - e - e / (V - 1)) nll + e / (V - 1) times the sum over all letters."""
    torch.manual_seed(0)
    logits, targets = torch.randn(2, 3, 7), torch.tensor([[2, 3, 1], [4, 1, 0]])
    chances, smooth = logits.log_softmax(-1), 0.1 / 6
    total = 0.0
    for clip, place in ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1)):
        total += -(1 - 0.1 - smooth) * float(chances[clip, place, targets[clip, place]])
        total += -smooth * float(chances[clip, place].sum())
    assert float(translation_loss(logits, targets, 7)) == pytest.approx(total / 2, rel=1e-5)


def test_the_learning_rate_is_that_of_s3prl():
    how = PUBLISHED["translation"]
    assert [how.rate(0), how.rate(5000)] == [0.0, 0.0005]
    assert how.rate(20_000) == pytest.approx(1e-3 / math.sqrt(20_000))
    conversion = PUBLISHED["conversion"]
    assert [conversion.rate(4000), conversion.rate(7000), conversion.rate(10_000)] == [1e-4, 5e-5, 0.0]


def test_bleu_is_that_of_sacrebleu_and_has_an_interval(tmp_path):
    rng = np.random.default_rng(0)
    words = ["Haus", "Hund", "der", "die", "Katze", "läuft", "schnell", "heute", "nicht", "."]
    references = [" ".join(rng.choice(words, 8)) for _ in range(12)]
    hypotheses = [" ".join(word if rng.random() < 0.8 else "und" for word in text.split()) for text in references]
    clips = [TranslatedClip(str(n), None, tmp_path, text) for n, text in enumerate(references)]
    score, over = bleu(clips, hypotheses)
    assert score.value == pytest.approx(sacrebleu.corpus_bleu(hypotheses, [references]).score, abs=1e-3)
    assert over == "12 clips"
    assert score.interval[0] < score.value < score.interval[1]
    assert bleu(clips[:3], hypotheses[:3])[0].interval is None


def spoken(words: list[str], seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    t = np.arange(RATE // 5) / RATE
    tones = [0.2 * np.sin(2 * np.pi * TONES_HZ[word] * t) * np.hanning(len(t)) for word in words]
    return (np.concatenate(tones) + 0.001 * rng.standard_normal(len(t) * len(words))).astype(np.float32)


def write_table(path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(rows[0]), delimiter="\t", quoting=csv.QUOTE_NONE, escapechar="\\")
        table.writeheader()
        table.writerows(rows)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """CoVoST 2's table and Common Voice's, with tones for words."""
    root = tmp_path_factory.mktemp("CoVoST2")
    (root / "en" / "clips").mkdir(parents=True)
    rng = np.random.default_rng(3)
    spoken_rows, translated_rows = [], []
    for number in range(70):
        words = rng.choice(list(TONES_HZ), 4).tolist()
        name = f"common_voice_en_{number}.wav"
        soundfile.write(root / "en" / "clips" / name, spoken(words, number), RATE)
        split = "test" if number < 6 else "dev" if number < 12 else ("train", "train_covost")[number % 2]
        spoken_rows.append({"client_id": f"c{number % 8}", "path": name, "sentence": " ".join(words)})
        text = " ".join(GERMAN[word] for word in words)
        translated_rows.append({"path": name, "translation": f"„{text} .“" if number == 0 else text, "split": split})
    translated_rows[20]["translation"] = "REMOVE"
    translated_rows[21]["translation"] = "zu " * 30
    translated_rows.append({"path": "gone.mp3", "translation": "weg", "split": "train"})
    write_table(root / "en" / "validated.tsv", spoken_rows)
    write_table(root / "covost_v2.en_de.tsv", translated_rows)
    return root


def test_both_published_forms_of_covost_are_read(published, tmp_path):
    train, dev, test = (covost(str(published), part) for part in ("train", "dev", "test"))
    assert (len(train), len(dev), len(test)) == (56, 6, 6)  # two are left out, and one has no clip
    assert test[0].speaker == "c0"
    assert (test[0].translation[0], test[0].translation[-2:]) == ('"', '."')
    assert len(test[0].load()) == 4 * (RATE // 5)
    (tmp_path / "clips").symlink_to(published / "en" / "clips")
    row = {"path": "common_voice_en_1.wav", "sentence": "a b", "translation": "c d", "client_id": "x"}
    write_table(tmp_path / "covost_v2.en_de.test.tsv", [row])
    assert [clip.translation for clip in covost(str(tmp_path), "test")] == ["c d"]
    with pytest.raises(UserError, match="nor covost_v2"):
        covost(str(tmp_path), "dev")


def test_a_head_learns_to_translate_and_noise_harms_it(published, tmp_path, capsys):
    options = srb.SuperbOptions(
        steps=150, batch_size=8, units=64, lr=2e-3, dropout=0.0, warmup=20, decay="none", accumulate=1, eval_every=150
    )
    data = srb.SuperbData(covost=published)
    record = srb.train_superb_head(
        "translation", "fbank", tmp_path / "st", data, superb_options=options, progress=False
    )
    assert record.characters == " efinrsvwzü"
    assert record.best.scores.bleu.value > 25
    words = ["superb", "test", str(tmp_path / "st"), "--covost", str(published), "--under", "gaussian_sev4", "--json"]
    assert main(words) == 0
    tests = json.loads(capsys.readouterr().out)
    assert tests["as given"]["bleu"]["value"] > tests["gaussian_sev4"]["bleu"]["value"] + 10
    assert tests["as given"]["clips"] == 6
    with pytest.raises(UserError, match="is no front end"):
        superb(str(tmp_path / "st"))
