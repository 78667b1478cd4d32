"""The scenario table: one row is one scenario, and names, help, cards, docs and tests all derive from it.

Sources: Speech Robust Bench (Shah et al., Table 2 and Appendix A; filter corners are Hz, SNRs those of the table and of
the published data), AequeVox (Rajan et al., Table 2), Aksenova et al. for what lies beyond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from speech_robust_bench.builders.perturb import codecs, effects, environment
from speech_robust_bench.builders.perturb.codecs import packet_loss
from speech_robust_bench.builders.perturb.effects import bass, chorus, echo, highpass, lowpass, phaser, treble, tremolo
from speech_robust_bench.builders.perturb.environment import (
    add_moving_noise,
    add_noise,
    agc,
    attenuate,
    gain,
    gaussian,
    reverberate,
    trim_end,
    trim_start,
)
from speech_robust_bench.builders.perturb.time_and_pitch import analyse, odd_rate, pitch, resample, speed, tempo
from speech_robust_bench.builders.scenario import LINK, Bank, Scenario, attack_scenario, missing_packages
from speech_robust_bench.core.categories import CATEGORIES
from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.core.extensions import registered_objects
from speech_robust_bench.core.names import parameter_word, parse

SRB = "SRB Table 2"
SNR_DB = (30, 20, 10, 0)
FASTER, SLOWER = (1.25, 1.5, 1.75, 2.0), (0.875, 0.75, 0.625, 0.5)
SEMITONES = (3, 6, 9, 12)
LOSS_PERCENT = (5, 10, 20, 40)
CUT_MS = (50, 100, 200, 400)
ODD_HZ = (44100, 22050, 11025, 5512)


def _noise(name: str, bank: Bank, category: str, what: str) -> Scenario:
    return Scenario(name, category, f"{what} at an SNR", SRB, add_noise, "snr_db", SNR_DB, bank, has_snr=True)


def _opus_loss(name: str, what: str, function: Callable[..., Any]) -> Scenario:
    return Scenario(name, "transmission", what, "RFC 6716", function, "loss_percent", LOSS_PERCENT, package="av")


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
    attack_scenario("pgd", "adv_us", SRB, "PGD, L2 at an SNR"),
    attack_scenario("universal", "adv_ua", SRB, "universal perturbation"),
    # Beyond the papers (asked for by Aksenova et al.)
    Scenario("mulaw", "codec", "G.711 mu-law", "ITU-T G.711", codecs.mulaw),
    Scenario("alaw", "codec", "G.711 A-law", "ITU-T G.711", codecs.alaw, version=2),
    Scenario("telephone", "codec", "300-3400 Hz, 8 kHz, mu-law", "ITU-T G.712", codecs.telephone),
    Scenario("gsm", "codec", "8 kHz, GSM 06.10", "ETSI GSM 06.10", codecs.gsm),
    Scenario("mp3", "codec", "MP3, constant bit rate", "ISO 13818-3", codecs.mp3, "kbps", (32, 24, 16, 8)),
    Scenario("opus", "codec", "Opus", "RFC 6716", codecs.opus, "kbps", (24, 16, 10, 6)),
    Scenario("vorbis", "codec", "Ogg Vorbis", "Vorbis I", codecs.vorbis, "quality", (6, 4, 2, 0)),
    Scenario("packet_loss", "transmission", "20 ms packets lost", "Gilbert", packet_loss, "loss_percent", LOSS_PERCENT),
    _opus_loss("opus_loss", "Opus, lost packets concealed", codecs.opus_loss),
    _opus_loss("opus_loss_fec", "the same with Opus's FEC", codecs.opus_loss_fec),
    Scenario(
        "amr", "codec", "AMR narrowband", "3GPP TS 26.071", codecs.amr, "mode", tuple(codecs.AMR_KBPS), package="av"
    ),
    Scenario("lc3", "codec", "LC3, Bluetooth LE", "Bluetooth LC3", codecs.lc3, "kbps", (48, 32, 24, 16), package="lc3"),
    Scenario(
        name="noise_moving",
        category="noise_other",
        help="MS-SNSD, 10 dB up and down",
        source="Aksenova",
        function=add_moving_noise,
        parameter="snr_db",
        severities=SNR_DB,
        bank="noise",
        has_snr=True,
    ),
    Scenario("agc", "capture", "level control, most gain", "ITU-T G.169", agc, "gain_db", (10, 20, 30, 40)),
    Scenario("odd_rate", "capture", "to F Hz and back, linear", "J. O. Smith", odd_rate, "rate_hz", ODD_HZ),
    Scenario(
        "trim_start", "capture", "beginning cut off", "Freeman 1989", trim_start, "cut_ms", CUT_MS, cuts_start=True
    ),
    Scenario("trim_end", "capture", "end cut off", "Freeman 1989", trim_end, "cut_ms", CUT_MS),
    Scenario("fast", "extreme", "SoX tempo F 30", "Aksenova", tempo, "factor", (2.25, 2.5, 2.75, 3.0), stretches=True),
    Scenario("slow", "extreme", "SoX tempo F 30", "Aksenova", tempo, "factor", (0.45, 0.4, 0.35, 0.3), stretches=True),
    Scenario("quiet", "extreme", "attenuation, then 16 bits", "Aksenova", attenuate, "loss_db", (20, 35, 50, 60)),
    Scenario("silence", "reject", "digital silence", "Aksenova", environment.silence, has_speech=False),
    Scenario(
        "noise_only", "reject", "MS-SNSD recording alone", "Aksenova", environment.only, bank="noise", has_speech=False
    ),
    Scenario("music_only", "reject", "MUSAN music alone", "Aksenova", environment.only, bank="music", has_speech=False),
    # AequeVox: 8 transformations x 5 levels, least to most destructive, and one amplitude beyond them
    _aeq("amplitude", effects.amplitude, "factor", 0.5, 0.4, 0.3, 0.2, 0.1, what="amplitude x F"),
    _aeq("amplitude_up", effects.amplitude, "factor", 2.0, what="amplitude x 2"),
    _aeq("clipping", effects.clipping, "level", 0.05, 0.04, 0.03, 0.02, 0.01, what="clipped, rescaled"),
    _aeq("drop", effects.drop_chunks, "percent", 5, 10, 15, 20, 25, what="20 ms chunks silenced"),
    _aeq("frame", effects.drop_share, "chunk_ms", 10, 20, 30, 40, 50, what="10 % of chunks silenced"),
    _aeq("highpass", effects.butterworth_highpass, "corner_hz", 500, 600, 700, 800, 900, what="Butterworth, order 2"),
    _aeq("lowpass", effects.butterworth_lowpass, "corner_hz", 900, 800, 700, 600, 500, what="Butterworth, order 2"),
    _aeq("noise", gaussian, "snr_db", 10, 8, 6, 4, 2, what="white noise at an SNR", has_snr=True),
    _aeq("scale", effects.slow_down, "factor", 0.9, 0.8, 0.7, 0.6, 0.5, what="slower, pitch falls", stretches=True),
    # the filters as AequeVox' code runs them, forward and backward; its listeners rated these
    _aeq_code("hp", effects.zero_phase_highpass, 500, 600, 700, 800, 900),
    _aeq_code("lp", effects.zero_phase_lowpass, 900, 800, 700, 600, 500),
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


def attacks(table: Mapping[str, Scenario] = SCENARIOS) -> list[Scenario]:
    """The scenarios that `srb attack` makes."""
    return [scenario for scenario in table.values() if scenario.category.startswith("adv_")]
