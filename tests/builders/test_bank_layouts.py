"""Banks on disk: the published folder layouts, plain folders, and what happens when something is missing."""

import itertools
import json
import os
import pickle
import random

import numpy as np
import pytest
import soundfile

import speech_robust_bench as srb
from speech_robust_bench.builders.banks import LAYOUTS, Banks, open_bank
from speech_robust_bench.builders.banks import recording as recordings
from speech_robust_bench.builders.live_config import LiveConfigs
from speech_robust_bench.builders.manifests import MANIFEST
from speech_robust_bench.builders.plan import DEMO
from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.seeding import clip_rng

RATE = 16_000
CLIP = np.zeros(RATE, np.float32)


def tone(hz=440.0, seconds=0.2, rate=RATE, channels=1):
    wave = 0.5 * np.sin(2 * np.pi * hz * np.arange(round(seconds * rate)) / rate)
    return np.stack([wave] + [np.zeros_like(wave)] * (channels - 1), axis=1)


def write(path, samples=None, rate=RATE):
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, tone() if samples is None else samples, rate)


def decaying(rt60_s, seconds=0.5, seed=0):
    time_s = np.arange(round(seconds * RATE)) / RATE
    noise = np.random.default_rng(seed).standard_normal(len(time_s)) * np.exp(-6.908 * time_s / rt60_s)
    return np.concatenate([np.zeros(200), 0.9 * noise / np.abs(noise).max()])


def draw(bank, clip_id=0, severity=1, clip=CLIP):
    return bank.draw(clip_rng("test", str(clip_id), bank.kind, severity), clip=clip, severity=severity)


ROOM_INFO = """\
small-Room001 5.0 4.0 3.0 2.5 2.0 1.5 0.80
small-Room002 5.0 4.0 3.0 2.5 2.0 1.5 0.30
small-Room003 5.0 4.0 3.0 2.5 2.0 1.5 0.20
small-Room004 5.0 4.0 3.0 2.5 2.0 1.5 0.15
"""
REAL = ("air_type1_air_binaural_booth_0_3.wav", "RWCP_type4_rir_p20r.wav", "RWCP_type1_rir_circle_e1c_imp120.wav",
        "air_type1_air_phone_corridor_hhp.wav", "RVB2014_type1_rir_largeroom1_far_angla.wav")  # fmt: skip
ISOTROPIC = ("RVB2014_type1_noise_largeroom1_1.wav", "RWCP_type5_noise_cirline_ofc_ambient2.wav")


@pytest.fixture
def everything(tmp_path):
    """A parent folder that holds all five data sets in their published layouts."""
    root = tmp_path / "data"
    for name in ("Babble_1.wav", "AirConditioner_2.wav"):
        write(root / "MS-SNSD" / "noise_test" / name)
        write(root / "MS-SNSD" / "noise_train" / f"train_{name}")
    for name in ("1-100032-A-0.wav", "5-9032-A-0.wav"):
        write(root / "ESC-50-master" / "audio" / name, tone(rate=44_100), 44_100)
    (root / "ESC-50-master" / "meta").mkdir()
    (root / "ESC-50-master" / "meta" / "esc50.csv").write_text("filename,fold,target\n")
    for part, folder in (("noise", "free-sound"), ("music", "fma"), ("speech", "librivox")):
        for number in ("0000", "0001"):
            write(root / "musan" / part / folder / f"{part}-{folder}-{number}.wav")
        (root / "musan" / part / folder / "LICENSE").write_text("as published")
    for part in ("tr", "cv", "tt"):
        write(root / "wham_noise" / part / f"{part}_050a0501.wav", tone(channels=2))
    simulated = root / "RIRS_NOISES" / "simulated_rirs" / "smallroom"
    lines = []
    for room in range(1, 5):
        for place in (1, 2):
            name = f"Room{room:03d}-{place:05d}.wav"
            write(simulated / f"Room{room:03d}" / name, decaying(0.1, seed=room))
            lines.append(f"--rir-id small-{name[:-4]} --room-id small-Room{room:03d} RIRS_NOISES/.../{name}")
    (simulated / "room_info").write_text(ROOM_INFO)
    (simulated / "rir_list").write_text("\n".join(lines) + "\n")
    real = root / "RIRS_NOISES" / "real_rirs_isotropic_noises"
    for name in REAL + ISOTROPIC:
        write(real / name, decaying(0.2))
    listed = "".join(f"--rir-id {i} --room-id {i} RIRS_NOISES/{real.name}/{n}\n" for i, n in enumerate(REAL))
    (real / "rir_list").write_text(listed)
    write(root / "RIRS_NOISES" / "pointsource_noises" / "noise-free-sound-0000.wav")
    return root


EXPECTED = {
    "noise": ("MS-SNSD", {"AirConditioner_2.wav", "Babble_1.wav"}),
    "noise_esc50": ("ESC-50", {"1-100032-A-0.wav", "5-9032-A-0.wav"}),
    "noise_musan": ("MUSAN", {"free-sound/noise-free-sound-0000.wav", "free-sound/noise-free-sound-0001.wav"}),
    "noise_wham": ("WHAM!", {"tt_050a0501.wav"}),
    "music": ("MUSAN", {"fma/music-fma-0000.wav", "fma/music-fma-0001.wav"}),
    "speech": ("MUSAN", {"librivox/speech-librivox-0000.wav", "librivox/speech-librivox-0001.wav"}),
    "rir": ("OpenSLR 28", {f"smallroom/Room00{r}/Room00{r}-0000{p}.wav" for r in (1, 2, 3, 4) for p in (1, 2)}),
    "real_rir": ("OpenSLR 28", set(REAL)),
}


@pytest.mark.parametrize("kind", LAYOUTS)
def test_each_kind_finds_its_data_set_among_all_of_them(everything, kind):
    title, files = EXPECTED[kind]
    bank = open_bank(kind, everything)
    assert title in bank.title
    assert set(bank.files) == files
    assert draw(bank).name in files


@pytest.mark.parametrize(
    ("kind", "folder"),
    [
        ("noise", "MS-SNSD"),
        ("noise", "MS-SNSD/noise_test"),
        ("noise_esc50", "ESC-50-master"),
        ("noise_esc50", "ESC-50-master/audio"),
        ("noise_musan", "musan"),
        ("music", "musan/music"),
        ("speech", "musan"),
        ("noise_wham", "wham_noise"),
        ("noise_wham", "wham_noise/tt"),
        ("rir", "RIRS_NOISES"),
        ("rir", "RIRS_NOISES/simulated_rirs"),
        ("real_rir", "RIRS_NOISES"),
        ("real_rir", "RIRS_NOISES/real_rirs_isotropic_noises"),
    ],
)
def test_a_data_set_or_its_part_may_be_given_itself(everything, kind, folder):
    assert set(open_bank(kind, everything / folder).files) == EXPECTED[kind][1]


def test_isotropic_noises_are_left_out_without_the_list_too(everything):
    real = everything / "RIRS_NOISES" / "real_rirs_isotropic_noises"
    (real / "rir_list").unlink()
    assert set(open_bank("real_rir", everything).files) == set(REAL)


def test_another_data_set_is_no_substitute(everything):
    with pytest.raises(UserError, match=r"musan.*noise_test/ of MS-SNSD.*https://github.com/microsoft/MS-SNSD"):
        open_bank("noise", everything / "musan")


@pytest.mark.parametrize("kind", LAYOUTS)
def test_a_missing_folder_names_itself_and_where_to_get_the_data(tmp_path, kind):
    with pytest.raises(UserError) as caught:
        open_bank(kind, tmp_path / "nowhere")
    message = str(caught.value)
    assert str(tmp_path / "nowhere") in message
    assert LAYOUTS[kind].title in message
    assert LAYOUTS[kind].url in message
    assert "\n" not in message


def test_an_empty_folder_and_one_without_audio(tmp_path):
    (tmp_path / "notes.txt").write_text("no audio here")
    for kind in LAYOUTS:
        with pytest.raises(UserError, match="no audio in it"):
            open_bank(kind, tmp_path)


def test_an_unknown_kind():
    with pytest.raises(UserError, match="noise_esc50"):
        open_bank("noises")


def test_any_folder_of_audio(tmp_path):
    for name in ("b.flac", "deep/er/a.ogg", "C.WAV", "deep/d.mp3"):
        write(tmp_path / name)
    write(tmp_path / ".hidden.wav")
    bank = open_bank("noise", tmp_path)
    assert bank.files == ("C.WAV", "b.flac", "deep/d.mp3", "deep/er/a.ogg")
    for i in range(20):
        recording = draw(bank, i)
        assert 0.05 < np.abs(recording.samples).max() < 1


def test_the_order_of_the_file_system_does_not_matter(tmp_path, monkeypatch):
    names = [f"sub{i % 3}/noise_{i:02d}.wav" for i in range(12)]
    for folder, seed in (("one", 1), ("two", 2)):
        shuffled = names.copy()
        random.Random(seed).shuffle(shuffled)
        for name in shuffled:
            write(tmp_path / folder / name)
    first, second = open_bank("noise", tmp_path / "one"), open_bank("noise", tmp_path / "two")
    assert [draw(first, i).name for i in range(30)] == [draw(second, i).name for i in range(30)]

    walk = os.walk
    monkeypatch.setattr(os, "walk", lambda *a, **k: [(f, d, sorted(n)[::-1]) for f, d, n in walk(*a, **k)][::-1])
    assert open_bank("noise", tmp_path / "one").files == first.files


def test_another_rate_is_resampled_not_stretched(tmp_path):
    write(tmp_path / "esc.wav", tone(1000, 0.5, 44_100), 44_100)
    samples = draw(open_bank("noise", tmp_path)).samples
    assert len(samples) == RATE // 2
    spectrum = np.abs(np.fft.rfft(samples))
    assert np.argmax(spectrum) * 2 == 1000


def test_the_first_channel_is_kept(tmp_path):
    left, right = tone(500), tone(900)
    write(tmp_path / "stereo.wav", np.concatenate([left, right], axis=1))
    samples = draw(open_bank("noise", tmp_path)).samples
    np.testing.assert_allclose(samples, left[:, 0], atol=1e-4)


def test_a_long_file_is_decoded_as_far_as_the_clip_needs(tmp_path):
    long = np.random.default_rng(0).uniform(-0.5, 0.5, 100 * RATE)
    write(tmp_path / "long.wav", long)
    bank = open_bank("music", tmp_path)
    whole = soundfile.read(tmp_path / "long.wav", dtype="float32")[0]
    for seconds, expected in ((1, 30), (30, 30), (31, 60), (99, 100)):
        samples = draw(bank, clip=np.zeros(seconds * RATE, np.float32)).samples
        assert len(samples) == expected * RATE
        np.testing.assert_array_equal(samples, whole[: len(samples)])


def test_a_broken_file_is_named(tmp_path):
    (tmp_path / "text.wav").write_text("not audio")
    with pytest.raises(UserError, match=r"text\.wav"):
        draw(open_bank("noise", tmp_path))
    (tmp_path / "text.wav").unlink()
    write(tmp_path / "empty.wav", np.zeros(0))
    with pytest.raises(UserError, match=r"empty\.wav"):
        draw(open_bank("noise", tmp_path))


def test_recordings_are_decoded_once_within_bounds(tmp_path, monkeypatch):
    for i in range(4):
        write(tmp_path / f"{i}.wav", tone(seconds=1))
    monkeypatch.setattr(recordings, "_cache", recordings.ByteCache(2 * 4 * RATE))
    decoded = []
    monkeypatch.setattr(recordings, "read", lambda path, mix: decoded.append(path.name) or np.ones(RATE, np.float32))
    for name in ("0.wav", "0.wav", "1.wav", "0.wav", "2.wav", "0.wav", "1.wav"):
        recordings.decode(tmp_path / name)
    assert decoded == ["0.wav", "1.wav", "2.wav", "1.wav"]
    assert recordings._cache.bytes == 2 * 4 * RATE


@pytest.mark.parametrize("kind", ["noise", "rir", "real_rir"])
def test_folder_banks_can_be_sent_to_workers(everything, kind):
    bank = open_bank(kind, everything)
    copy = pickle.loads(pickle.dumps(bank))
    for i in range(5):
        ours, theirs = draw(bank, i, 2), draw(copy, i, 2)
        assert ours.name == theirs.name
        assert ours.measures == theirs.measures
        np.testing.assert_array_equal(ours.samples, theirs.samples)


def test_simulated_rooms_are_binned_by_sabine(everything):
    bank = open_bank("rir", everything)
    # V = 60, S = 94: 0.161 * 60 / 94 = 0.10277 s over the absorption
    expected = {1: 0.128, 2: 0.343, 3: 0.514, 4: 0.685}
    for severity, rt60_s in expected.items():
        recording = draw(bank, 5, severity)
        assert recording.name.startswith(f"smallroom/Room00{severity}/")
        assert recording.measures == {"rt60_s": rt60_s}


def test_room_info_may_have_a_heading_comments_and_commas(everything):
    info = everything / "RIRS_NOISES" / "simulated_rirs" / "smallroom" / "room_info"
    before = open_bank("rir", everything).values
    heading = "room length width height x y z absorption\n# a comment\n\n"
    info.write_text(heading + ROOM_INFO.replace(" ", ", "))
    assert open_bank("rir", everything).values == before


def test_real_rooms_have_the_severity_of_the_published_data(everything):
    bank = open_bank("real_rir", everything)
    named = {bank.files[i]: severity for severity, members in enumerate(bank.bins.members, 1) for i in members}
    assert named == dict(zip(REAL, (1, 2, 3, 4, 4), strict=True))
    assert draw(bank, 0, 1).measures == {"srmr": 11.007}


def test_plain_rooms_are_measured(tmp_path):
    for rt60_s in (0.1, 0.3, 0.6, 0.9, 1.2):
        write(tmp_path / f"room_{rt60_s}.wav", decaying(rt60_s, 1.5))
    simulated, real = open_bank("rir", tmp_path), open_bank("real_rir", tmp_path)
    assert simulated.values == pytest.approx([0.1, 0.3, 0.6, 0.9, 1.2], rel=0.1)
    assert list(real.values) == sorted(real.values, reverse=True)
    assert draw(simulated, 0, 4).name == draw(real, 0, 4).name == "room_1.2.wav" or len(real.bins.members[3]) > 1


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_a_few_rooms_still_make_four_severities(tmp_path, count):
    for i in range(count):
        write(tmp_path / f"room_{i}.wav", decaying(0.1 * 1.2**i))
    bank = open_bank("rir", tmp_path)
    drawn = [{draw(bank, i, severity).measures["rt60_s"] for i in range(20)} for severity in (1, 2, 3, 4)]
    assert all(drawn)
    for mild, harsh in itertools.pairwise(drawn):
        assert min(mild) <= min(harsh)
        assert max(mild) <= max(harsh)
    with pytest.raises(UserError, match="severity 5"):
        draw(bank, 0, 5)


def delayed(direct_ms, length=4000):
    """A response with its direct sound at a time, and the room after it."""
    response = np.zeros(length, np.float32)
    response[direct_ms * 16 :] = decaying(0.1, seed=1)[: length - direct_ms * 16] * 0.1
    response[direct_ms * 16] = 0.9
    return response


@pytest.mark.parametrize(("milliseconds", "version"), [((20, 30, 40), "1"), ((20, 3, 40), "2")])
def test_only_rooms_that_begin_early_make_a_later_version(tmp_path, milliseconds, version):
    for number, direct_ms in enumerate(milliseconds):
        write(tmp_path / "mine" / f"{number}.wav", delayed(direct_ms))
    banks = Banks(rir_dir=tmp_path / "mine")
    for name in ("rir", "real_rir"):
        assert SCENARIOS[name].edition_with(banks.version) == version
        assert SCENARIOS[name].edition_with(Banks().version) == "1"
    assert SCENARIOS["gaussian"].edition_with(banks.version) == "1"
    chain = SCENARIOS["street_call"].edition_with(banks.version)
    assert chain == ("1" if version == "1" else "1, rir 2")


@pytest.mark.parametrize(("direct_ms", "version"), [(20, None), (3, "2")])
def test_the_version_is_in_manifests_and_runs(tmp_path, direct_ms, version):
    write(tmp_path / "mine" / "room.wav", delayed(direct_ms))
    data = srb.DataOptions(rir_dir=tmp_path / "mine")
    srb.build("en-demo_rir_sev1", out=tmp_path / "srb", limit=1, data_options=data, progress=False)
    manifest = json.loads((tmp_path / "srb" / "en-demo_rir_sev1" / MANIFEST).read_text())
    assert manifest.get("scenario_version") == version
    (config,) = LiveConfigs(DEMO, Banks(rir_dir=tmp_path / "mine"), limit=1).configs(["en-demo_rir_sev1"])
    assert (config.about.scenario_version or None) == version
    assert config.about.fingerprint == manifest["fingerprint"]
