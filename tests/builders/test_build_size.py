"""`srb build` says before it starts how large the result will be."""

import re

import pytest

from speech_robust_bench.builders.row_generator import BuildSize
from speech_robust_bench.cli.main import main


@pytest.mark.parametrize(
    "configs", [["en-demo_clean", "en-demo_gaussian_sev*"], ["en-demo_gain_sev2", "en-demo_slow_sev*"]]
)
def test_the_estimate_is_near_what_is_built(tmp_path, capsys, configs):
    assert main(["build", *configs, "--limit", "12", "--out", str(tmp_path / "srb")]) == 0
    said = re.search(r"configs of 12 clips .*: about ([\d.]+) (kB|MB)", capsys.readouterr().err)
    assert said
    estimate = float(said[1]) * {"kB": 1e3, "MB": 1e6}[said[2]]
    size = sum(path.stat().st_size for path in tmp_path.rglob("*.parquet"))
    assert 0.6 < estimate / size < 1.6


def test_a_size_is_printed_for_people():
    assert str(BuildSize(100, 2620, 5.403, 36_200_000_000)) == "100 configs of 2620 clips (5.40 h each): about 36.2 GB"
