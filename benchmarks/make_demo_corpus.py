"""How the demo corpus was made: `python benchmarks/make_demo_corpus.py` writes its FLAC files and manifest.csv.

Not run by a build or a test: the clips are committed, so that they are the same everywhere. It needs the packages
moonshine-voice 0.1.0, hibari-tts 0.2.1 and py-nanotts 0.1.1, and Debian's flite 2.2.

One human recording: the opening of A Tale of Two Cities (Dickens, 1859, public domain), which moonshine-voice ships
under the MIT licence, cut at the reader's pauses. The rest is spoken by free voices, from sentences written for this
project. The licences are those of the voices' data and models, from their package metadata and model cards:

- hibari heart: Apache-2.0, distilled from Kokoro-82M (Apache-2.0), voice af_heart.
- flite slt, rms, awb: CMU's flite licence (SPDX MIT-Festival), from the CMU ARCTIC recordings (free for any use).
- Pico en-GB and es-ES: Apache-2.0, SVOX's lingware as released with Android.

Piper's joe is left out: its data is CC0, but its weights were tuned from a voice made of the Blizzard 2013 Lessac
recordings, whose licence limits what may be done with speech made from them.
"""

from __future__ import annotations

import csv
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import soundfile
import soxr

DEMO = Path(__file__).parents[1] / "builders/data/demo"
RATE = 16_000
PEAK = 10 ** (-3 / 20)
MARGIN_S = 0.2

Speech = tuple[np.ndarray, int]


class DemoSpeaker(NamedTuple):
    """One speaker of the corpus and the sentences that it says."""

    speaker: str
    language: str
    gender: str
    accent: str
    licence: str
    kind: str
    speak: Callable[[str], Speech]
    sentences: tuple[str, ...]


def hibari(text: str) -> Speech:
    from hibari import Hibari

    tts = Hibari()
    return tts(text), tts.sample_rate


def flite(voice: str) -> Callable[[str], Speech]:
    def speak(text: str) -> Speech:
        with tempfile.NamedTemporaryFile(suffix=".wav") as file:
            subprocess.run(["flite", "-voice", voice, "-t", text, "-o", file.name], check=True)
            return soundfile.read(file.name, dtype="float32")

    return speak


def pico(voice: str) -> Callable[[str], Speech]:
    def speak(text: str) -> Speech:
        from py_nanotts import NanoTTS

        return np.frombuffer(NanoTTS().speak(text, voice), "<i2").astype(np.float32) / 32768, RATE

    return speak


# The reader's pauses in two_cities.wav, found by its energy, and Dickens' words between them, checked with two
# recognisers. The season of Light and Darkness is left out: both of them hear "a season", so its text is in doubt.
TWO_CITIES = {
    "It was the best of times, it was the worst of times,": (1.10, 4.66),
    "it was the age of wisdom, it was the age of foolishness,": (4.94, 8.30),
    "it was the epoch of belief, it was the epoch of incredulity,": (8.72, 12.88),
    "it was the spring of hope, it was the winter of despair,": (17.42, 20.58),
    "we had everything before us, we had nothing before us,": (21.10, 24.14),
    "we were all going direct to Heaven, we were all going direct the other way—": (24.52, 28.42),
    "in short, the period was so far like the present period,": (28.96, 32.36),
    "that some of its noisiest authorities insisted on its being received, for good or for evil, in the superlative "
    "degree of comparison only.": (32.66, 41.80),
}


def two_cities(text: str) -> Speech:
    import moonshine_voice

    path = Path(moonshine_voice.__file__).parent / "assets" / "two_cities.wav"
    start_s, end_s = TWO_CITIES[text]
    rate = soundfile.info(path).samplerate
    return soundfile.read(path, start=round(start_s * rate), stop=round(end_s * rate), dtype="float32")


VOICES = (
    DemoSpeaker("reader", "en", "male", "", "MIT", "human", two_cities, tuple(TWO_CITIES)),
    DemoSpeaker(
        "heart",
        "en",
        "female",
        "United States English",
        "Apache-2.0",
        "synthetic",
        hibari,
        (
            "The bakery on the corner opens at six, and the smell of fresh bread fills the whole street.",
            "Could you please tell me which platform the train to the coast leaves from?",
            "My grandmother taught me to swim in the lake behind her house when I was four.",
            "We have forty two chairs but only thirty nine people on the list.",
            "If it rains tomorrow, the concert will be moved to the town hall.",
            "Doctor Miller will see you on Thursday at a quarter past nine.",
            "I left my umbrella on the bus again, and of course it started to pour.",
            "The old bridge was closed for two years before anybody repaired it.",
            "Every autumn the wild geese fly over our roof on their long way to the south.",
        ),
    ),
    DemoSpeaker(
        "slt",
        "en",
        "female",
        "United States English",
        "MIT-Festival",
        "synthetic",
        flite("slt"),
        (
            "Please turn off the lights when you leave the office tonight.",
            "The meeting has been moved from Monday morning to Wednesday afternoon.",
            "How many eggs do we need for the cake?",
            "She bought seven red apples and a small bag of sugar at the market.",
            "The children watched the snow fall on the quiet garden.",
            "Nobody knew why the door of the library was open on Sunday.",
            "Take the second street on the left and walk straight ahead until you see the school.",
            "After the long winter, the first warm day of the year felt like a holiday.",
        ),
    ),
    DemoSpeaker(
        "rms",
        "en",
        "male",
        "United States English",
        "MIT-Festival",
        "synthetic",
        flite("rms"),
        (
            "The ship reached the harbor just before the storm began.",
            "There are twenty four hours in a day, but never enough of them.",
            "What time does the museum close on Saturday?",
            "The farmer sold his horses and bought a new tractor in the spring.",
            "Robert and Maria have lived in London for eleven years.",
            "The hotel is full this week, so we have to stay with my uncle in the country.",
            "He opened the window because the kitchen was full of smoke.",
            "They built the tower out of white stone more than nine hundred years ago.",
        ),
    ),
    DemoSpeaker(
        "awb",
        "en",
        "male",
        "Scottish English",
        "MIT-Festival",
        "synthetic",
        flite("awb"),
        (
            "The river was so cold that nobody wanted to swim in it.",
            "We waited for the bus for more than half an hour this morning.",
            "Can you read the numbers on the other side of the road?",
            "The teacher asked the students to write a short story about the sea.",
            "It takes about three hours to drive from the city to the mountains.",
            "The little dog slept under the table all afternoon.",
            "The black horse jumped over the fence and ran into the woods.",
        ),
    ),
    DemoSpeaker(
        "kh0",
        "en",
        "female",
        "England English",
        "Apache-2.0",
        "synthetic",
        pico("en-GB"),
        (
            "Would you like a cup of tea before we start the meeting?",
            "The last train to the north leaves at ten minutes to midnight.",
            "The doctor told him to drink more water and to go for a walk every day.",
            "We walked along the beach and talked about our plans for the summer.",
            "You can pay with a card or with cash when you leave the hotel.",
            "He forgot to lock the gate, and the sheep ran into the village.",
            "There is a letter for you on the table in the hall.",
            "On the first of May, the whole village comes together to dance around the tree.",
        ),
    ),
    DemoSpeaker(
        "zl0",
        "es",
        "female",
        "España",
        "Apache-2.0",
        "synthetic",
        pico("es-ES"),
        (
            "Mañana por la mañana iremos al mercado a comprar fruta y verdura.",
            "¿A qué hora sale el último tren para Sevilla?",
            "Mi abuela vive en una casa pequeña cerca del río.",
            "El médico me dijo que tenía que dormir ocho horas cada noche.",
            "Los niños jugaban en la plaza mientras sus padres tomaban café.",
            "Hay veintitrés alumnos en la clase, pero hoy faltan cuatro.",
            "Si llueve esta tarde, nos quedaremos en casa viendo una película.",
            "La biblioteca cierra los lunes y abre los sábados hasta las dos.",
            "Carmen y Javier se conocieron en Barcelona hace quince años.",
            "¿Puedes abrir la ventana, por favor? Aquí hace mucho calor.",
            "El barco llegó al puerto antes de la tormenta.",
            "Nadie sabía por qué la puerta estaba abierta.",
        ),
    ),
)


def prepare(samples: np.ndarray, rate: int) -> np.ndarray:
    """16 kHz, 0.2 s of silence around the speech, peak at -3 dBFS, 16 bit."""
    mono = soxr.resample(samples, rate, RATE) if rate != RATE else samples
    frame = RATE // 100
    energy = np.sqrt(np.mean(np.square(mono[: len(mono) // frame * frame].reshape(-1, frame)), axis=1))
    loud = np.flatnonzero(energy > energy.max() * 0.02)
    margin = round(MARGIN_S * RATE)
    start, end = loud[0] * frame - margin, (loud[-1] + 1) * frame + margin
    cut = np.pad(mono, (max(-start, 0), max(end - len(mono), 0)))[max(start, 0) :][: end - start]
    return np.rint(cut * (PEAK / np.abs(cut).max()) * 32767).astype(np.int16)


def main() -> None:
    for old in DEMO.glob("*.flac"):
        old.unlink()
    with (DEMO / "manifest.csv").open("w", newline="", encoding="utf-8") as file:
        manifest = csv.writer(file, lineterminator="\n")
        manifest.writerow(("file", "text", "language", "speaker", "gender", "accent", "licence", "kind"))
        manifest.writerows(clips())


def clips() -> Iterator[tuple[str, ...]]:
    for voice in VOICES:
        for number, sentence in enumerate(voice.sentences, 1):
            name = f"{voice.language}-{voice.speaker}-{number:02}.flac"
            pcm = prepare(*voice.speak(sentence))
            soundfile.write(DEMO / name, pcm, RATE, "PCM_16", format="FLAC", compression_level=1.0)
            details = (voice.speaker, voice.gender, voice.accent, voice.licence, voice.kind)
            yield name, sentence, voice.language, *details


if __name__ == "__main__":
    main()
