"""Every file that a command reads, mutated at random: the command succeeds or says one line, never a traceback."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import soundfile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.speech import speech_like

from speech_robust_bench.cli.main import main, parser_of
from speech_robust_bench.core.audio import RATE
from speech_robust_bench.core.errors import UserError

QUICK = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)
ODD = ["inf", "-inf", "nan", "1e999", "-1", "0", "9" * 400, "x" * 200_000, "\x00", "\ud800", "\u202e", "null", "[]"]
ODD_BYTES = [value.encode(errors="surrogatepass") for value in ODD]
DEEP = "[" * 50_000


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("fuzz") / "mine"
    folder.mkdir()
    for number in range(2):
        soundfile.write(folder / f"{number}.wav", speech_like(0.3, number), RATE)
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory, corpus) -> Path:
    out = tmp_path_factory.mktemp("built") / "srb"
    (corpus / "list.csv").write_text("audio,text\n0.wav,one\n1.wav,two\n")
    words = ["--corpus", f"en-mine={corpus / 'list.csv'}", "--out", str(out)]
    assert main(["build", "en-mine_clean", "en-mine_gain_sev1", *words]) == 0
    return out


def one_line(*words: str) -> None:
    """Run a command in this process; its only outcomes are success and a UserError, which is one line."""

    parser = parser_of(words[0])
    args = parser.parse_args(list(words))
    with mistakes_are_one_line():
        args._call(args)


@contextmanager
def mistakes_are_one_line() -> Iterator[None]:
    try:
        yield
    except UserError as error:
        lines = str(error).splitlines()
    else:
        lines = ["success"]
    assert len(lines) == 1


def mutate(data: bytes, cuts: list[tuple[float, float, bytes]]) -> bytes:
    """Replace stretches of some bytes with others."""
    for start, length, new in cuts:
        at = int(start * len(data))
        data = data[:at] + new + data[at + int(length * 20) :]
    return data


cuts = st.lists(
    st.tuples(
        st.floats(0, 1),
        st.floats(0, 1),
        st.binary(max_size=4) | st.sampled_from(ODD_BYTES),
    ),
    min_size=1,
    max_size=3,
)


@given(cuts=cuts, suffix=st.sampled_from([".csv", ".tsv", ".jsonl"]))
@QUICK
def test_manifests_of_a_corpus(corpus, tmp_path, cuts, suffix):
    rows = [{"audio": f"{n}.wav", "text": "one", "start": 0.1, "end": 0.2, "speaker": "s"} for n in range(2)]
    if suffix == ".jsonl":
        text = "\n".join(json.dumps(row) for row in rows)
    else:
        mark = "," if suffix == ".csv" else "\t"
        text = "\n".join([mark.join(rows[0]), *(mark.join(map(str, row.values())) for row in rows)])
    manifest = corpus / f"fuzzed{suffix}"
    manifest.write_bytes(mutate(text.encode(), cuts))
    out = tmp_path / "srb"
    shutil.rmtree(out, ignore_errors=True)
    one_line("build", "en-mine_clean", "--out", str(out), "--corpus", f"en-mine={manifest}", "--on-error", "skip")


@pytest.mark.parametrize("value", [*ODD, DEEP, "1" * 200_000])
@pytest.mark.parametrize("column", ["audio", "text", "start", "end", "duration", "id", "language", "speaker"])
def test_odd_values_in_a_manifest(corpus, tmp_path, column, value):
    row = {"audio": "0.wav", "text": "one", "start": "0", "end": "0.2"} | {column: value}
    manifest = corpus / "odd.jsonl"
    manifest.write_bytes(json.dumps(row).encode())
    words = ["--out", str(tmp_path / "srb"), "--corpus", f"en-mine={manifest}", "--on-error", "skip"]
    one_line("build", "en-mine_clean", *words)
    if value.isascii() and value.isprintable() and '"' not in value:
        manifest = corpus / "odd.csv"
        manifest.write_text("\n".join([",".join(row), ",".join(f'"{cell}"' for cell in row.values())]))
        words[3] = f"en-mine={manifest}"
        one_line("build", "en-mine_clean", *words)


@pytest.mark.parametrize("text", [DEEP, '{"a":' * 50_000, "null", "[1]", "{}", '{"audio": {"x": 1}, "text": ["a"]}'])
def test_odd_lines_of_json(corpus, tmp_path, text):
    manifest = corpus / "lines.jsonl"
    manifest.write_text(text)
    words = ["--out", str(tmp_path / "srb"), "--corpus", f"en-mine={manifest}", "--on-error", "skip"]
    one_line("build", "en-mine_clean", *words)


@given(cuts=cuts)
@QUICK
def test_own_scenarios(tmp_path, cuts):
    pytest.importorskip("audiomentations")
    text = "scenarios:\n  - name: crush\n    transform: BitCrush\n    parameters: {p: $value}\n    severities: [8]\n"
    path = tmp_path / "own.yaml"
    path.write_bytes(mutate(text.encode(), cuts))
    one_line("ls", "--json", "--scenario-file", str(path))


@pytest.mark.parametrize("text", [DEEP, "{" * 20_000, "a: &a [*a]", "scenarios: [1]", "scenarios: [{name: []}]"])
def test_odd_yaml(tmp_path, text):
    path = tmp_path / "own.yaml"
    path.write_text(text)
    one_line("ls", "--json", "--scenario-file", str(path))


@given(cuts=cuts, name=st.sampled_from(["_manifest.json", "test-00000-of-00001.parquet"]))
@QUICK
def test_built_configs(built, tmp_path, cuts, name):
    out = tmp_path / "srb"
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(built, out)
    path = out / "en-mine_gain_sev1" / name
    path.write_bytes(mutate(path.read_bytes(), cuts))
    one_line("check", "--data", str(out))
    from speech_robust_bench.builders.config_sources import BuiltFolder

    with mistakes_are_one_line():
        config = BuiltFolder(out).config("en-mine_gain_sev1")
        for window in config.windows(set(range(len(config.rows)))):
            for row in window.rows:
                window.decode(row)
    one_line("build", "en-mine_gain_sev1", "--limit", "1", "--out", str(out), "--overwrite")


@given(data=st.binary(max_size=400), head=st.sampled_from([b"", b"RIFF", b"fLaC", b"OggS", b"ID3", b".snd"]))
@QUICK
def test_audio_to_perturb(tmp_path, data, head):
    path = tmp_path / "in.wav"
    path.write_bytes(head + data)
    one_line("perturb", str(path), str(tmp_path / "out.wav"), "--scenario", "gain", "--severity", "1")
