"""`srb report`: what is on the page, that nothing hostile gets through, and that a real browser opens it."""

from __future__ import annotations

import doctest
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import siegelslopes
from support.run_folders import TEXTS, write_run

from speech_robust_bench.cli.main import main
from speech_robust_bench.core.audio import encode_flac
from speech_robust_bench.report import charts, html, word_study
from speech_robust_bench.report.report_data import read_metadata
from speech_robust_bench.report.sections import overview, severities

GOOD = ["the quick brown fox", "jumps over the lazy dog", "and runs away", "from all of it at once"]
POOR = ["the box", "jumps over", "", "at once"]
HOSTILE = "<script>document.title='owned'</script> <img src=x onerror=alert(1)> & \"' {{body}}"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


@pytest.fixture
def runs(tmp_path) -> list[str]:
    levels = [f"{scenario}_sev{n}" for scenario in ("noise", "gaussian", "rir", "opus") for n in (1, 2, 3, 4)]
    hurt = [*GOOD[:2], HOSTILE, GOOD[3]]
    good = {"clean": GOOD, **dict.fromkeys(levels, hurt), "silence": ["", "", HOSTILE, ""]}
    poor = {"clean": GOOD, **dict.fromkeys(levels, POOR), "silence": [""] * 4}
    write_run(tmp_path / "good", "good & <b>bold</b>", good)
    write_run(tmp_path / "poor", "poor", poor)
    write_run(tmp_path / "middle", "middle", {**poor, "noise_sev1": GOOD})
    return [str(tmp_path / name) for name in ("good", "poor", "middle")]


def make(runs: list[str], tmp_path: Path, *more: str) -> str:
    out = tmp_path / "report.html"
    assert main(["report", *runs, "--out", str(out), *more]) == 0
    return out.read_text(encoding="utf-8")


class Tags(HTMLParser):
    """Every element of a page with its attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_every_section_is_there(runs, tmp_path):
    meta = tmp_path / "models.csv"
    meta.write_text("model,parameters,hours,architecture\npoor,39M,680000,seq2seq\nmiddle,1.5B,1000,CTC\n")
    page = make(runs, tmp_path, "--meta", str(meta))
    wanted = ["ranking", "categories", "heat", "perturbations", "curves", "trade-off", "correlates"]
    wanted += ["speakers", "words", "clips", "cards", "provenance"]
    assert re.findall(r'<section id="([\w-]+)"', page) == wanted


def test_loops_are_folded_and_their_share_is_told(tmp_path):
    """441 times one word in a clip of 4: 437 of all 437 inserted words are in the loop."""
    looping = {"clean": GOOD, "noise_sev1": ["more " * 441, *GOOD[1:]]}
    page = make([str(write_run(tmp_path / "m", "m", looping))], tmp_path)
    assert "“more” × 4" in page
    assert "more more" not in page
    assert "m: 100 % of its 437 inserted words are in loops" in page
    (told,) = re.findall(r"without them NWER is ([\d.]+) instead of ([\d.]+)", page)
    # 441 errors, and 4 without the loop, in 16 words, over the difficulty of noise at severity 1
    assert float(told[1]) / float(told[0]) == pytest.approx(441 / 4, rel=0.02)


def test_a_silent_model_is_on_no_pareto_front(runs, tmp_path):
    silent = {key: [""] * 4 for key in ("clean", "noise_sev1", "gaussian_sev1", "rir_sev1")}
    page = make([*runs, str(write_run(tmp_path / "mute", "mute", silent))], tmp_path)
    assert "mute is not ranked: WER on clean speech is 100.0, above 50" in page
    assert "No verdict on this recogniser: WER on clean speech is 100.0, above 50" in page
    plots = page[page.index('<section id="trade-off"') :]
    assert "mute" not in plots[: plots.index("</section>")]


def test_nothing_hostile_becomes_markup(runs, tmp_path):
    tags = Tags(make(runs, tmp_path)).found
    assert [attributes for tag, attributes in tags if tag == "script"] == [{}]
    assert not [tag for tag, _ in tags if tag in ("img", "b", "iframe", "object")]
    assert not [key for _, attributes in tags for key in attributes if key.startswith("on")]


def test_the_page_fetches_nothing(runs, tmp_path):
    page = make(runs, tmp_path)
    addresses = [v for _, attributes in Tags(page).found for k, v in attributes.items() if k in ("src", "href")]
    assert not [address for address in addresses if not str(address).startswith(("data:", "#"))]
    assert "url(" not in page
    assert "@import" not in page


def test_it_is_small_without_audio(runs, tmp_path):
    assert len(make(runs, tmp_path)) < 300_000


def write_audio(data: Path) -> None:
    hard = [f"en-tiny_{scenario}_sev{n}" for scenario in ("noise", "gaussian", "rir", "opus") for n in (1, 2, 3, 4)]
    for config in ("en-tiny_clean", *hard):
        (data / config).mkdir(parents=True)
        flac = encode_flac(np.zeros(1600, dtype=np.int16))
        rows = [{"id": i, "text": text, "audio": {"bytes": flac, "path": None}} for i, text in TEXTS.items()]
        pq.write_table(pa.Table.from_pylist(rows), data / config / "test-00000-of-00001.parquet")


def test_clips_can_be_listened_to(runs, tmp_path):
    write_audio(tmp_path / "srb")
    page = make(runs, tmp_path, "--data", str(tmp_path / "srb"), "--embed-audio", "1")
    players = [attributes["src"] for tag, attributes in Tags(page).found if tag == "audio"]
    assert len(players) == 2 * 3  # the worst clip of each of three models, and its original
    assert all(source.startswith("data:audio/flac;base64,ZkxhQ") for source in players)  # "fLaC"


def test_audio_without_data_is_a_mistake(runs, capsys):
    assert main(["report", *runs, "--embed-audio", "2"]) == 2
    assert "--data" in capsys.readouterr().err


def test_metadata_takes_the_ways_people_write_numbers(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text('Model,Params,Training_Hours,Arch\na,244M,"680,000",seq2seq\nb,1.5B,,\n')
    about = read_metadata(path)
    assert (about["a"].parameters, about["a"].hours, about["a"].architecture) == (244e6, 680_000, "seq2seq")
    assert (about["b"].parameters, about["b"].hours, about["b"].architecture) == (1.5e9, None, None)


@pytest.mark.parametrize(
    ("text", "said"), [("x,y\n1,2\n", "no column 'model'"), ("model,parameters\na,many\n", "'many'")]
)
def test_bad_metadata_is_one_line(runs, tmp_path, capsys, text, said):
    (tmp_path / "m.csv").write_text(text)
    assert main(["report", *runs, "--meta", str(tmp_path / "m.csv")]) == 2
    assert said in capsys.readouterr().err


def test_the_regression_line_shrugs_off_an_outlier():
    x = [1e6, 1e7, 1e8, 1e9, 1e10]
    y = [50.0, 40.0, 30.0, 20.0, 500.0]
    (start, low), (end, high) = severities.theil_sen_log(list(zip(x, y, strict=True)))
    assert (start, end) == (1e6, 1e10)
    slope = (high - low) / 4
    assert slope == pytest.approx(siegelslopes(y[:4], np.log10(x[:4])).slope, abs=5)  # without the outlier: -10
    assert severities.theil_sen_log([(1.0, 2.0), (2.0, 3.0)]) == []


@pytest.mark.parametrize("module", [html, charts, word_study, severities, overview])
def test_examples_in_the_documentation(module):
    assert doctest.testmod(module).failed == 0


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium to open the page with")
@pytest.mark.parametrize("size", ["1280,900", "390,844"])
def test_a_browser_opens_it_without_complaint(runs, tmp_path, size):
    make(runs, tmp_path)
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    logging = ["--enable-logging=stderr", "--virtual-time-budget=2000"]
    command = [str(CHROMIUM), *FLAGS, profile, f"--window-size={size}", *logging, "--dump-dom"]
    done = subprocess.run(
        [*command, (tmp_path / "report.html").as_uri()], capture_output=True, text=True, timeout=300, check=True
    )
    root = dict(Tags(done.stdout).found)["html"]
    assert int(root["data-ready"] or 0) > 20  # heads that sort: the script ran to its end
    assert "CONSOLE" not in done.stderr
    assert "<nav><a " in done.stdout
    assert "owned" not in re.findall(r"<title>(.*?)</title>", done.stdout)
