"""`srb compare A B`: from two run folders to a verdict that can be trusted."""

import json
import random

import pytest

from speech_robust_bench.cli.main import main
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.scoring.aggregate import ConfigCounts
from speech_robust_bench.scoring.compare import compare
from speech_robust_bench.scoring.runs import open_run
from speech_robust_bench.scoring.scoring import align

CONFIGS = {
    "en_clean": ("clean", None, 0.02),
    "en_noise_sev1": ("noise_env", "en_clean", 0.1),
    "en_noise_sev2": ("noise_env", "en_clean", 0.2),
    "en_echo_sev1": ("spatial", "en_clean", 0.1),
    "en_accent": ("accent", "en_clean", 0.1),
}
SAID = [" ".join(random.Random(i).choices("abcdefghij", k=12)) for i in range(120)]


def with_errors(text, wer, rng):
    return " ".join("x" if rng.random() < wer else word for word in text.split())


def write_run(folder, model, factor=1.0, seed=0, configs=CONFIGS, attacks=True):
    """A run as `srb run` leaves it; `factor` multiplies the error rate in all scenarios but clean speech."""
    rng = random.Random(seed)
    folder.mkdir()
    configs = dict(configs)
    if attacks:
        configs[f"en_pgd_sev1-{model}"] = ("adv_us", "en_clean", 0.5)
    about = {"model": model, "configs": {}}
    for config, (category, source, wer) in configs.items():
        prefix = "cv" if category == "accent" else "ls"
        wer = wer * (factor if source else 1)
        with open(folder / f"{config}.jsonl", "w") as file:
            for i, text in enumerate(SAID):
                line = {
                    "id": f"{prefix}-{i}",
                    "speaker": f"s{i % 10}",
                    "text": text,
                    "pred_text": with_errors(text, wer, rng),
                }
                file.write(json.dumps(line) + "\n")
        about["configs"][config] = {"category": category, "source": source}
    (folder / "run.json").write_text(json.dumps(about))
    return folder


@pytest.fixture
def runs(tmp_path):
    return write_run(tmp_path / "good", "good", 0.5, seed=1), write_run(tmp_path / "poor", "poor", 1.0, seed=2)


def test_the_better_one_is_found_and_both_orders_agree(runs, capsys):
    assert main(["compare", *map(str, runs), "--json"]) == 0
    forth = json.loads(capsys.readouterr().out)
    assert main(["compare", *map(str, reversed(runs)), "--json"]) == 0
    back = json.loads(capsys.readouterr().out)
    rows = {row["name"]: row for row in forth["rows"]}
    assert set(rows) == {"noise_env", "spatial", "accent", "adv_us", "overall", "adversarial"}
    assert rows["noise_env"]["better"] == "a"
    assert rows["noise_env"]["measure"] == "nwerd"
    assert rows["adv_us"]["measure"] == "werd"
    assert {row["name"]: row["better"] for row in back["rows"]}["noise_env"] == "b"
    assert [row["difference"] for row in back["rows"]] == pytest.approx([-row["difference"] for row in forth["rows"]])
    assert (forth["a"], forth["normaliser"], forth["difficulty_table"]) == ("good", "srb-paper-1", "paper-table3")


def test_table_fits_the_terminal_and_names_what_is_missing(runs, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    (runs[0] / "en_echo_sev1.jsonl").unlink()
    assert main(["compare", *map(str, runs), "--resample", "speakers"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 90
    assert "en_echo_sev1" in out
    assert "sfx" in out  # a category of the paper that nobody ran
    assert "20 speakers, 240 clips" in " ".join(out.split())  # ten of LibriSpeech's and ten of the recordings'


def test_a_recogniser_is_not_better_than_itself(runs):
    counts = open_run(runs[0]).counts()
    rows = compare(counts, counts, replicates=100)
    assert all(row.difference == 0 and row.p == 1 and row.better() is None for row in rows)


def test_false_alarms_are_as_rare_as_promised():
    """Two recognisers with the same true error rate: at most about 5 % of families have any "significant" row."""
    alarms, trials, ids = 0, 60, [str(i) for i in range(40)]
    rng = random.Random(5)
    said = SAID[:40]
    clean = ConfigCounts("en_clean", "clean", ids, align(said, said))
    for _ in range(trials):
        pair = [
            [clean]
            + [
                ConfigCounts(name, category, ids, align(said, [with_errors(t, 0.2, rng) for t in said]), "en_clean")
                for name, category in (
                    ("en_noise_sev1", "noise_env"),
                    ("en_echo_sev1", "spatial"),
                    ("en_bass_sev1", "sfx"),
                )
            ]
            for _ in range(2)
        ]
        alarms += any(row.better() for row in compare(*pair, replicates=300))
    assert alarms <= 8  # 60 x 0.05 = 3 expected; more than 8 has a chance below 1 %


def test_clips_that_failed_count_as_nothing_heard(tmp_path):
    folder = write_run(tmp_path / "m", "m")
    lines = [json.loads(line) for line in (folder / "en_clean.jsonl").read_text().splitlines()]
    lines[0] |= {"pred_text": None, "error": "out of memory"}
    (folder / "en_clean.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    read = open_run(folder).read("en_clean")
    assert read.failed == 1
    place = read.column("id").index(lines[0]["id"])
    assert read.count().counts.deletions[place] == 12


def test_bad_runs_are_one_clear_error(runs, tmp_path, capsys):
    def message(*arguments):
        assert main(["compare", *map(str, arguments)]) == 2
        return capsys.readouterr().err

    assert "is not a run folder, it has no run.json" in message(tmp_path, runs[1])
    other = write_run(tmp_path / "other", "other", configs={"es_clean": ("clean", None, 0.1)}, attacks=False)
    assert "no config in common" in message(runs[0], other)
    only_clean = write_run(tmp_path / "clean", "clean", configs={"en_clean": ("clean", None, 0.1)}, attacks=False)
    assert "nothing to compare" in message(runs[0], only_clean)
    short = (runs[1] / "en_noise_sev1.jsonl").read_text().splitlines()
    (runs[1] / "en_noise_sev1.jsonl").write_text("\n".join(short[:100]) + "\n")
    assert "en_noise_sev1: the two runs are not on the same clips, 20 are in one only" in message(*runs)
    (runs[1] / "en_noise_sev1.jsonl").write_text("not json\n")
    assert "en_noise_sev1.jsonl" in message(*runs)


def test_other_references_are_refused():
    one, two = (
        [
            ConfigCounts("en_clean", "clean", ["1"], align([said], [said])),
            ConfigCounts("en_noise_sev1", "noise_env", ["1"], align([said], ["a"]), "en_clean"),
        ]
        for said in ("a b", "a b c")
    )
    with pytest.raises(UserError, match="different references"):
        compare(one, two)


def test_clips_without_speech_are_no_comparison(tmp_path):
    """They have no error rate: a word for silence would be a WERD in the thousands, and one row more to correct for."""
    configs = {**CONFIGS, "en_silence": ("reject", "en_clean", 0.9)}
    runs = [write_run(tmp_path / name, name, seed=seed, configs=configs) for seed, name in enumerate(("a", "b"))]
    rows = compare(*([run.read(config).count() for config in run.configs] for run in map(open_run, runs)))
    assert "reject" not in {row.name for row in rows}


def test_of_many_missing_configs_a_few_are_named(runs, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    more = {f"en_{name}_sev{n}": ("sfx", "en_clean", 0.1) for name in ("bass", "treble") for n in (1, 2, 3, 4)}
    large = write_run(tmp_path / "large", "large", configs={**CONFIGS, **more})
    assert main(["compare", str(runs[0]), str(large)]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("* without")]
    assert line.count(",") == 4
    assert line.endswith("and 10 more (--json names all)")


def test_by_scenario_it_says_where_one_helps_and_where_it_hurts(tmp_path, capsys):
    """`front` halves the errors in noise and doubles those of the echo; elsewhere both are alike."""
    plain = write_run(tmp_path / "plain", "plain", seed=1, attacks=False)
    changed = {name: (c, s, {"noise_env": w / 2, "spatial": 2.5 * w}.get(c, w)) for name, (c, s, w) in CONFIGS.items()}
    front = write_run(tmp_path / "front", "front", seed=1, configs=changed, attacks=False)
    assert main(["compare", str(front), str(plain), "--by", "scenario", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert list(rows) == ["en_clean", "accent", "echo", "noise"]
    assert {name: row["better"] for name, row in rows.items()} == {
        "en_clean": None,
        "accent": None,
        "echo": "b",
        "noise": "a",
    }
    assert rows["en_clean"]["measure"] == "wer"
    assert rows["noise"]["measure"] == "werd"
    assert rows["noise"]["configs"] == 2
    assert main(["compare", str(front), str(plain), "--by", "config"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "front in place of plain helps: noise_sev1" in shown
    assert "front in place of plain hurts: echo_sev1" in shown
