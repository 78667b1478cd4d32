"""What attacks cost and what they do to a real recogniser.

    python benchmarks/attacks.py speed [MODEL ...]  PGD on 16 clips in batches against one by one, and peak memory
    python benchmarks/attacks.py whisper [PART ...] Whisper tiny.en on human recordings: pgd, noise, kenansville
    python benchmarks/attacks.py transfer           perturbations of Whisper on Moonshine and PocketSphinx
    python benchmarks/attacks.py universal          one perturbation for all clips, against random ones of its norm
    python benchmarks/attacks.py cw                 targets of Carlini and Wagner, by the defaults of the command

The last three are `srb attack` itself on configs of the same recordings, in `--out`. `speed` asks for 2.5
times on a small CTC model; its other models are base (wav2vec 2.0 of that size) and whisper. Whatever runs Whisper
needs `python -m tests.support.whisper_weights`, ffmpeg and Debian's asterisk-core-sounds-en-g722. What is measured is
printed as JSON lines.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import soundfile
import torch
from support.whisper_weights import default_folder

from speech_robust_bench.attacks.clips import AttackClip, Bound, batches, snr_db, to_float, word_errors
from speech_robust_bench.attacks.pgd import Attacked, Pgd
from speech_robust_bench.attacks.universal import Perturbation, Universal
from speech_robust_bench.attacks.views.base import View
from speech_robust_bench.attacks.views.open_view import open_view
from speech_robust_bench.builders.perturb.environment import gaussian
from speech_robust_bench.cli.main import main as srb
from speech_robust_bench.core.audio import RATE, to_pcm16
from speech_robust_bench.extensions.attacks.scenarios import kenansville
from speech_robust_bench.extensions.attacks.transfer import score
from speech_robust_bench.models.interface import open_model
from speech_robust_bench.scoring.scoring import align

TARGET_RATIO = 2.5
SOUNDS, LISTING = Path("/usr/share/asterisk/sounds/en"), Path("/usr/share/doc/asterisk-core-sounds-en")
SNRS_DB = (40, 30, 20, 10)


def prompts(count: int, shortest_s: float = 2.0, longest_s: float = 4.0) -> list[AttackClip]:
    """Telephone prompts spoken by Allison Smith, with their transcripts."""
    listing = gzip.decompress(next(LISTING.glob("core-sounds-en.txt.gz")).read_bytes()).decode("utf-8", "replace")
    clips: list[AttackClip] = []
    for line in listing.splitlines():
        name, _, text = line.partition(": ")
        path = SOUNDS / f"{name}.g722"
        plain = text.translate(str.maketrans("", "", " .,'?!"))
        if not (5 <= len(text.split()) <= 12 and plain.isalpha() and path.is_file()):
            continue
        if shortest_s <= path.stat().st_size / 8000 <= longest_s:
            command = ["ffmpeg", "-v", "error", "-f", "g722", "-i", str(path), "-f", "s16le", "-ac", "1"]
            pcm = subprocess.run([*command, "-ar", str(RATE), "-"], check=True, capture_output=True).stdout
            clips.append(
                AttackClip(name, np.frombuffer(pcm, np.int16).astype(np.float32) / 32768, text, "en", "asterisk")
            )
        if len(clips) == count:
            break
    return clips


def say(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


def wer(clips: list[AttackClip], hypotheses: list[str]) -> float:
    return round(align([clip.text for clip in clips], hypotheses).rate, 1)


def whisper(parts: list[str], count: int, steps: int) -> None:
    """Each part on the same clips, with its processor time."""
    clips = prompts(count)
    view = open_view(open_model(f"hf:{default_folder()}?batch_size=5&device=cpu"))
    say(clips=len(clips), seconds=round(sum(clip.seconds for clip in clips), 1), difference=view.difference(clips[:4]))
    for part in parts:
        PARTS[part](view, clips, steps)


def _clean(view: View, clips: list[AttackClip], steps: int) -> None:
    say(part="clean", wer=wer(clips, view.transcribe([clip.samples for clip in clips], "en")))


def _pgd(view: View, clips: list[AttackClip], steps: int) -> None:
    for snr in SNRS_DB:
        attack = Pgd(Bound(snr_db=snr), SNRS_DB.index(snr) + 1, steps=steps, transcribe_every=4, stop=1.0)
        start = time.process_time()
        outcomes = [outcome for batch in batches(clips, 5, True) for outcome in attack.run(view, batch)]
        _tell("pgd", snr, outcomes, time.process_time() - start)


def _tell(part: str, snr: float | None, outcomes: list[Attacked], seconds: float) -> None:
    reached = [snr_db(outcome.clip.samples, outcome.pcm) or float("inf") for outcome in outcomes]
    say(
        part=part,
        snr_db=snr,
        wer=wer([outcome.clip for outcome in outcomes], [outcome.facts["prediction_after"] for outcome in outcomes]),
        success=round(float(np.mean([outcome.facts["success"] for outcome in outcomes])), 3),
        least_snr_db=round(min(reached), 4),
        mean_snr_db=round(float(np.mean(reached)), 2),
        loss_before=round(float(np.mean([outcome.facts["loss_before"] for outcome in outcomes])), 3),
        loss_after=round(float(np.mean([outcome.facts["loss_after"] for outcome in outcomes])), 3),
        steps=[outcome.facts["steps"] for outcome in outcomes],
        cpu_seconds=round(seconds, 1),
    )


def _noise(view: View, clips: list[AttackClip], steps: int) -> None:
    for snr in SNRS_DB:
        noisy = [gaussian(clip.samples, RATE, snr, clip.rng("gaussian", 0)).clip(-1, 1) for clip in clips]
        say(part="white noise", snr_db=snr, wer=wer(clips, view.transcribe(noisy, "en")))


def _kenansville(view: View, clips: list[AttackClip], steps: int) -> None:
    for snr in SNRS_DB:
        signals = [kenansville(clip.samples, RATE, snr, clip.rng("kenansville", 0)) for clip in clips]
        say(part="kenansville", snr_db=snr, wer=wer(clips, view.transcribe(signals, "en")))


def cw(count: int, steps: int, threads: int, out: Path) -> None:
    """The command's own defaults on the shortest prompts. A target once reached stays reached, so fewer steps than
    the 2000 of the default show less than it would."""
    short = sorted(prompts(1000, 1.0, 4.0), key=lambda clip: len(clip.samples))[:count]
    config, data = config_of(short, "short", out), str(out / "srb")
    words = ["--model", f"hf:{default_folder()}?batch_size={count}&device=cpu", "--name", "whisper"]
    words += ["--steps", str(steps), "--batch-size", str(count), "--threads", str(threads)]
    start = time.process_time()
    run("attack", "cw", config, *words, "--data", data, "--out", data)
    seconds = round(time.process_time() - start, 1)
    for path in sorted((out / "srb" / "en-short_cw-whisper").glob("*.parquet")):
        for row in pq.read_table(path, columns=["id", "snr_db", "parameters"]).to_pylist():
            facts = json.loads(row["parameters"])
            keys = ("target", "prediction_before", "prediction_after", "success", "steps", "last_radius")
            say(part="cw", id=row["id"], snr_db=row["snr_db"], **{key: facts[key] for key in keys})
    say(part="cw", clips=len(short), cpu_seconds=seconds)


def config_of(clips: list[AttackClip], name: str, out: Path) -> str:
    """The clips as a built config, for what `srb attack` itself is to show."""
    corpus = out / "corpora" / name
    corpus.mkdir(parents=True, exist_ok=True)
    for clip in clips:
        stem = corpus / clip.id.replace("/", "-")
        if not stem.with_suffix(".txt").is_file():  # a file written anew is another file to `srb build`
            soundfile.write(f"{stem}.flac", clip.samples, RATE)
            stem.with_suffix(".txt").write_text(clip.text)
    run("build", f"en-{name}_clean", "--corpus", f"en-{name}={corpus}", "--out", str(out / "srb"))
    return f"en-{name}_clean"


def run(*words: str) -> None:
    """A command of the project, which has to end well."""
    if code := srb(list(words)):
        sys.exit(code)


def transfer(count: int, steps: int, threads: int, out: Path) -> None:
    """Two proxies, Whisper as it is and behind noise; scored on both of its kind and on two strangers."""
    clips = prompts(count)
    config = config_of(clips, "prompts", out)
    whisper = f"hf:{default_folder()}?batch_size=4&device=cpu"
    start = time.process_time()
    models = [whisper, "moonshine?threads=1", "pocketsphinx?workers=1"]
    words = [word for spec in models for word in ("--model", spec)]
    words += ["--proxy", whisper, "--proxy", f"smooth:{whisper}?sigma=0.01&n=2", "--eot", "1"]
    words += ["--severity", "3", "4", "--steps", str(steps), "--batch-size", "4", "--threads", str(threads)]
    run("attack", "transfer", config, *words, "--data", str(out / "srb"), "--out", str(out / "srb"))
    say(part="transfer", clips=count, steps=steps, cpu_seconds=round(time.process_time() - start, 1))
    for spec in models[1:]:  # how much of it is mere noise to them
        for snr in (20, 10):
            noisy = [gaussian(clip.samples, RATE, snr, clip.rng("gaussian", 0)) for clip in clips]
            success, _ = score(open_model(spec), list(zip(clips, map(to_pcm16, noisy), strict=True)))
            say(part="transfer", model=spec, added="white noise", snr_db=snr, success=round(success, 3))


def universal(count: int, steps: int, threads: int, out: Path) -> None:
    """Fitted on 8 prompts, tried on others at 10 dB, beside its own samples in random order and white noise."""
    severity, snr = 4, 10.0
    clips = prompts(count + 8)
    dev, test = clips[:8], clips[8:]
    configs = [config_of(test, "prompts", out), "--dev", config_of(dev, "dev", out)]
    spec, data = f"hf:{default_folder()}?batch_size=4&device=cpu", str(out / "srb")
    words = ["--severity", str(severity), "--epochs", "3", "--steps", str(steps), "--transcribe-every", str(steps)]
    words += ["--data", data, "--out", data, "--name", "whisper", "--threads", str(threads)]
    start = time.process_time()
    run("attack", "universal", *configs, "--model", spec, *words)
    seconds = time.process_time() - start
    fitted = Perturbation.load(out / "srb" / "perturbations" / f"universal_sev{severity}-whisper.npz")
    noise = Perturbation(np.random.default_rng(0).permutation(fitted.samples))
    view = open_view(open_model(spec))
    added = {
        "fitted": [Universal(Bound(snr_db=snr), fitted).stored(clip) for clip in test],
        "its samples in random order": [Universal(Bound(snr_db=snr), noise).stored(clip) for clip in test],
        "white noise": [to_pcm16(gaussian(clip.samples, RATE, snr, clip.rng("gaussian", 0))) for clip in test],
        "nothing": [to_pcm16(clip.samples) for clip in test],
    }
    for what, pcms in added.items():
        hypotheses = view.transcribe([to_float(pcm) for pcm in pcms], "en")
        success = np.minimum(word_errors([clip.text for clip in test], hypotheses, "en"), 1).mean()
        say(
            part="universal",
            added=what,
            snr_db=snr,
            clips=len(test),
            wer=wer(test, hypotheses),
            success=round(success, 3),
        )
    say(part="universal", dev_success=fitted.about["dev_success"], cpu_seconds=round(seconds, 1))


SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "conv_dim": (16,) * 7,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
}


def ctc_folder(place: Path, **size: Any) -> Path:
    """A wav2vec 2.0 with random weights as a transformers folder; of the published base size, if nothing is said."""
    import transformers

    torch.manual_seed(1)
    letters = ["<pad>", "<s>", "</s>", "<unk>", "|", *"ABCDEFGHIJKLMNOPQRSTUVWXYZ'"]
    (place / "vocab.json").write_text(json.dumps({letter: index for index, letter in enumerate(letters)}))
    tokenizer = transformers.Wav2Vec2CTCTokenizer(str(place / "vocab.json"))
    extractor = transformers.Wav2Vec2FeatureExtractor(return_attention_mask=True, do_normalize=True)
    transformers.Wav2Vec2Processor(extractor, tokenizer).save_pretrained(place)
    config = transformers.Wav2Vec2Config(
        vocab_size=len(letters),
        pad_token_id=0,
        feat_extract_norm="layer",
        do_stable_layer_norm=True,
        initializer_range=0.5 if size else 0.02,
        **size,
    )
    transformers.Wav2Vec2ForCTC(config).save_pretrained(place)
    return place


class Peak:
    """The most memory that this process held at a time, above what it began with."""

    def __enter__(self) -> Peak:
        self.bytes, self._before, self._done = 0, _resident_bytes(), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._done.wait(0.002):
            self.bytes = max(self.bytes, _resident_bytes() - self._before)

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def noises(count: int, shortest_s: float, longest_s: float) -> list[AttackClip]:
    """Clips for models that have learnt nothing."""
    rng = np.random.default_rng(0)
    sizes = [int(RATE * (shortest_s + (longest_s - shortest_s) * i / count)) for i in range(count)]
    sounds = [(0.1 * rng.standard_normal(size)).astype(np.float32) for size in sizes]
    return [AttackClip(f"{number:02d}", sound, "the fox") for number, sound in enumerate(sounds)]


def speed(model: str, count: int, steps: int) -> int:
    """PGD in one batch and one by one. The small model is in double precision, so that both are the same."""
    if model == "whisper":
        clips, view = prompts(count), open_view(open_model(f"hf:{default_folder()}?device=cpu&batch_size={count}"))
    else:
        small = model == "small"
        clips = noises(count, 0.3, 0.5) if small else noises(count, 1.0, 1.5)
        with tempfile.TemporaryDirectory() as folder:
            place = ctc_folder(Path(folder), **(SMALL if small else {}))
            dtype = "float64" if small else "float32"
            view = open_view(open_model(f"hf:{place}?device=cpu&dtype={dtype}&batch_size={count}"))
    attack = Pgd(Bound(snr_db=20), 3, steps=steps, transcribe_every=0)
    Pgd(Bound(snr_db=20), 3, steps=1, transcribe_every=0).run(view, clips[:1])  # what only the first call costs
    start = time.perf_counter()
    with Peak() as peak:
        together = [outcome for batch in batches(clips, count, True) for outcome in attack.run(view, batch)]
    batched_s = time.perf_counter() - start
    start = time.perf_counter()
    alone = [outcome for clip in clips for outcome in attack.run(view, [clip])]
    single_s = time.perf_counter() - start
    by_id = {outcome.clip.id: outcome for outcome in together}
    pairs = [(outcome, by_id[outcome.clip.id]) for outcome in alone]
    worst = max(int(np.abs(outcome.pcm.astype(int) - other.pcm).max()) for outcome, other in pairs)
    ratio = single_s / batched_s
    say(
        part="speed",
        model=model,
        clips=count,
        steps=steps,
        threads=torch.get_num_threads(),
        batched_s=round(batched_s, 2),
        one_by_one_s=round(single_s, 2),
        ratio=round(ratio, 2),
        largest_difference_of_a_sample=worst,
        same_predictions=sum(
            outcome.facts["prediction_after"] == two.facts["prediction_after"] for outcome, two in pairs
        ),
        peak_mb_per_second_of_audio=round(peak.bytes / 2**20 / sum(clip.seconds for clip in clips), 1),
    )
    return 0 if model != "small" or (ratio >= TARGET_RATIO and worst <= 1) else 1


PARTS: dict[str, Callable[[View, list[AttackClip], int], None]] = {
    "clean": _clean,
    "pgd": _pgd,
    "noise": _noise,
    "kenansville": _kenansville,
}


COMMANDS = {"transfer": transfer, "universal": universal, "cw": cw}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "whisper", "transfer", "universal", "cw"])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; speed: small, base, whisper")
    parser.add_argument("--clips", type=int, help="default: 20, speed 16")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("attacked"), help="for configs")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.what == "whisper":
        whisper(args.parts or list(PARTS), args.clips or 20, args.steps)
        return 0
    if args.what in COMMANDS:
        COMMANDS[args.what](args.clips or 20, args.steps, args.threads, args.out)
        return 0
    return max(speed(model, args.clips or 16, args.steps) for model in args.parts or ["small"])


if __name__ == "__main__":
    sys.exit(main())
