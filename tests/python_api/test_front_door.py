"""`import speech_robust_bench as srb`: what it costs, and what it offers."""

import subprocess
import sys
from importlib.metadata import version

import pytest

import speech_robust_bench as srb
from speech_robust_bench.builders.scenarios import SCENARIOS

HEAVY = {"numpy", "scipy", "numba", "datasets", "pandas", "pyarrow", "torch", "transformers", "rich", "soundfile"}


def test_importing_it_imports_nothing_heavy():
    program = "import sys; import speech_robust_bench; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not HEAVY & set(loaded)
    assert not [name for name in loaded if name.startswith("srb")]


def test_every_name_is_there_and_documented():
    for name in set(dir(srb)) - {"__version__"}:
        assert getattr(srb, name).__doc__, name
    assert set(srb.__all__) < set(dir(srb))  # extensions add names
    assert srb.__version__ == version("speech-robust-bench")
    with pytest.raises(AttributeError, match="has no attribute 'pertub'"):
        srb.pertub  # noqa: B018


def test_the_scenario_table_prints_filters_and_becomes_a_frame():
    table = srb.scenarios()
    assert table.names == list(SCENARIOS)
    assert all(name in repr(table) for name in SCENARIOS)
    assert srb.scenarios("spatial").names == ["rir", "real_rir", "echo"]
    assert table["echo"].severities == (125, 250, 500, 1000)  # SRB Table 2
    assert len(table[:3]) == 3
    assert "<td>echo</td>" in table._repr_html_()
    with pytest.raises(ValueError, match="did you mean echo"):
        srb.scenarios("ecko")


def test_the_scenario_table_as_a_data_frame():
    pytest.importorskip("pandas")
    frame = srb.scenarios("spatial").to_pandas().set_index("name")
    assert frame.loc["echo", "severities"] == {1: 125, 2: 250, 3: 500, 4: 1000}
