"""Membership inference on models whose training data is known, and on Whisper tiny.en.

    python benchmarks/contamination.py ctc LibriSpeech/dev-clean --out FOLDER
    python benchmarks/contamination.py whisper LibriSpeech --whisper FOLDER --out FOLDER --clips 30

`ctc` takes 3 x 40 clips of the same speakers, trains one small CTC model on the first 40 until it knows them by heart
and another one on the last 40, and asks both whether they have seen the first rather than the second 40. `whisper` asks
Whisper tiny.en about LibriSpeech test-clean beside dev-clean, and beside texts of this project's documentation that
flite speaks. It can be interrupted and repeated.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from itertools import islice
from pathlib import Path

import soundfile
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import speech_robust_bench as srb
from speech_robust_bench.attacks.clips import mask_of, padded
from speech_robust_bench.attacks.views import base
from speech_robust_bench.extensions.contamination.result import conclusion, lines

ROOT = Path(__file__).resolve().parents[1]

LETTERS = " abcdefghijklmnopqrstuvwxyz'"
CLIPS = 40
LONGEST_S = 4.0
FFT, HOP, BANDS, UNITS = 512, 512, 40, 96
STEPS = 200
OPTIONS = srb.ContaminationOptions(snrs=(10.0, 20.0, 30.0, 40.0), draws=2, radii=(0.0005, 0.001, 0.002, 0.005))


class TinyCtc(nn.Module):
    """Log band energies, two layers of a bidirectional GRU, CTC over letters."""

    pads_safely, longest_s = True, 30.0
    revision, options = "1", {}

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(FFT), persistent=False)
        self.rnn = nn.GRU(BANDS, UNITS, 2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * UNITS, len(LETTERS) + 1)

    def forward(self, waves: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        waves = waves * mask_of(lengths, waves.shape[1])
        power = torch.stft(waves, FFT, HOP, window=self.window, return_complex=True).abs().square()
        bands = nn.functional.adaptive_avg_pool1d(power.transpose(1, 2)[..., : FFT // 2], BANDS)
        frames = lengths // HOP
        features = ((bands + 1e-6).log() + 6) / 4
        packed = pack_padded_sequence(features, frames, batch_first=True, enforce_sorted=False)
        heard, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.out(heard), frames

    def spell(self, text: str) -> str:
        return re.sub("[^a-z' ]", "", text.lower())

    def losses(self, waves, lengths, texts):
        logits, frames = self(waves, lengths)
        return base.ctc(logits, frames, [torch.tensor([LETTERS.index(c) + 1 for c in text]) for text in texts], 0)

    def transcribe(self, clips, rate, language):
        with torch.no_grad():
            logits, frames = self(*padded(clips))
        best = [row[:count].unique_consecutive().tolist() for row, count in zip(logits.argmax(-1), frames, strict=True)]
        return ["".join(LETTERS[number - 1] for number in row if number) for row in best]


def trained(folder: Path, weights: Path) -> TinyCtc:
    """The model that knows a folder's clips by heart."""
    torch.manual_seed(0)
    model = TinyCtc()
    if weights.is_file():
        model.load_state_dict(torch.load(weights, weights_only=True))
        return model.eval()
    files = sorted(folder.glob("*.flac"))
    torch.set_num_threads(1)
    waves, lengths = padded([soundfile.read(file, dtype="float32")[0] for file in files])
    texts = [model.spell(file.with_suffix(".txt").read_text().strip()) for file in files]
    optimiser = torch.optim.Adam(model.parameters(), 3e-3)
    for step in range(STEPS):
        loss = model.losses(waves, lengths, texts).mean()
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if step % 25 == 0 or step == STEPS - 1:
            print(json.dumps({"trained on": folder.name, "step": step, "loss": round(loss.item(), 4)}), flush=True)
    torch.save(model.state_dict(), weights)
    return model.eval()


def utterances(corpus: Path):
    """File and text of the short clips of a folder of LibriSpeech, speaker by speaker in turn."""
    by_speaker: dict[str, list] = {}
    for listing in sorted(corpus.rglob("*.trans.txt")):
        for line in listing.read_text().splitlines():
            clip, _, text = line.partition(" ")
            by_speaker.setdefault(clip.split("-")[0], []).append((listing.parent / f"{clip}.flac", text))
    for turn in range(max(map(len, by_speaker.values()))):
        for clips in by_speaker.values():
            if turn < len(clips) and soundfile.info(clips[turn][0]).duration < LONGEST_S:
                yield clips[turn]


def make_parts(corpus: Path, out: Path) -> None:
    """Folders a, b and c: three clips in a row go into one each, so that the parts have the same speakers."""
    chosen = list(islice(utterances(corpus), 3 * CLIPS))
    by_speaker = sorted(chosen, key=lambda clip: clip[0].name)
    for number, (file, text) in enumerate(by_speaker):
        part = out / "abc"[number % 3]
        part.mkdir(parents=True, exist_ok=True)
        (part / file.name).write_bytes(file.read_bytes())
        (part / file.name).with_suffix(".txt").write_text(text.lower())


def speak_documentation(count: int, out: Path) -> Path:
    """Sentences of this project's documentation, which are younger than any model, spoken by flite."""
    text = " ".join(path.read_text() for path in sorted((ROOT / "docs" / "concepts").glob("*.md")))
    sentences = re.findall(r"(?<=[.:] )[A-Z][a-z]+(?: [a-z]+){7,16}(?=\. )", text)
    folder = out / "spoken"
    folder.mkdir(parents=True, exist_ok=True)
    voices = ["slt", "rms", "awb", "kal16"]
    for number, sentence in enumerate(dict.fromkeys(sentences[: 2 * count])):
        target = folder / f"sentence{number:03d}.wav"
        if not target.is_file():
            voice = voices[number % len(voices)]
            subprocess.run(["flite", "-voice", voice, "-t", sentence, "-o", str(target)], check=True)
            target.with_suffix(".txt").write_text(sentence)
    return folder


def tell(name: str, result) -> None:
    for line in lines(result):
        print(json.dumps([name, *line]), flush=True)
    print(json.dumps([name, conclusion(result)]), flush=True)


def ask_small_models(corpus: Path, out: Path) -> None:
    make_parts(corpus, out)
    for part in "ac":
        model = trained(out / part, out / f"trained-on-{part}.pt")
        found = srb.contamination(
            model, {"en-a": out / "a"}, {"en-b": out / "b"}, out=out / f"model-{part}", contamination_options=OPTIONS
        )
        tell(f"trained on {part}", found)


def ask_whisper(corpus: Path, out: Path, whisper: str, clips: int) -> None:
    options = srb.ContaminationOptions(snrs=(10.0, 30.0), draws=1, radii=(0.001,), limit=clips)
    fresh = {"dev-clean": {"en": corpus / "dev-clean"}, "flite": {"en-spoken": speak_documentation(clips, out)}}
    for name, side in fresh.items():
        found = srb.contamination(
            f"hf:{whisper}", {"en": corpus / "test-clean"}, side, out=out / name, contamination_options=options
        )
        tell(f"test-clean against {name}", found)


def main() -> int:
    parser = argparse.ArgumentParser(description="Membership inference.")
    parser.add_argument("part", choices=("ctc", "whisper"))
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--out", type=Path, default=Path("contamination"))
    parser.add_argument("--whisper", default=str(Path("~/.cache/srb/whisper-tiny.en").expanduser()))
    parser.add_argument("--clips", type=int, default=30)
    args = parser.parse_args()
    if args.part == "ctc":
        ask_small_models(args.corpus, args.out)
    else:
        ask_whisper(args.corpus, args.out, args.whisper, args.clips)
    return 0


if __name__ == "__main__":
    sys.exit(main())
