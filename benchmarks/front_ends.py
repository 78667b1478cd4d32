"""Does a front end help the words? Three recognisers behind four front ends, on human recordings under six scenarios.

    apt install asterisk-core-sounds-en asterisk-core-sounds-en-g722 ffmpeg
    pip install -e ".[demo,fronts]" faster-whisper vosk
    python benchmarks/front_ends.py --out /tmp/fronts --vosk FOLDER --whisper FOLDER [--clips 24]

The recordings are Debian's Asterisk prompts of 2 to 4 s (one woman, telephone quality). WHISPER is Whisper tiny.en for
CTranslate2, VOSK a model folder of Vosk. Then `srb compare RUN RUN --by config` compares WERD with and without a front
end clip by clip. It can be interrupted and repeated, and done for one recogniser at a time (`--only`).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import soundfile
from human import SOUNDS, TEXTS, make_corpus

from srb.cli.main import main as srb

FRONT_ENDS = ("webrtc", "noisereduce", "asnr", "rnnoise")
# 5 dB: where small recognisers begin to fail and have not failed yet
SCENARIOS = ("gaussian_snr5", "noise_snr5", "music_snr5", "crosstalk_snr5", "rir_sev3", "telephone")
SHORTEST_S, LONGEST_S = 2.0, 4.0


def prepare(folder: Path, clips: int) -> None:
    """The corpus, with the clips of the right length alone, and the built configs."""
    corpus = folder / "corpus"
    if not corpus.is_dir():
        make_corpus(folder / "all", 10_000)
        fitting = [
            path for path in sorted((folder / "all").glob("*.flac"))
            if SHORTEST_S <= soundfile.info(path).duration <= LONGEST_S
        ]  # fmt: skip
        part = folder / "corpus.part"
        part.mkdir(exist_ok=True)
        for path in fitting[:: max(1, len(fitting) // clips)][:clips]:
            for file in (path, path.with_suffix(".txt")):
                (part / file.name).write_bytes(file.read_bytes())
        part.rename(corpus)
    configs = [f"en-prompts_{name}" for name in ("clean", *SCENARIOS)]
    code = srb(["build", *configs, "--corpus", f"en-prompts={corpus}", "--out", str(folder / "srb"), "--workers", "1"])
    if code:
        sys.exit(code)


def main() -> int:
    parser = argparse.ArgumentParser(description="Recognisers with and without front ends.")
    parser.add_argument("--out", type=Path, default=Path("fronts"))
    parser.add_argument("--clips", type=int, default=24)
    parser.add_argument("--whisper", required=True, help="Whisper tiny.en for CTranslate2")
    parser.add_argument("--vosk", required=True, help="a model folder of Vosk")
    parser.add_argument("--only", help="one recogniser: moonshine, whisper-tiny.en or vosk")
    args = parser.parse_args()
    if not TEXTS.is_file() or not SOUNDS.is_dir():
        sys.exit("install the recordings: apt install asterisk-core-sounds-en asterisk-core-sounds-en-g722")
    prepare(args.out, args.clips)
    models = {
        "moonshine": "moonshine?threads=1",
        "whisper-tiny.en": f"faster-whisper:{args.whisper}?device=cpu&workers=1",
        "vosk": f"vosk:{args.vosk}?threads=1",
    }
    for name, spec in models.items():
        if args.only not in (None, name):
            continue
        for front_end in ("", *FRONT_ENDS):
            named = f"{front_end}-{name}" if front_end else name
            model = f"front:{front_end}|{spec}" if front_end else spec
            out = ["--name", named, "--data", str(args.out / "srb"), "--out", str(args.out / "runs"), "--quiet"]
            if code := srb(["run", "--model", model, *out]):
                return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
