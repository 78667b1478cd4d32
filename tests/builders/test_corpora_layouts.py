"""Each corpus' reader on a small copy of its published layout."""

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from speech_robust_bench.builders.corpora import open_corpus
from speech_robust_bench.builders.corpora.conversations import TEST_MEETINGS, seconds
from speech_robust_bench.builders.corpora.read_speech import clean
from speech_robust_bench.core.errors import UserError


def sound(path, duration_s=1.0, rate=16_000, channels=1, **options):
    """White noise, so that any two stretches of it differ."""
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(len(path.name)).uniform(-0.5, 0.5, (round(duration_s * rate), channels))
    soundfile.write(path, noise, rate, **options)
    return path


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


# LibriSpeech


@pytest.fixture
def librispeech(tmp_path):
    root = tmp_path / "data" / "LibriSpeech"
    write(
        root / "SPEAKERS.TXT",
        "; Some pieces of information regarding the speakers\n;ID  |SEX| SUBSET           |MINUTES| NAME\n"
        "61   | M | test-clean       | 8.08  | Paul-Gabriel Wiener\n"
        "121  | F | test-clean       | 8.13  | Nikolle Doolin\n",
    )
    for clip in ("61/70968/61-70968-0000", "61/70968/61-70968-0001", "121/121726/121-121726-0000"):
        sound(root / "test-clean" / f"{clip}.flac")
    write(
        root / "test-clean/61/70968/61-70968.trans.txt",
        "61-70968-0000 HE BEGAN A CONFUSED COMPLAINT AGAINST THE WIZARD\n61-70968-0001 GIVE NOT SO EARNEST A MIND\n",
    )
    write(root / "test-clean/121/121726/121-121726.trans.txt", "121-121726-0000 ALSO A POPULAR CONTRIVANCE\n")
    sound(root / "dev-clean/84/121123/84-121123-0000.flac")
    write(root / "dev-clean/84/121123/84-121123.trans.txt", "84-121123-0000 GO DO YOU HEAR\n")
    return root


@pytest.mark.parametrize("below", ["..", ".", "test-clean"])
def test_librispeech_from_a_parent_the_release_or_the_split(librispeech, below):
    corpus = open_corpus(librispeech / below, "en")
    assert [(clip.id, clip.speaker, clip.gender) for clip in corpus] == [
        ("121-121726-0000", "121", "female"),
        ("61-70968-0000", "61", "male"),
        ("61-70968-0001", "61", "male"),
    ]
    assert corpus.utterances[1].text == "HE BEGAN A CONFUSED COMPLAINT AGAINST THE WIZARD"
    assert (corpus.name, corpus.licence, corpus.utterances[0].licence) == ("librispeech", "CC-BY-4.0", "CC-BY-4.0")
    assert corpus.problems == []


def test_librispeech_problems(librispeech):
    (librispeech / "test-clean/61/70968/61-70968-0001.flac").unlink()
    sound(librispeech / "test-clean/121/121726/121-121726-0001.flac")
    corpus = open_corpus(librispeech, "en")
    assert len(corpus.utterances) == 2
    said = "\n".join(map(str, corpus.problems))
    assert "61-70968-0001: transcript without audio" in said
    assert "121-121726-0001.flac: audio without a transcript" in said


# Multilingual LibriSpeech


@pytest.fixture
def mls(tmp_path):
    for language, text in (("spanish", "y el rey dijo así"), ("french", "il était une fois")):
        root = tmp_path / f"mls_{language}"
        for split in ("train", "dev", "test"):
            sound(root / split / "audio/8688/9057/8688_9057_000000.flac")
            write(root / split / "transcripts.txt", f"8688_9057_000000\t{text} ({split})\n")
            write(root / split / "segments.txt", "8688_9057_000000\thttp://www.archive.org/x.mp3\t401.76\t417.57\n")
        write(
            root / "metainfo.txt",
            " SPEAKER   |   GENDER   | PARTITION  |  MINUTES   |  BOOK ID   |         TITLE         |   CHAPTER   \n"
            "  8688     |     F      |    test    |   18.332   |    9057    | Cuentos de la Alhambra | Leyenda   \n",
        )
    return tmp_path


@pytest.mark.parametrize("below", [".", "mls_spanish", "mls_spanish/test"])
def test_mls_picks_the_language_and_the_test_split(mls, below):
    (clip,) = open_corpus(mls / below, "es")
    assert (clip.id, clip.text) == ("8688_9057_000000", "y el rey dijo así (test)")
    assert (clip.speaker, clip.gender, clip.language, clip.corpus) == ("8688", "female", "es", "mls")


def test_mls_dev_if_it_alone_is_given(mls):
    (clip,) = open_corpus(mls / "mls_spanish" / "dev", "es")
    assert clip.text == "y el rey dijo así (dev)"


def test_mls_without_the_language(mls):
    with pytest.raises(UserError, match="Multilingual LibriSpeech test in 'de'"):
        list(open_corpus(mls, "de"))


# TED-LIUM


@pytest.fixture
def tedlium(tmp_path):
    root = tmp_path / "TEDLIUM_release-3"
    for part in ("legacy/test", "legacy/dev", "speaker-adaptation/test"):
        sound(root / part / "sph/AimeeMullins_2009P.sph", 20.0, format="NIST", subtype="PCM_16")
        write(
            root / part / "stm/AimeeMullins_2009P.stm",
            "AimeeMullins_2009P 1 AimeeMullins_2009P 0.00 3.50 <o,,unknown> ignore_time_segment_in_scoring\n"
            "AimeeMullins_2009P 1 AimeeMullins_2009P 3.50 5.25 <o,f0,female> i 'd like to share <unk> with you\n"
            "AimeeMullins_2009P 1 AimeeMullins_2009P 5.25 9.00 <o,f0,female> a discovery that i made\n",
        )
    sound(root / "legacy/test/sph/Old_2008.sph", 5.0, format="NIST", subtype="PCM_16")
    write(root / "legacy/test/stm/Old_2008.stm", "Old_2008 1 Old_2008 0.1 1.1 <F0_M> don 't give 'em that\n")
    return root


@pytest.mark.parametrize("below", ["..", ".", "legacy", "legacy/test"])
def test_tedlium_segments(tedlium, below):
    corpus = open_corpus(tedlium / below, "en", "tedlium")
    assert [(clip.id, clip.text, clip.gender) for clip in corpus] == [
        ("AimeeMullins_2009P-0000350-0000525", "i'd like to share with you", "female"),
        ("AimeeMullins_2009P-0000525-0000900", "a discovery that i made", "female"),
        ("Old_2008-0000010-0000110", "don't give 'em that", "male"),
    ]
    assert corpus.licence == "CC-BY-NC-ND-3.0"
    assert not corpus.derivatives_allowed


def test_tedlium_dev_if_it_alone_is_given(tedlium):
    corpus = open_corpus(tedlium / "legacy" / "dev", "en", "tedlium")
    assert {Path(clip.audio.path).parents[1].name for clip in corpus} == {"dev"}


def test_tedlium_reads_only_the_segment(tedlium):
    clip = open_corpus(tedlium, "en", "tedlium").utterances[0]
    talk, _ = soundfile.read(tedlium / "legacy/test/sph/AimeeMullins_2009P.sph", dtype="float32")
    assert np.array_equal(clip.load(), talk[56_000:84_000])


def test_tedlium_problems(tedlium):
    (tedlium / "legacy/test/sph/Old_2008.sph").unlink()
    sound(tedlium / "legacy/test/sph/Extra.sph", format="NIST", subtype="PCM_16")
    with (tedlium / "legacy/test/stm/AimeeMullins_2009P.stm").open("a") as stm:
        stm.write("AimeeMullins_2009P 1 x from to <o,f0,female> words\n")
        stm.write("AimeeMullins_2009P 1 x 19.0 25.0 <o,f0,female> beyond the end\n")
    corpus = open_corpus(tedlium, "en", "tedlium")
    said = [str(problem) for problem in (corpus.utterances, corpus.problems)[1]]
    assert len(said) == 3
    assert "Old_2008.stm: transcript without audio" in said[1]
    assert "AimeeMullins_2009P.stm:4: not an STM line" in said[0]
    assert "Extra.sph: audio without a transcript" in said[2]
    with pytest.raises(UserError, match=r"AimeeMullins_2009P\.sph: 25\.00 s lies beyond its end at 20\.00 s"):
        corpus.utterances[-1].load()


def test_clitics_and_markup():
    assert (
        clean("it 's nine o 'clock {NOISE} we 're late(2) <sil> aren 't we") == "it's nine o'clock we're late aren't we"
    )


# Common Voice


@pytest.fixture
def commonvoice(tmp_path):
    root = tmp_path / "cv-corpus-17.0-2024-03-15" / "en"
    header = "client_id path sentence_id sentence sentence_domain up_votes down_votes age gender accents variant locale"
    rows = [
        ("1", '"Quoted" words', "twenties", "male_masculine", "India and South Asia (India, Pakistan, Sri Lanka)"),
        ("2", "An American", "thirties", "female_feminine", "United States English"),
        ("3", "Nobody knows", "", "", ""),
        ("4", "Both", "", "do_not_wish_to_say", "United States English,Filipino"),
        ("5", "Brum brum", "fifties", "non-binary", "England English"),
    ]
    lines = ["\t".join(header.split())]
    for number, sentence, age, gender, accent in rows:
        name = f"common_voice_en_{number}.mp3"
        sound(root / "clips" / name, rate=32_000, format="MP3")
        lines.append("\t".join(("c" * 128, name, "s", sentence, "", "2", "0", age, gender, accent, "", "en")))
    write(root / "test.tsv", "\n".join(lines) + "\n")
    write(root.parent / "es" / "test.tsv", "\n".join(lines[:1]) + "\n")
    return root


@pytest.mark.parametrize("below", ["..", "."])
def test_commonvoice(commonvoice, below):
    clips = open_corpus(commonvoice / below, "en", "commonvoice").utterances
    assert [(clip.id[-1], clip.age, clip.gender) for clip in clips] == [
        ("1", "twenties", "male"),
        ("2", "thirties", "female"),
        ("3", None, None),
        ("4", None, None),
        ("5", "fifties", "non-binary"),
    ]
    assert clips[0].text == '"Quoted" words'
    assert clips[0].licence == "CC0-1.0"
    assert abs(len(clips[0].load()) - 16_000) < 2_000  # MP3 pads its ends


def test_accent_takes_clear_clips_of_accents_but_american(commonvoice):
    """1 and 5 have such an accent; 1 is speech, 5 noise, which no listening test would rate 3.4."""
    quality = pytest.importorskip("speech_robust_bench.builders.quality")
    pytest.importorskip("speechmos", reason="speechmos is not installed")
    speech = next(clip for clip in open_corpus(None, "en", "demo") if clip.id == "en-heart-01").load()
    soundfile.write(commonvoice / "clips/common_voice_en_1.mp3", speech, 16_000, format="MP3")
    (commonvoice / "clips/common_voice_en_6.mp3").write_bytes(b"broken")
    with (commonvoice / "test.tsv").open("a") as file:
        file.write("\t".join(("c", "common_voice_en_6.mp3", "", "x", "", "", "", "", "", "Welsh", "", "en")) + "\n")
    corpus = open_corpus(commonvoice, "en", scenario="accent")
    (clip,) = corpus.utterances
    assert (clip.id, clip.accent[:5]) == ("common_voice_en_1", "India")
    assert quality.p808(clip.load()) >= 3.4
    (problem,) = corpus.problems
    assert problem.where == "common_voice_en_6"


def test_commonvoice_clip_missing(commonvoice):
    (commonvoice / "clips/common_voice_en_3.mp3").unlink()
    corpus = open_corpus(commonvoice, "en", "commonvoice")
    assert len(corpus.utterances) == 4
    assert "common_voice_en_3.mp3: transcript without audio" in str(corpus.problems[0])
    assert "line 4" in str(corpus.problems[0])


# AMI

NITE = 'xmlns:nite="http://nite.sourceforge.net/"'
XML = '<?xml version="1.0" encoding="ISO-8859-1" standalone="yes"?>\n'


@pytest.fixture
def ami(tmp_path):
    """Meeting ES2004a as the annotations describe it: agent A wears headset 1, B headset 0."""
    sound(tmp_path / "amicorpus/ES2004a/audio/ES2004a.Headset-0.wav", 10.0)
    sound(tmp_path / "amicorpus/ES2004a/audio/ES2004a.Headset-1.wav", 10.0)
    sound(tmp_path / "amicorpus/ES2004a/audio/ES2004a.Array1-01.wav", 10.0)
    notes = tmp_path / "ami_public_manual_1.6.2"
    write(
        notes / "corpusResources/meetings.xml",
        f'{XML}<nite:root {NITE}><meeting nite:id="m1" observation="ES2004a" duration="10.0">'
        '<speaker nite:id="s1" nxt_agent="A" global_name="MEO015" channel="1" role="PM"/>'
        '<speaker nite:id="s2" nxt_agent="B" global_name="FEE013" channel="0" role="ID"/></meeting>'
        '<meeting observation="IS1007d"><speaker nxt_agent="A" channel="5"/></meeting></nite:root>',
    )
    for agent, words in (("A", "Okay so we 'll _ start now"), ("B", "Mm-hmm yes I think so")):
        parts = [
            f'<w nite:id="ES2004a.{agent}.words{number}" starttime="{number}" endtime="{number}.5">{word}</w>'
            for number, word in enumerate(words.split())
        ]
        parts.insert(1, f'<w nite:id="ES2004a.{agent}.words90" starttime="1" endtime="1" punc="true">,</w>')
        parts.insert(2, f'<vocalsound nite:id="ES2004a.{agent}.words91" type="laugh"/>')
        write(notes / f"words/ES2004a.{agent}.words.xml", f"{XML}<nite:root {NITE}>{''.join(parts)}</nite:root>")
    spans = {"A": [("words0", "words6", 0.5, 4.25), ("words1", "words2", 5, 6)], "B": [("words0", "words4", 6, 8)]}
    for agent, rows in spans.items():
        body = "".join(
            f'<segment nite:id="ES2004a.sync.{start}" channel="0" transcriber_start="{start}" transcriber_end="{end}">'
            f'<nite:child href="ES2004a.{agent}.words.xml#id(ES2004a.{agent}.{first})..id(ES2004a.{agent}.{last})"/>'
            "</segment>"
            for first, last, start, end in rows
        )
        body += '<segment nite:id="empty" channel="0" transcriber_start="8.5" transcriber_end="9"/>'
        write(notes / f"segments/ES2004a.{agent}.segments.xml", f"{XML}<nite:root {NITE}>{body}</nite:root>")
    return tmp_path


def test_ami_headset(ami):
    corpus = open_corpus(ami, "en", scenario="social_ami_near")
    assert [(clip.id, clip.text, clip.gender) for clip in corpus] == [
        ("AMI_ES2004a_H00_FEE013_0000600_0000800", "Mm-hmm yes I think so", "female"),
        ("AMI_ES2004a_H01_MEO015_0000050_0000425", "Okay so we 'll _ start now", "male"),
    ]
    headset, _ = soundfile.read(ami / "amicorpus/ES2004a/audio/ES2004a.Headset-1.wav", dtype="float32")
    assert np.array_equal(corpus.utterances[1].load(), headset[8_000:68_000])


def test_ami_room_microphone(ami):
    clips = open_corpus(ami, "en", scenario="social_ami_far").utterances
    assert [clip.id for clip in clips] == [
        "AMI_ES2004a_SDM_FEE013_0000600_0000800",
        "AMI_ES2004a_SDM_MEO015_0000050_0000425",
    ]
    room, _ = soundfile.read(ami / "amicorpus/ES2004a/audio/ES2004a.Array1-01.wav", dtype="float32")
    assert np.array_equal(clips[0].load(), room[96_000:128_000])


def test_ami_says_which_test_meetings_are_missing(ami):
    (ami / "amicorpus/ES2004a/audio/ES2004a.Headset-0.wav").unlink()
    corpus = open_corpus(ami, "en", "ami")
    assert len(corpus.utterances) == 1
    missing = {problem.where for problem in corpus.problems}
    assert missing == {*TEST_MEETINGS} - {"ES2004a"} | {"ES2004a.Headset-0.wav"}
    assert len(TEST_MEETINGS) == 16


# CHiME-6


@pytest.fixture
def chime(tmp_path):
    root = tmp_path / "CHiME6"
    sound(root / "audio/eval/S01_P01.wav", 20.0, channels=2)
    sound(root / "audio/eval/S01_U02.CH1.wav", 20.0)
    lines = [
        ("0:00:01.50", "0:00:04.00", "P01", "U02", "Yeah [laughs] I'd like that."),
        ("0:00:04.00", "0:00:04.80", "P01", "U02", "far too short this"),
        ("0:00:05.00", "0:00:07.00", "P01", "U02", "[noise] Okay then"),
        ("0:00:08.00", "0:00:10.00", "P02", "U04", "Nobody has my recording"),
        ("0:00:10.00", "0:00:12.00", "P02", "U04", "And still nobody has it"),
    ]
    rows = [
        {"session_id": "S01", "start_time": start, "end_time": end, "speaker": speaker, "ref": ref, "words": words}
        for start, end, speaker, ref, words in lines
    ]
    rows.append({"session_id": "S01", "start_time": "0:00:13.00", "end_time": "0:00:14.00"})  # redacted
    write(root / "transcriptions/eval/S01.json", json.dumps(rows))
    return root


@pytest.mark.parametrize(
    ("scenario", "file", "missing"),
    [("near", "S01_P01.wav", "S01_P02.wav"), ("far", "S01_U02.CH1.wav", "S01_U04.CH1.wav")],
)
def test_chime(chime, scenario, file, missing):
    corpus = open_corpus(chime, "en", scenario=f"social_chime_{scenario}")
    (clip,) = corpus.utterances
    assert (clip.id, clip.text, clip.speaker) == ("S01_P01-0000150-0000400", "Yeah I'd like that.", "P01")
    recording, _ = soundfile.read(chime / "audio/eval" / file, dtype="float32", always_2d=True)
    assert np.array_equal(clip.load(), recording[24_000:64_000, 0])
    (problem,) = corpus.problems
    assert problem.where.endswith(missing)


def test_a_whole_party_has_everybody_on_one_array(chime):
    corpus = open_corpus(chime, "en", "chimelong")
    (party,) = corpus.utterances
    assert (party.id, party.speaker, corpus.problems) == ("S01_U02.CH1", None, [])
    assert [segment[2] for segment in party.audio.segments] == ["P01", "P01", "P01", "P02", "P02"]
    assert party.audio.segments[3] == (6.5, 8.5, "P02", "Nobody has my recording")
    assert len(party.load()) == pytest.approx(10.5 * 16_000)


def test_chime_clock():
    assert seconds("1:02:03.45") == pytest.approx(3723.45)
    assert seconds(12.5) == 12.5


# Common Voice 7.0 and SBCSAE, as OOD-ASR selects them


@pytest.mark.parametrize(
    ("language", "locale", "rows", "texts"),
    [
        (
            "es",
            "es",
            [("¿Dónde está, señor?", "mexicano"), ("Hola", "andino"), ("Nada", ""), ("Es しらゴ", "mexicano")],
            ["DÓNDE ESTÁ SEÑOR"],
        ),
        ("zh", "zh-CN", [("我 说「你好」。", ""), ("我 说 OK", ""), ("カ 我", "")], ["我说你好"]),
        ("ar", "ar", [("هل تسمعني؟", ""), ("Windows هل", "")], ["هل تسمعني"]),
    ],
)
def test_common_voice_7_as_s3prl_selects_it(tmp_path, language, locale, rows, texts):
    root = tmp_path / "cv-corpus-7.0-2021-07-21"
    header = "client_id path sentence up_votes down_votes age gender accent locale segment"
    for split in ("test", "train"):
        lines = ["\t".join(header.split())]
        for number, (sentence, accent) in enumerate(rows):
            name = f"common_voice_{locale}_{split}{number}.mp3"
            sound(root / locale / "clips" / name, rate=32_000, format="MP3")
            lines.append("\t".join(("c", name, sentence, "2", "0", "", "", accent, locale, "")))
        write(root / locale / f"{split}.tsv", "\n".join(lines) + "\n")
    assert [clip.text for clip in open_corpus(root, language, "cv7")] == texts
    (clip,) = open_corpus(root / locale / "train.tsv", language, "cv7")
    assert clip.id == f"common_voice_{locale}_train0"
    assert clip.language == language


TRN = """0.00 3.00\tLENORE: \t... So you don't need to go,
3.00 4.00\tborrow= equipment (H) from anybody.
4.00 6.50 LYNNE:\tWell,
6.00 7.00\t\tI know it.
8.00 9.00\t[two at] once
9.00 9.05\ttoo short
10.00\t11.50\tDORIS:\tYou're <X right X>
12.00\t13.00\tDORIS:\tthat's twenty-five.
14.00 15.00\tsaid XX here
16.00 40.00\tmuch too long to be one unit
40.00 41.00\t(TSK) .. %Uh ~Mary said so!
"""


def test_sbcsae_lines_that_overlap_or_are_uncertain_are_left_out(tmp_path):
    """The two lines from 4 to 7 s overlap, so neither is used, as in the published script."""
    root = tmp_path / "SBCSAE"
    for number in (1, 50, *range(54, 61)):
        write(root / "trn" / f"SBC{number:03}.trn", TRN if number in (1, 54) else "")
        sound(root / "mp3" / f"{number:02}.mp3", duration_s=45 if number == 54 else 1, rate=22_050, format="MP3")
    (root / "mp3/60.mp3").unlink()
    corpus = open_corpus(tmp_path, "en", "sbcsae")
    assert [(clip.id, clip.text) for clip in corpus] == [
        ("SBC054_000000-000300", "SO YOU DON'T NEED TO GO"),
        ("SBC054_000300-000400", "BORROW EQUIPMENT FROM ANYBODY"),
        ("SBC054_001200-001300", "THAT'S TWENTY FIVE"),
        ("SBC054_004000-004100", "UH MARY SAID SO"),
    ]
    assert [problem.where[-6:] for problem in corpus.problems] == ["60.mp3"]
    assert abs(len(next(iter(corpus)).load()) - 3 * 16_000) < 100
    assert not corpus.derivatives_allowed
    assert next(iter(open_corpus(root, "en", "sbcsaetrain"))).id == "SBC001_000000-000300"
