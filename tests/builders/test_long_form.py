"""Whole recordings as clips: TED talks and AMI meetings, with their segments as references, scored without times."""

import json

import numpy as np
import pyarrow.parquet as pq
import soundfile

import speech_robust_bench as srb_api
from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.build import build
from speech_robust_bench.builders.corpora import open_corpus
from speech_robust_bench.builders.corpora.conversations import TEST_MEETINGS
from speech_robust_bench.builders.plan import plan
from speech_robust_bench.core.engines import Inline


def sound(path, duration_s, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(len(path.name)).uniform(-0.3, 0.3, round(duration_s * 16_000))
    soundfile.write(path, noise, 16_000, **options)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def talks(root):
    test = root / "legacy" / "test"
    for talk, seconds in (("Ann_2010", 6.0), ("Bob_2011", 4.0)):
        sound(test / "sph" / f"{talk}.sph", seconds, format="NIST", subtype="PCM_16")
    write(
        test / "stm" / "Ann_2010.stm",
        "Ann_2010 1 inter_segment_gap 0.0 1.0 <o,,unknown> ignore_time_segment_in_scoring\n"
        "Ann_2010 1 Ann 1.0 2.5 <o,f0,female> it 's the first\n"
        "Ann_2010 1 inter_segment_gap 2.5 3.0 <o,,unknown> ignore_time_segment_in_scoring\n"
        "Ann_2010 1 Ann 3.0 5.0 <o,f0,female> and the second <unk>\n"
        "Ann_2010 1 inter_segment_gap 5.0 6.0 <o,,unknown> ignore_time_segment_in_scoring\n",
    )
    write(test / "stm" / "Bob_2011.stm", "Bob_2011 1 Bob 0.5 3.5 <o,f0,male> one two three four five\n")
    return root


def test_a_talk_goes_from_its_first_segment_to_its_last(tmp_path):
    corpus = open_corpus(talks(tmp_path), "en", "tedliumlong")
    ann, bob = corpus.utterances
    assert (ann.id, ann.text, ann.speaker, ann.gender) == ("Ann_2010", "it's the first and the second", "Ann", "female")
    assert len(ann.load()) == 4 * 16_000
    assert ann.audio.segments == ((0.0, 1.5, "Ann", "it's the first"), (2.0, 4.0, "Ann", "and the second"))
    assert len(bob.load()) == 3 * 16_000
    assert not corpus.derivatives_allowed
    assert corpus.problems == []


def test_built_run_and_scored_as_one_text(tmp_path):
    sources = {("en", "tedliumlong"): str(talks(tmp_path / "TED"))}
    configs = ("en-tedliumlong_clean", "en-tedliumlong_echo_sev1")
    build(plan(configs, sources), sources, tmp_path / "srb", Inline(), lambda what, count: lambda n: None, Banks())
    rows = pq.read_table(next((tmp_path / "srb" / configs[0]).glob("*.parquet"))).drop_columns("audio").to_pylist()
    assert json.loads(rows[0]["parameters"])["segments"][1] == [2.0, 4.0, "Ann", "and the second"]

    def transcribe(clips, rate, language):  # the second segment of Ann's talk is missed, and Bob's has one word more
        return ["it's the first" if len(clip) > 3.5 * rate else "one two three four five six" for clip in clips]

    run = srb_api.evaluate(transcribe, configs[1], data=tmp_path / "srb", progress=False)
    clean = run.json["configs"][configs[0]]
    assert (clean["deletions"], clean["insertions"], clean["hits"]) == (3, 1, 8)
    assert run.score(configs[0], "wer").value == 36.3636  # 4 of 11 words


def test_a_meeting_has_the_words_of_everybody_in_order(tmp_path):
    meeting = TEST_MEETINGS[0]
    speakers = "".join(
        f'<speaker nxt_agent="{agent}" global_name="{name}" channel="{channel}"/>'
        for channel, (agent, name) in enumerate((("A", "FEE005"), ("B", "MIO036")))
    )
    write(
        tmp_path / "corpusResources" / "meetings.xml",
        f'<root xmlns:nite="http://nite.sourceforge.net/"><meeting observation="{meeting}">{speakers}</meeting></root>',
    )
    said = {"A": [("hello all", 0.5, 1.5), ("yes", 3.0, 3.2)], "B": [("okay", 1.0, 2.0)]}
    for agent, segments in said.items():
        words, parts, number = [], [], 0
        for text, start, end in segments:
            first = number
            for word in text.split():
                words.append(f'<w nite:id="{agent}{number}">{word}</w>')
                number += 1
            reference = f"{meeting}.{agent}.words.xml#id({agent}{first})..id({agent}{number - 1})"
            parts.append(
                f'<segment nite:id="s{agent}{first}" transcriber_start="{start}" transcriber_end="{end}">'
                f'<nite:child href="{reference}"/></segment>'
            )
        head = '<root xmlns:nite="http://nite.sourceforge.net/">'
        write(tmp_path / "words" / f"{meeting}.{agent}.words.xml", f"{head}{''.join(words)}</root>")
        write(tmp_path / "segments" / f"{meeting}.{agent}.segments.xml", f"{head}{''.join(parts)}</root>")
    sound(tmp_path / meeting / "audio" / f"{meeting}.Array1-01.wav", 4.0)
    corpus = open_corpus(tmp_path, "en", "amilong")
    (clip,) = corpus.utterances
    assert (clip.id, clip.text, clip.speaker, clip.gender) == (f"{meeting}.Array1-01", "hello all okay yes", None, None)
    assert [segment[2] for segment in clip.audio.segments] == ["FEE005", "MIO036", "FEE005"]
    assert clip.audio.start_s == 0.5
    assert clip.audio.end_s == 3.2
    assert len(corpus.problems) == len(TEST_MEETINGS) - 1  # the meetings that are not there
    turns = [["FEE005", 0.0, 1.0, "hello all"], ["MIO036", 0.5, 1.5, "okay"], ["FEE005", 2.5, 2.7, "yes"]]
    corpus_of, skip = {"en-amilong": tmp_path}, {"data_options": srb_api.DataOptions(on_error="skip")}
    srb_api.build("en-amilong_clean", corpus=corpus_of, out=tmp_path / "srb", **skip, progress=False)
    for config, where in (
        ("en-amilong_clean", {"data": tmp_path / "srb"}),
        ("en-amilong_gaussian_sev1", {"corpus": corpus_of}),
        ("en-amilong_tempo_up_sev1", {"corpus": corpus_of}),
    ):
        out = tmp_path / "runs" / config
        how = {"out": out, "progress": False, **skip}
        srb_api.run(lambda clips, rate, language: ["hello"] * len(clips), config, **where, **how)
        (line,) = map(json.loads, (out / f"{config}.jsonl").read_text().splitlines())
        assert line.get("turns") == (None if "tempo" in config else turns)  # nobody tells where they are then
