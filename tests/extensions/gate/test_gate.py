"""The gate: which clips it plays, when it ends and with what verdict, and how it says so."""

import json
import shutil
import subprocess
import sys
import zlib
from collections import Counter
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import speech_robust_bench as srb
from speech_robust_bench.builders.suites import load as load_suite
from speech_robust_bench.cli.main import main
from speech_robust_bench.core.names import parse
from speech_robust_bench.extensions.gate.result import GateOptions
from speech_robust_bench.extensions.gate.run import baseline_counts
from speech_robust_bench.extensions.gate.units import choose_configs, decide, plan
from speech_robust_bench.scoring.aggregate import ConfigCounts
from speech_robust_bench.scoring.runs import open_run
from speech_robust_bench.scoring.scoring import Counts

CATEGORY = {"clean": "clean", "noise": "noise_env", "rir": "spatial", "silence": "reject", "pgd": "adv_us"}
CONFIGS = ("clean", "noise_sev3", "noise_sev4", "rir_sev2", "silence", "pgd_sev1-main")
WORDS = 10


def write_run(
    folder: Path,
    errors: dict[str, float],
    clips: int = 300,
    seed: int = 0,
    name: str | None = None,
    speakers: int | None = None,
) -> Path:
    """A run whose clips lose each of ten words with a probability, by config; a config not named loses one in five."""
    folder.mkdir(parents=True)
    entries = {}
    for number, level in enumerate(CONFIGS):
        config = f"en-tiny_{level}"
        rng = np.random.default_rng([seed, number])
        lost = rng.binomial(WORDS, errors.get(level, 0.2), clips)
        lines = [
            {
                "id": f"c{clip:03d}",
                "text": " ".join(["word"] * WORDS),
                "pred_text": " ".join(["word"] * (WORDS - count)),
                "speaker": speakers and f"s{clip % speakers}",
            }
            for clip, count in enumerate(lost)
        ]
        (folder / f"{config}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        category = CATEGORY[parse(config).scenario]
        source = None if level == "clean" else "en-tiny_clean"
        entries[config] = {"category": category, "source": source, "content_sha256": f"hash of {level}"}
    about = {"model": name or folder.name, "data": "nowhere", "configs": entries}
    (folder / "run.json").write_text(json.dumps(about))
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    write_run(folder / "main", {})
    write_run(folder / "same", {}, seed=1)
    write_run(folder / "twin", {})
    write_run(folder / "twice", dict.fromkeys(CONFIGS, 0.4), seed=2)
    write_run(folder / "slightly", dict.fromkeys(CONFIGS, 0.208), seed=3)
    write_run(folder / "rooms", {"rir_sev2": 0.5}, seed=4)
    return folder


def new_model(clips: int, batch_size: int | None = None) -> dict:
    """Arguments of `srb.gate` for a model that is called "new"."""
    model_options = srb.ModelOptions("new", batch_size=batch_size)
    return {"gate_options": srb.GateOptions(clips=clips), "model_options": model_options}


def gate(runs: Path, new: str, **options) -> srb.GateResult:
    configs, suite = options.pop("configs", ()), options.pop("suite", None)
    how = {"gate_options": srb.GateOptions(**{"clips": 600, **options}), "model_options": srb.ModelOptions(suite=suite)}
    return srb.gate(srb.read_run(runs / new), runs / "main", configs, **how)


def test_a_clear_case_ends_at_the_first_look(runs):
    worse = gate(runs, "twice")
    assert (worse.verdict, worse.passed) == ("worse", False)
    assert len(worse.looks) == 1
    assert worse.looks[0].clips == 60
    assert worse.planned == 600
    assert worse.looks[0].low > 0
    twin = gate(runs, "twin")
    assert (twin.verdict, twin.passed, len(twin.looks)) == ("not worse", True, 1)
    assert twin.whole.rise == 0


def test_another_model_that_is_as_good_passes(runs):
    result = gate(runs, "same")
    assert result.passed
    assert result.whole.old_wer == pytest.approx(20, abs=2)


def test_too_few_clips_leave_it_undecided(runs):
    result = gate(runs, "slightly", clips=60)
    assert (result.verdict, result.passed) == ("undecided", True)
    assert result.looks[-1].clips == 60
    assert result.needed is not None
    assert result.needed > 60
    assert f"about {result.needed} clips would find it" in result.summary()


def test_a_rise_can_be_allowed(runs):
    assert gate(runs, "twice", worst=1.5).passed
    assert not gate(runs, "twice", worst=0.5).passed


def test_the_table_says_where(runs):
    result = gate(runs, "rooms")
    assert not result.passed
    assert [part.name for part in result.worse_in()] == ["spatial"]
    assert [part.name for part in result.worse_in("config")] == ["en-tiny_rir_sev2"]
    assert result.of_kind("category")[0].name == "spatial"
    rooms = next(line for line in result.rows() if line[0] == "spatial")
    assert rooms[-1] == "worse"
    assert next(line for line in result.rows() if line[0] == "noise_env")[-1] == ""


def test_configs_and_clips_take_turns(runs):
    main = open_run(runs / "main")
    configs = choose_configs(main)
    chosen = plan(main.counts(configs), 450)
    assert chosen.clips == 450
    assert len(chosen.versions) == 300
    assert {len(unit) for unit in chosen.versions} == {1, 2}
    assert set(Counter(config for unit in chosen.versions for config, _ in unit).values()) == {150}
    assert all(len({clip for _, clip in unit}) == 1 for unit in chosen.versions)
    assert chosen.looks == (30, 60, 105, 150, 225, 300)
    assert plan(main.counts(configs), 450) == chosen
    assert plan(main.counts(configs), 450, seed=1) != chosen
    assert len(plan(main.counts(configs), 40).versions) == 40


def test_which_configs_are_played(runs):
    main = open_run(runs / "main")
    hard = ["en-tiny_noise_sev3", "en-tiny_noise_sev4", "en-tiny_rir_sev2"]
    assert choose_configs(main) == hard
    assert choose_configs(main, ["*"]) == ["en-tiny_clean", *hard]
    with pytest.raises(ValueError, match="no config 'en-tiny_silence' in"):
        choose_configs(main, ["en-tiny_silence"])


def test_a_suite_takes_its_clips_of_the_baseline(runs, tmp_path):
    suite, whole = load_suite("lite"), open_run(runs / "main")
    counts = baseline_counts(whole, suite=suite)
    assert [config.config for config in counts] == [
        f"en-tiny_{level}" for level in CONFIGS if level in suite.members and level != "clean"
    ]
    for config in counts:
        assert set(config.ids) == suite.choose(config.config, [f"c{clip:03d}" for clip in range(300)])
        assert 0 < len(config.ids) < 300
    part = tmp_path / "part"
    shutil.copytree(runs / "main", part)
    for config in counts:
        path = part / f"{config.config}.jsonl"
        lines = [line for line in path.read_text().splitlines() if json.loads(line)["id"] in config.ids]
        path.write_text("".join(line + "\n" for line in lines))
    again = baseline_counts(open_run(part), suite=suite)
    assert [(config.config, config.ids) for config in again] == [(config.config, config.ids) for config in counts]
    result = gate(runs, "rooms", suite="lite")
    assert result.looks[-1].clips <= sum(len(config.ids) for config in counts)
    with pytest.raises(ValueError, match="either configs or a suite"):
        gate(runs, "rooms", suite="lite", configs="en-tiny_noise_sev3")


def test_false_alarms_and_power_over_many_models(runs):
    """Binomial errors at WER 20: a rise of a fifth is found nearly always, and none hardly ever."""
    baseline = open_run(runs / "main")
    counts = baseline.counts(choose_configs(baseline))
    alarms = {}
    for share in (0.2, 0.24):
        rng = np.random.default_rng(7)
        results = [
            decide("new", "main", counts, GateOptions(clips=600), partial(random_errors, rng, share)) for _ in range(60)
        ]
        alarms[share] = sum(not result.passed for result in results)
    assert alarms[0.2] <= 7  # 3 are expected at 5 %, and more than 7 come once in a hundred times
    assert alarms[0.24] >= 57


def random_errors(rng, share, pairs):
    """The errors of a model that loses this share of its words."""
    return {pair: int(rng.binomial(WORDS, share)) for pair in pairs}


def test_the_test_is_over_speakers_where_they_are_known(tmp_path):
    write_run(tmp_path / "main", {}, speakers=12)
    write_run(tmp_path / "new", dict.fromkeys(CONFIGS, 0.4), seed=5, speakers=12)
    by_speaker, by_clip = gate(tmp_path, "new"), gate(tmp_path, "new", resample="clips")
    assert (by_speaker.unit, by_clip.unit) == ("speakers", "clips")
    assert by_speaker.verdict == by_clip.verdict == "worse"
    assert by_speaker.whole.units == by_speaker.looks[-1].units == 11
    assert by_speaker.rows()[0][1:3] == ("11", str(by_speaker.whole.clips))
    assert f"{by_speaker.whole.clips} of 600 clips of 11 speakers" in by_speaker.summary()
    assert "(test over clips)" in by_clip.summary()


def test_speakers_too_few_for_a_test_are_refused(tmp_path, capsys):
    write_run(tmp_path / "main", {}, speakers=4)
    write_run(tmp_path / "new", {}, seed=5, speakers=4)
    command = ["gate", "--baseline", str(tmp_path / "main"), "--run", str(tmp_path / "new")]
    assert main(command) == 2
    assert "of 4 speakers, and a test over speakers needs 5" in capsys.readouterr().err
    assert main([*command, "--resample", "clips"]) == 0


def test_strong_speaker_effects_raise_no_false_alarms():
    """Each speaker has an exponential factor for each model; a test over clips fails a quarter of such models."""
    rng, alarms = np.random.default_rng(1), Counter()
    ids, speakers = [f"c{clip}" for clip in range(150)], [f"s{clip % 10}" for clip in range(150)]
    for trial in range(60):
        old, new = rng.poisson(np.tile(2 * rng.exponential(1, (2, 10)), 15))
        counts = Counts(np.full(150, 20), *np.zeros((2, 150), int), old)
        config = ConfigCounts("en_noise_sev3", "noise_env", ids, counts, None, speakers)
        errors = {(config.config, clip): int(count) for clip, count in zip(ids, new, strict=True)}
        for over in ("speakers", "clips"):
            options = GateOptions(clips=150, seed=trial, resample=over)
            result = decide("new", "old", [config], options, lambda pairs, e=errors: {pair: e[pair] for pair in pairs})
            alarms[over] += not result.passed
    assert alarms["speakers"] <= 7  # 3 are expected at 5 %, and more than 7 come once in a hundred times
    assert alarms["clips"] > 15


@pytest.mark.parametrize("degenerate", ["main", "new"])
def test_no_verdict_where_a_model_is_degenerate(degenerate, tmp_path):
    """Silent on clean speech, and as good as the other in noise."""
    for name, seed in (("main", 0), ("new", 1)):
        write_run(tmp_path / name, {"clean": 1.0} if name == degenerate else {}, seed=seed)
    with pytest.raises(ValueError, match=f"no verdict, because of {degenerate}: WER on clean speech is 100.0"):
        gate(tmp_path, "new")


def test_junit_is_read_by_what_reads_junit(runs):
    suites = ElementTree.fromstring(gate(runs, "rooms").junit(1.5))
    suite = suites.find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("3", "2")
    failed = [case.get("name") for case in suite.iter("testcase") if case.find("failure") is not None]
    assert failed == ["noisy WER", "spatial"]
    passed = ElementTree.fromstring(gate(runs, "twin").junit())
    assert passed.get("failures") == "0"
    assert not list(passed.iter("failure"))


def test_markdown_shows_names_as_they_are(runs, tmp_path):
    new = write_run(tmp_path / "new", {}, seed=5, name="a|b <i>\x1b[31m")
    text = srb.gate(srb.read_run(new), runs / "main").markdown()
    assert r"a\|b \<i\>" in text
    assert "\x1b" not in text
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in table} == {8}


def test_the_command_exits_with_0_1_or_2(runs, tmp_path, capsys):
    base = ["gate", "--baseline", str(runs / "main")]
    files = ["--junit", str(tmp_path / "gate.xml"), "--markdown", str(tmp_path / "gate.md")]
    assert main([*base, "--run", str(runs / "twice"), *files]) == 1
    assert "FAILED: significantly less robust" in capsys.readouterr().out
    assert "gate failed" in (tmp_path / "gate.md").read_text()
    assert ElementTree.parse(tmp_path / "gate.xml").getroot().get("failures") == "3"
    assert main([*base, "--run", str(runs / "same"), "en-tiny_noise_*", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["passed"] is True
    assert {part["name"] for part in told["parts"] if part["kind"] == "category"} == {"noise_env"}
    for wrong, message in (
        (["--run", str(runs / "nothing")], "is not a run folder"),
        (["--run", str(runs / "same"), "en_noise_sev3"], "no config 'en_noise_sev3'"),
        (
            ["--run", str(runs / "same"), "--worst", "0.2", "--detect", "0.1"],
            "worst 0.2 is not between 0 and detect, 0.1",
        ),
        (["--run", str(runs / "same"), "--clips", "1"], "1 clips are too few"),
        (["--model", "python:nothing:here"], "nowhere"),
    ):
        assert main([*base, *wrong]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1


def test_a_run_on_other_data_or_with_clips_missing_is_refused(runs, tmp_path):
    new = write_run(tmp_path / "new", {}, clips=200)
    with pytest.raises(ValueError, match="which the baseline has; run it on the same clips"):
        srb.gate(srb.read_run(new), runs / "main")
    about = json.loads((new / "run.json").read_text())
    about["configs"]["en-tiny_noise_sev3"]["content_sha256"] = "another"
    (new / "run.json").write_text(json.dumps(about))
    with pytest.raises(ValueError, match=r"en-tiny_noise_sev3\.jsonl was made from other data"):
        srb.gate(srb.read_run(new), runs / "main")


def fail(folder: Path, config: str, clips: int) -> None:
    """Make the first clips of a config failed ones, as an endpoint that is down leaves them."""
    path = folder / f"{config}.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines[:clips]:
        line |= {"pred_text": None, "error": "503 Service Unavailable"}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize("which", ["main", "new"])
def test_clips_that_failed_are_no_errors_of_the_recogniser(which, tmp_path, capsys):
    for name in ("main", "new"):
        write_run(tmp_path / name, {}, clips=100)
    fail(tmp_path / which, "en-tiny_rir_sev2", 20)
    command = ["gate", "--baseline", str(tmp_path / "main"), "--run", str(tmp_path / "new"), "--clips", "300"]
    assert main(command) == 2
    assert capsys.readouterr().err == (
        f"srb gate: {tmp_path / which}: 20 of the 300 clips to compare failed, the first with: "
        "503 Service Unavailable; try them again with `srb run --retry-failed`\n"
    )
    assert main([*command, "en-tiny_noise_*"]) == 0  # clips that are not compared may have failed


def test_a_failed_clip_without_a_reason_is_told_too(tmp_path, runs):
    write_run(tmp_path / "new", {})
    path = tmp_path / "new" / "en-tiny_rir_sev2.jsonl"
    path.write_text(path.read_text().replace('"pred_text": "word', '"pred_text": null, "was": "word'))
    with pytest.raises(ValueError, match=r"clips to compare failed, the first with: no reason given; try them again"):
        srb.gate(srb.read_run(tmp_path / "new"), runs / "main")


def test_the_table_shows_names_and_numbers_whole(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for name, seed in (("main", 0), ("new", 1)):
        folder = write_run(tmp_path / name, {} if name == "main" else dict.fromkeys(CONFIGS, 0.9), seed=seed)
        for path in folder.iterdir():
            path.write_text(path.read_text().replace("en-tiny_", "en-commonvoicespontaneous_"))
            path.rename(path.with_name(path.name.replace("en-tiny_", "en-commonvoicespontaneous_")))
    assert main(["gate", "--baseline", str(tmp_path / "main"), "--run", str(tmp_path / "new")]) == 1
    table = capsys.readouterr().out.split("FAILED")[0]
    assert "…" not in table
    assert max(map(len, table.splitlines())) <= 80
    result = srb.gate(srb.read_run(tmp_path / "new"), tmp_path / "main")
    names = "".join(line.split("  ")[0].strip() for line in table.splitlines())
    for name, *cells in result.rows():
        assert name in names
        assert any(" ".join(line.split()).endswith(" ".join(cells).strip()) for line in table.splitlines())


def lossy(share: float, seed: int, heard: list[int]):
    """A recogniser that knows the demo clips by their length and loses a share of the words, as the samples decide."""
    texts = {len(row["audio"]["array"]): row["text"] for row in srb.load("en-demo_clean")}

    def transcribe(clips, rate, language):
        heard.append(len(clips))
        rngs = [np.random.default_rng([seed, zlib.crc32(clip.tobytes())]) for clip in clips]
        return [
            " ".join(word for word in texts[len(clip)].split() if rng.random() >= share)
            for clip, rng in zip(clips, rngs, strict=True)
        ]

    return transcribe


@pytest.fixture(scope="module")
def demo_baseline(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "main"
    srb.evaluate(
        lossy(0.2, 0, []),
        ["en-demo_gain_sev1", "en-demo_gain_sev2"],
        out=folder,
        run_options=srb.RunOptions("main"),
        progress=False,
    )
    return folder


def test_a_model_hears_no_more_clips_than_needed(demo_baseline, tmp_path):
    heard: list[int] = []
    new = lossy(0.7, 1, heard)
    result = srb.gate(new, demo_baseline, out=tmp_path / "new", progress=False, **new_model(60))
    assert not result.passed
    assert sum(heard) == result.looks[-1].clips < 60
    stored = open_run(tmp_path / "new")
    assert sum(len(stored.read(config).lines) for config in stored.configs) == sum(heard)
    assert json.loads((tmp_path / "new" / "gate.json").read_text())["verdict"] == "worse"


def test_an_interrupted_gate_resumes(demo_baseline, tmp_path):
    heard: list[int] = []
    whole, calls = lossy(0.25, 1, heard), []

    def dies(clips, rate, language):
        calls.append(len(clips))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return whole(clips, rate, language)

    how = {"out": tmp_path / "new", "progress": False, **new_model(40, 4)}
    with pytest.raises(KeyboardInterrupt):
        srb.gate(dies, demo_baseline, **how)
    before = sum(heard)
    assert 0 < before < 40
    result = srb.gate(whole, demo_baseline, **how)
    assert sum(heard) == result.looks[-1].clips
    assert srb.gate(whole, demo_baseline, **how) == result
    assert sum(heard) == 2 * result.looks[-1].clips


def test_failed_clips_are_no_verdict_and_tried_again(demo_baseline, tmp_path):
    heard: list[int] = []
    whole, calls = lossy(0.25, 1, heard), []

    def fails_at_times(clips, rate, language):
        calls.append(len(clips))
        if len(calls) in (2, 3):
            raise ConnectionError("connection refused")
        return whole(clips, rate, language)

    how = {"out": tmp_path / "new", "progress": False, **new_model(40, 1)}
    told = (
        r"^new: 2 of the \d+ clips to compare failed, the first with: .*connection refused; gate it again, which tries"
    )
    with pytest.raises(ValueError, match=told):
        srb.gate(fails_at_times, demo_baseline, **how)
    assert json.loads((tmp_path / "new" / "gate.json").read_text())["verdict"] is None
    before = sum(heard)
    result = srb.gate(whole, demo_baseline, **how)
    assert before > 0
    assert sum(heard) == result.looks[-1].clips


def test_progress_counts_the_clips_that_there_are(demo_baseline, tmp_path, monkeypatch):
    totals = []
    monkeypatch.setattr("rich.progress.Progress.add_task", lambda bar, label, total: totals.append(total) or 0)
    monkeypatch.setattr("rich.progress.Progress.advance", lambda *_: None)
    result = srb.gate(lossy(0.7, 1, []), demo_baseline, model_options=srb.ModelOptions("new"))
    assert totals[-1] == result.planned < 1500


def test_a_folder_with_a_run_is_left_alone(demo_baseline):
    with pytest.raises(ValueError, match="holds a run that no gate has made"):
        srb.gate(lossy(0.2, 1, []), demo_baseline, out=demo_baseline, progress=False)


def test_data_that_has_changed_is_refused(demo_baseline, tmp_path):
    baseline = tmp_path / "main"
    shutil.copytree(demo_baseline, baseline, ignore=shutil.ignore_patterns(".locks"))
    about = json.loads((baseline / "run.json").read_text())
    for entry in about["configs"].values():
        entry["rows_sha256"] = "another"
    (baseline / "run.json").write_text(json.dumps(about))
    with pytest.raises(ValueError, match="was made from other data than --corpus en-demo"):
        srb.gate(lossy(0.2, 1, []), baseline, progress=False)
    assert about.pop("perturbed") == {"corpora": {"en-demo": None, "es-demo": None}}
    (baseline / "run.json").write_text(json.dumps(about))
    with pytest.raises(ValueError, match="does not say on what data it was run; name it with --data or --corpus"):
        srb.gate(lossy(0.2, 1, []), baseline, progress=False)


PLUGIN_TEST = """
import speech_robust_bench as srb

def test_robust(srb_gate):
    assert srb_gate(srb.read_run({same!r}), baseline={main!r}, gate_options=srb.GateOptions(worst=0.05)).passed

def test_not_robust(srb_gate):
    srb_gate(srb.read_run({twice!r}), baseline={main!r})
"""


def test_the_pytest_fixture_fails_a_test_with_the_table(runs, tmp_path):
    names = {name: str(runs / name) for name in ("main", "same", "twice")}
    (tmp_path / "test_gate.py").write_text(PLUGIN_TEST.format(**names))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_gate.py"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout
    assert "1 failed, 1 passed" in told
    assert "### Robustness gate failed: twice against main" in told
    assert "pytest_plugin.py" not in told  # the fault is the model's, not the plugin's
