"""The scenario table: one row is one scenario, and names, help, cards, docs and tests all derive from it.

Sources: Speech Robust Bench (Shah et al., Table 2 and Appendix A; filter corners are Hz, SNRs those of the table and of
the published data), AequeVox (Rajan et al., Table 2), Olivier's thesis (attacks), Aksenova et al. for what lies beyond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from typing import Any, Literal

from speech_robust_bench.builders.perturb import aequevox, codecs, environment
from speech_robust_bench.builders.perturb.capture import agc, attenuate, gain, trim_end, trim_start
from speech_robust_bench.builders.perturb.codecs import packet_loss
from speech_robust_bench.builders.perturb.effects import chorus, echo, phaser, tremolo
from speech_robust_bench.builders.perturb.environment import add_moving_noise, add_noise, gaussian, reverberate
from speech_robust_bench.builders.perturb.filters import bass, highpass, kenansville, lowpass, treble
from speech_robust_bench.builders.perturb.time_and_pitch import analyse, odd_rate, pitch, resample, speed, tempo
from speech_robust_bench.core.about import install_hint
from speech_robust_bench.core.audio import Samples
from speech_robust_bench.core.categories import CATEGORIES
from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.core.extensions import registered_objects
from speech_robust_bench.core.names import parameter_word, parse

Bank = Literal["noise", "noise_esc50", "noise_musan", "noise_wham", "music", "speech", "rir", "real_rir"]
# What a recording drawn from each bank is called in a row's parameters.
BANKS: dict[Bank, str] = {
    "noise": "noise",
    "noise_esc50": "noise",
    "noise_musan": "noise",
    "noise_wham": "noise",
    "music": "music",
    "speech": "speech",
    "rir": "room",
    "real_rir": "room",
}
# The lowest and the highest value that a parameter, or one scenario's, can be asked for at beyond the severities.
VALUES: dict[str, tuple[float, float]] = {
    "snr_db": (-50, 100),
    "delay_ms": (1, 5_000),
    "gain_db": (-60, 60),
    "decay": (0, 0.99),
    "factor": (0.1, 100),
    "semitones": (-24, 24),
    "depth_percent": (0, 100),
    "fraction": (0.0625, 1),
    "corner_hz": (100, 7_900),
    "kbps": (8, 128),
    "quality": (0, 10),
    "loss_percent": (0, 90),
    "loss_db": (0, 90),
    "level": (0.001, 1),
    "percent": (0, 50),
    "chunk_ms": (1, 1_000),
    "rate_hz": (2_000, 192_000),
    "cut_ms": (0, 10_000),
    "opus": (6, 128),
    "lc3": (16, 128),
    "agc": (0, 60),
    "chorus": (20, 90),  # SoX allows delays of 20 to 100 ms, and the second voice is 10 ms later
}
LINK = " + "  # between the steps of a chain


@dataclass(frozen=True)
class Scenario:
    """One hard scenario.

    A perturbation is a pure function `(samples, rate, value, rng) -> samples` with its value at each severity; one that
    needs material from a bank names it, and its function takes the recording as a fifth argument. One that begins with
    work that is the same at every severity names it as `prepare`, and its function takes the result as a last argument.
    What is made in another way (recordings, speech synthesis, attacks) says so as `maker` and has no function here.

    `from_clips` makes the clips of a config from the corpus' own: it gets those that are wanted, all of the corpus, the
    row, the severity and the seed of a private edition, and yields utterances. Only patterns that contain the category
    match such configs.

    A chain has no function either: its severities are other scenarios in the order in which they are applied, written
    as in config names (`rir_sev1 + noise_snr10 + telephone`), and `parts` holds their rows.

    `version` is raised when what a row makes changes. It is part of the random stream and of all hashes only if it is
    not the first, so that a changed scenario leaves the data and results of all others valid.
    """

    name: str
    category: str
    help: str
    source: str
    function: Callable[..., Any] | None = None
    parameter: str | None = None
    severities: tuple[Any, ...] = (None,)
    bank: Bank | None = None
    maker: str = "perturbation"
    has_speech: bool = True
    prepare: Callable[[Samples], Any] | None = None
    version: int = 1
    parts: tuple[Scenario, ...] = ()
    package: str | None = None  # of an extra, without which it cannot be made
    from_clips: Callable[..., Iterator[Any]] | None = None
    mix: Callable[[Samples, Samples, Any], Samples] | None = None  # makes one clip of two, at a value
    languages: tuple[str, ...] = ()  # the only ones that it is made in; none: all
    facts: tuple[str, ...] = ()  # lists among a row's parameters that its predictions get, as texts
    keeps_text: bool = True  # whether what is said is what the clean clip says
    stretches: bool = False  # makes the clip longer or shorter throughout, so that a word's place moves in proportion
    cuts_start: bool = False
    has_snr: bool = False  # what it adds is noise, whose level is told

    @property
    def perturbs(self) -> bool:
        """Whether it is made from a clean clip by this package: by a function, or by a chain of them."""
        return self.function is not None or bool(self.parts)

    @property
    def banks(self) -> tuple[Bank, ...]:
        """The banks that it, or a step of it, draws from."""
        own = (self.bank,) if self.bank else ()
        return tuple(dict.fromkeys((*own, *(bank for part in self.parts for bank in part.banks))))

    @property
    def packages(self) -> tuple[str, ...]:
        """The optional packages that it, or a step of it, needs."""
        own = (self.package,) if self.package else ()
        return tuple(dict.fromkeys((*own, *(name for part in self.parts for name in part.packages))))

    @property
    def edition(self) -> str:
        """Its version, and after it those of its steps that are not the first."""
        return self.edition_with(lambda bank: 1)

    def edition_with(self, version_of: Callable[[Bank], int]) -> str:
        """The same with the recordings at hand, for which the version may be a later one (`Banks.version`)."""
        own = max(self.version, version_of(self.bank) if self.bank else 1)
        parts = ((part.name, part.edition_with(version_of)) for part in self.parts)
        return ", ".join((str(own), *(f"{name} {version}" for name, version in parts if version != "1")))

    @property
    def rng_key(self) -> str:
        """The key of its random generator."""
        return self.name if self.version == 1 else f"{self.name} version {self.version}"

    def steps(self, severity: float) -> list[tuple[Scenario, int]]:
        """The scenarios of a chain at a severity, each with its own severity."""
        rows = {part.name: part for part in self.parts}
        names = [parse(f"en_{step}") for step in str(self.value(severity)).split(LINK)]
        return [
            (rows[n.scenario] if n.value is None else rows[n.scenario].at(n.value, n.parameter), n.severity)
            for n in names
        ]

    @property
    def graded(self) -> bool:
        """Whether it comes in severities, counted from 1; a scenario that does not has only severity 0."""
        return len(self.severities) > 1

    @property
    def keeps_start(self) -> bool:
        """Whether the clip still begins where it did."""
        return not self.cuts_start and all(part.keeps_start and not part.stretches for part in self.parts)

    @property
    def levels(self) -> tuple[int, ...]:
        """Its severities as numbers: (1, 2, 3, 4), or (0,) where it has none."""
        return tuple(range(1, len(self.severities) + 1)) if self.graded else (0,)

    @property
    def continuous(self) -> bool:
        """Whether something lies between two severities: between numbers it does, between bins of rooms it does not."""
        numbers = all(isinstance(value, int | float) for value in self.severities)
        return self.graded and numbers and not str(self.parameter).endswith("_bin")

    def value(self, severity: float) -> Any:
        """The parameter at a severity; between two severities, the value in proportion between theirs."""
        if severity in self.levels:
            return self.severities[max(int(severity) - 1, 0)]
        if self.graded and not severity:
            raise UserError(f"scenario '{self.name}' needs a severity, 1 to {len(self.severities)}")
        if self.continuous and self.levels[0] < severity < self.levels[-1]:
            below = int(severity) - 1
            low, high = self.severities[below : below + 2]
            return low + (high - low) * (severity - int(severity))
        allowed = f"1 to {len(self.severities)}" if self.graded else "none (leave it out)"
        raise UserError(f"scenario '{self.name}' has no severity {severity}; it has {allowed}")

    @property
    def takes_values(self) -> bool:
        """Whether it can be asked for at any value of its parameter, not only at its severities."""
        return self.function is not None and self.parameter in VALUES

    def at(self, value: float, parameter: str | None = None) -> Scenario:
        """The same scenario at one value of its parameter, without severities; the parameter may be named, to check it.

        All values of a scenario draw from one random stream of a clip, that of severity 0: the same noise, for example,
        at every SNR.
        """
        if not self.takes_values:
            raise UserError(f"scenario '{self.name}' cannot be asked for at a value; leave the value out")
        assert self.parameter
        word = parameter_word(self.parameter)
        lowest, highest = VALUES.get(self.name, VALUES[self.parameter])
        if parameter not in (None, word):
            raise UserError(f"scenario '{self.name}' has no parameter '{parameter}'; its values are written {word}<N>")
        if not lowest <= value <= highest:
            raise UserError(f"scenario '{self.name}': {self.parameter} {value:g} is not in {lowest:g} to {highest:g}")
        return replace(self, severities=(int(value) if float(value).is_integer() else value,))

    def chosen(self, severity: float, value: float | None = None) -> Scenario:
        """The scenario if it has that severity, or the scenario at a value; one clear error otherwise."""
        if value is not None and severity:
            raise UserError("say either a severity or a value")
        row = self if value is None else self.at(value)
        row.value(severity)
        return row


SRB = "SRB Table 2"
OLIVIER = "Olivier 2023"
SNR_DB = (30, 20, 10, 0)
ATTACK_SNR_DB = (40, 30, 20, 10)
FASTER, SLOWER = (1.25, 1.5, 1.75, 2.0), (0.875, 0.75, 0.625, 0.5)
SEMITONES = (3, 6, 9, 12)


def _noise(name: str, bank: Bank, category: str, what: str) -> Scenario:
    return Scenario(name, category, f"{what} at an SNR", SRB, add_noise, "snr_db", SNR_DB, bank, has_snr=True)


def _attack(name: str, category: str, source: str, *snr_db: float, what: str) -> Scenario:
    parameter = "snr_db" if snr_db else None
    return Scenario(name, category, what, source, None, parameter, snr_db or (None,), maker="attack")


def _aeq(
    name: str, function: Callable[..., Any], parameter: str, *values: float, what: str, **traits: bool
) -> Scenario:
    return Scenario(f"aeq_{name}", "aequevox", what, "AequeVox Table 2", function, parameter, values, **traits)  # type: ignore[arg-type]


def chain(name: str, help: str, source: str, severities: Iterable[str], table: Mapping[str, Scenario]) -> Scenario:
    """A scenario that is other scenarios of a table, one after the other; each is checked to be there."""
    severities = tuple(severities)
    parts: dict[str, Scenario] = {}
    for step in (step for severity in severities for step in severity.split(LINK)):
        named = parse(f"en_{step}")
        row = find(named.scenario, table)
        if not row.perturbs or not row.has_speech:
            raise UserError(f"'{step}' cannot be a step of a chain: it does not change speech")
        (row if named.value is None else row.at(named.value, named.parameter)).value(named.severity)
        parts[row.name] = row
    return Scenario(name, "chain", help, source, None, "chain", severities, parts=tuple(parts.values()))


def _aeq_code(name: str, function: Callable[..., Any], *corners_hz: float) -> Scenario:
    what = "Butterworth, zero phase"
    return Scenario(f"aeq_{name}_zero_phase", "aequevox", what, "AequeVox' code", function, "corner_hz", corners_hz)


_ROWS = (
    Scenario("clean", "clean", "the recordings as published", "SRB", maker="recording"),
    # SRB, simulated: 25 scenarios x 4 severities
    Scenario("gaussian", "noise_white", "white noise at an SNR", SRB, gaussian, "snr_db", SNR_DB, has_snr=True),
    _noise("noise", "noise", "noise_env", "MS-SNSD recording"),
    _noise("noise_esc50", "noise_esc50", "noise_env", "ESC-50 recording"),
    _noise("noise_musan", "noise_musan", "noise_env", "MUSAN noise"),
    _noise("noise_wham", "noise_wham", "noise_env", "WHAM! recording"),
    _noise("music", "music", "noise_env", "MUSAN music"),
    _noise("crosstalk", "speech", "noise_env", "MUSAN speech"),
    Scenario("rir", "spatial", "simulated room, by RT60", SRB, reverberate, "rt60_bin", (1, 2, 3, 4), "rir"),
    Scenario("real_rir", "spatial", "real room, by SRMR", SRB, reverberate, "srmr_bin", (1, 2, 3, 4), "real_rir"),
    Scenario("echo", "spatial", "SoX echo 0.8 0.9 D 0.3", SRB, echo, "delay_ms", (125, 250, 500, 1000)),
    Scenario("bass", "sfx", "SoX bass G", SRB, bass, "gain_db", (20, 30, 40, 50)),
    Scenario("treble", "sfx", "SoX treble G", SRB, treble, "gain_db", (10, 23, 36, 50)),
    Scenario("phaser", "sfx", "SoX phaser 0.6 0.8 3 D 2 -t", SRB, phaser, "decay", (0.3, 0.5, 0.7, 0.9)),
    Scenario("tempo_up", "sfx", "SoX tempo F 30", SRB, tempo, "factor", FASTER, stretches=True),
    Scenario("tempo_down", "sfx", "SoX tempo F 30", SRB, tempo, "factor", SLOWER, stretches=True),
    Scenario("speedup", "sfx", "faster, pitch rises", SRB, speed, "factor", FASTER, stretches=True),
    Scenario("slowdown", "sfx", "slower, pitch falls", SRB, speed, "factor", SLOWER, stretches=True),
    Scenario("pitch_up", "sfx", "pitch shift up", SRB, pitch, "semitones", SEMITONES, prepare=analyse),
    Scenario(
        "pitch_down", "sfx", "pitch shift down", SRB, pitch, "semitones", tuple(-n for n in SEMITONES), prepare=analyse
    ),
    # gain-in 0.7 as in the published data; the paper prints 0.9
    Scenario("chorus", "sfx", "SoX chorus, two voices", SRB, chorus, "delay_ms", (30, 50, 70, 90)),
    Scenario("tremolo", "sfx", "SoX tremolo 20 D", SRB, tremolo, "depth_percent", (50, 66, 83, 100)),
    Scenario(
        "resample", "audio_proc", "down to F x 16 kHz and back", SRB, resample, "fraction", (0.75, 0.5, 0.25, 0.125)
    ),
    Scenario("gain", "audio_proc", "amplitude x G, clipped", SRB, gain, "factor", (10, 20, 30, 40)),
    Scenario("lowpass", "audio_proc", "SoX sinc 0-F", SRB, lowpass, "corner_hz", (4000, 2833, 1666, 500)),
    Scenario("highpass", "audio_proc", "SoX sinc F", SRB, highpass, "corner_hz", (500, 1333, 2166, 3000)),
    # SRB, from recordings, synthesis and attacks
    Scenario("accent", "accent", "accented Common Voice", "SRB", maker="recording"),
    Scenario("social_ami_near", "social_near", "AMI meetings, headset", "SRB", maker="recording"),
    Scenario("social_ami_far", "social_far", "AMI meetings, room microphone", "SRB", maker="recording"),
    Scenario("social_chime_near", "social_near", "CHiME-6 dinners, worn microphone", "SRB", maker="recording"),
    Scenario("social_chime_far", "social_far", "CHiME-6 dinners, array", "SRB", maker="recording"),
    Scenario("tts", "synth_speech", "the transcripts, synthesised", "SRB", maker="speech synthesis"),
    _attack("pgd", "adv_us", SRB, *ATTACK_SNR_DB, what="PGD, L2 at an SNR"),
    _attack("universal", "adv_ua", SRB, *ATTACK_SNR_DB, what="universal perturbation"),
    # Attacks beyond it (Olivier, chapters 5 to 7 and Appendix D)
    Scenario(
        "kenansville",
        "adv_other",
        "weakest DFT bins zeroed",
        OLIVIER,
        kenansville,
        "snr_db",
        ATTACK_SNR_DB,
        has_snr=True,
    ),
    _attack("auto", "adv_auto", "Croce and Hein", *ATTACK_SNR_DB, what="the worst of an ensemble without knobs"),
    _attack("genetic", "adv_other", OLIVIER, *ATTACK_SNR_DB, what="genetic, by queries alone"),
    _attack("transfer", "adv_other", OLIVIER, *ATTACK_SNR_DB, what="PGD on proxy models"),
    _attack("transfer_cw", "adv_other", OLIVIER, what="targeted, on proxy models, for others"),
    _attack("cw", "adv_other", OLIVIER, what="targeted, as faint as it gets"),
    _attack("psychoacoustic", "adv_other", "Qin 2019", what="targeted, under the masking threshold"),
    _attack("language", "adv_other", OLIVIER, 45, what="Whisper mistakes the language"),
    _attack("language_universal", "adv_other", OLIVIER, 40, what="the same, by one perturbation"),
    # Beyond the papers (asked for by Aksenova et al.)
    Scenario("mulaw", "codec", "G.711 mu-law", "ITU-T G.711", codecs.mulaw),
    Scenario("alaw", "codec", "G.711 A-law", "ITU-T G.711", codecs.alaw, version=2),
    Scenario("telephone", "codec", "300-3400 Hz, 8 kHz, mu-law", "ITU-T G.712", codecs.telephone),
    Scenario("gsm", "codec", "8 kHz, GSM 06.10", "ETSI GSM 06.10", codecs.gsm),
    Scenario("mp3", "codec", "MP3, constant bit rate", "ISO 13818-3", codecs.mp3, "kbps", (32, 24, 16, 8)),
    Scenario("opus", "codec", "Opus", "RFC 6716", codecs.opus, "kbps", (24, 16, 10, 6)),
    Scenario("vorbis", "codec", "Ogg Vorbis", "Vorbis I", codecs.vorbis, "quality", (6, 4, 2, 0)),
    Scenario(
        "packet_loss", "transmission", "20 ms packets lost", "Gilbert", packet_loss, "loss_percent", (5, 10, 20, 40)
    ),
    Scenario(
        *("opus_loss", "transmission", "Opus, lost packets concealed", "RFC 6716", codecs.opus_loss),
        *("loss_percent", (5, 10, 20, 40)),
        package="av",
    ),
    Scenario(
        *("opus_loss_fec", "transmission", "the same with Opus's FEC", "RFC 6716", codecs.opus_loss_fec),
        *("loss_percent", (5, 10, 20, 40)),
        package="av",
    ),
    Scenario(
        "amr", "codec", "AMR narrowband", "3GPP TS 26.071", codecs.amr, "mode", tuple(codecs.AMR_KBPS), package="av"
    ),
    Scenario("lc3", "codec", "LC3, Bluetooth LE", "Bluetooth LC3", codecs.lc3, "kbps", (48, 32, 24, 16), package="lc3"),
    Scenario(
        *("noise_moving", "noise_other", "MS-SNSD, 10 dB up and down", "Aksenova", add_moving_noise),
        *("snr_db", SNR_DB, "noise"),
        has_snr=True,
    ),
    Scenario("agc", "capture", "level control, most gain", "ITU-T G.169", agc, "gain_db", (10, 20, 30, 40)),
    Scenario(
        "odd_rate",
        "capture",
        "to F Hz and back, linear",
        "J. O. Smith",
        odd_rate,
        "rate_hz",
        (44100, 22050, 11025, 5512),
    ),
    Scenario(
        "trim_start",
        "capture",
        "beginning cut off",
        "Freeman 1989",
        trim_start,
        "cut_ms",
        (50, 100, 200, 400),
        cuts_start=True,
    ),
    Scenario("trim_end", "capture", "end cut off", "Freeman 1989", trim_end, "cut_ms", (50, 100, 200, 400)),
    Scenario("fast", "extreme", "SoX tempo F 30", "Aksenova", tempo, "factor", (2.25, 2.5, 2.75, 3.0), stretches=True),
    Scenario("slow", "extreme", "SoX tempo F 30", "Aksenova", tempo, "factor", (0.45, 0.4, 0.35, 0.3), stretches=True),
    Scenario("quiet", "extreme", "attenuation, then 16 bits", "Aksenova", attenuate, "loss_db", (20, 35, 50, 60)),
    Scenario("silence", "reject", "digital silence", "Aksenova", environment.silence, has_speech=False),
    Scenario(
        "noise_only", "reject", "MS-SNSD recording alone", "Aksenova", environment.only, bank="noise", has_speech=False
    ),
    Scenario("music_only", "reject", "MUSAN music alone", "Aksenova", environment.only, bank="music", has_speech=False),
    # AequeVox: 8 transformations x 5 levels, least to most destructive, and one amplitude beyond them
    _aeq("amplitude", aequevox.amplitude, "factor", 0.5, 0.4, 0.3, 0.2, 0.1, what="amplitude x F"),
    _aeq("amplitude_up", aequevox.amplitude, "factor", 2.0, what="amplitude x 2"),
    _aeq("clipping", aequevox.clipping, "level", 0.05, 0.04, 0.03, 0.02, 0.01, what="clipped, rescaled"),
    _aeq("drop", aequevox.drop, "percent", 5, 10, 15, 20, 25, what="20 ms chunks silenced"),
    _aeq("frame", aequevox.frame, "chunk_ms", 10, 20, 30, 40, 50, what="10 % of chunks silenced"),
    _aeq("highpass", aequevox.highpass, "corner_hz", 500, 600, 700, 800, 900, what="Butterworth, order 2"),
    _aeq("lowpass", aequevox.lowpass, "corner_hz", 900, 800, 700, 600, 500, what="Butterworth, order 2"),
    _aeq("noise", gaussian, "snr_db", 10, 8, 6, 4, 2, what="white noise at an SNR", has_snr=True),
    _aeq("scale", aequevox.scale, "factor", 0.9, 0.8, 0.7, 0.6, 0.5, what="slower, pitch falls", stretches=True),
    # the filters as AequeVox' code runs them, forward and backward; its listeners rated these
    _aeq_code("hp", aequevox.highpass_zero_phase, 500, 600, 700, 800, 900),
    _aeq_code("lp", aequevox.lowpass_zero_phase, 900, 800, 700, 600, 500),
)

# One after the other, each from mild to severe: a chain is nothing but its steps.
_CHAINS = {
    "street_call": (
        "a room, noise, a telephone",
        [f"rir_sev{n} + noise_sev{n} + telephone" for n in (1, 2, 3, 4)],
    ),
    "mobile_call": (
        "noise, AGC, GSM, lost packets",
        [f"noise_sev{n} + agc_sev{n} + gsm + packet_loss_sev{n}" for n in (1, 2, 3, 4)],
    ),
    "meeting_call": (
        "a room, other talkers, Opus",
        [f"rir_sev{n} + crosstalk_snr{25 - 5 * n} + opus_sev{n}" for n in (1, 2, 3, 4)],
    ),
    "hot_microphone": (
        "overdriven, clipped, then AGC",
        [f"gain_factor{factor} + agc_gain30" for factor in (5, 10, 20, 40)],
    ),
}


def find(name: str, table: Mapping[str, Scenario] | None = None) -> Scenario:
    """The scenario of that name; an unknown one is answered with the nearest."""
    table = SCENARIOS if table is None else table
    if name not in table:
        begun = max((known for known in table if name.startswith(f"{known}_")), key=len, default=None)
        ways = f"; '{begun}' is asked for as {_ways(table[begun])}" if begun else ""
        raise UserError(f"unknown scenario '{name}'; {did_you_mean(name, table)} `srb ls` lists them all{ways}")
    return table[name]


def _ways(row: Scenario) -> str:
    """How a scenario is written in a config's name: `noise_sev1 to 4 or noise_snr<N>`."""
    plain = f"{row.name}_sev1 to {len(row.severities)}" if row.graded else row.name
    return f"{plain} or {row.name}_{parameter_word(str(row.parameter))}<N>" if row.takes_values else plain


def _whole_table() -> dict[str, Scenario]:
    """Our rows, those of extensions, and the chains of both."""
    ours = {row.name: row for row in _ROWS}
    table = {**ours, **{name: row for name, row in registered_objects("SCENARIOS").items() if name not in ours}}
    chains = {name: chain(name, what, "Aksenova", steps, table) for name, (what, steps) in _CHAINS.items()}
    return {**table, **chains}


SCENARIOS: dict[str, Scenario] = _whole_table()


def choose(names: Iterable[str], table: Mapping[str, Scenario] = SCENARIOS) -> list[Scenario]:
    """The scenarios of some names, of scenarios or of categories; all of them without a name."""
    wanted = set(names)
    for name in wanted:
        if name not in table and name not in CATEGORIES:
            raise UserError(f"no category or scenario '{name}'; {did_you_mean(name, {*CATEGORIES, *table})}")
    return [row for row in table.values() if not wanted or {row.name, row.category} & wanted]


def perturbations(table: Mapping[str, Scenario] = SCENARIOS) -> list[Scenario]:
    """The scenarios that can be made here from a clean clip: all their packages are installed."""
    return [row for row in table.values() if row.perturbs and not missing_packages(row)]


def missing_packages(row: Scenario) -> list[str]:
    """The optional packages that a scenario needs and that are not installed."""
    return [name for name in row.packages if not _installed(name)]


def check_can_perturb(scenario: Scenario) -> None:
    """One clear error for a scenario that is made in another way, or that needs a package that is not there."""
    if scenario.mix:
        raise UserError(f"scenario '{scenario.name}' needs a second clip (--second, in Python second=)")
    if not scenario.perturbs:
        raise UserError(f"scenario '{scenario.name}' is made by {scenario.maker}, not by perturbing a clip")
    if missing := missing_packages(scenario):
        raise UserError(f"scenario '{scenario.name}' needs {' and '.join(missing)}: {install_hint('codecs')}")


@cache
def _installed(package: str) -> bool:
    return find_spec(package) is not None


def attacks(table: Mapping[str, Scenario] = SCENARIOS) -> list[Scenario]:
    """The scenarios that `srb attack` makes."""
    return [scenario for scenario in table.values() if scenario.category.startswith("adv_")]
