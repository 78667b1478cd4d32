"""transformers never runs a model's own code unless the user asked for it, whatever stands on standard input."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("transformers")

ROOT = Path(__file__).parents[2]
ROOMS = (
    "attacks",
    "builders",
    "cli",
    "core",
    "extensions",
    "metrics",
    "models",
    "push",
    "report",
    "speech_robust_bench",
)
METRICS = "from speech_robust_bench.extensions.text_metrics"
PROBES = "from speech_robust_bench.extensions.probe import upstream"
LOADERS = {
    "hf": "from speech_robust_bench.models.interface import open_model; open_model('hf:' + folder)",
    "probe": f"{PROBES}; upstream.open_upstream('hf:' + folder)",
    "random probe": f"{PROBES}; upstream.open_upstream('random:' + folder)",
    "embeddings": f"{METRICS}.lenient_wer import open_embedder; open_embedder(folder)",
    "tts processor": "from speech_robust_bench.builders.tts import _from_hub; _from_hub('AutoProcessor', folder)",
    "tts tokenizer": "from speech_robust_bench.builders.tts import _from_hub; _from_hub('AutoTokenizer', folder)",
}


@pytest.mark.parametrize("loader", LOADERS)
def test_yes_on_stdin_is_not_consent(tmp_path, loader):
    own = ("AutoConfig", "AutoModel", "AutoModelForCTC", "AutoProcessor", "AutoTokenizer", "AutoFeatureExtractor")
    auto_map = {**dict.fromkeys(own, "evil.Mine"), "AutoTokenizer": ["evil.Mine", None]}
    config = {"model_type": "mine", "auto_map": auto_map}
    for name in ("config.json", "tokenizer_config.json", "preprocessor_config.json", "processor_config.json"):
        (tmp_path / name).write_text(json.dumps(config))
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Mine: pass\n")
    code = f"from speech_robust_bench.core.errors import UserError\nfolder = {str(tmp_path)!r}\n"
    code += f"try:\n    {LOADERS[loader]}\nexcept UserError as error:\n    print('refused:', error)\n"
    done = subprocess.run([sys.executable, "-c", code], input="y\n" * 20, capture_output=True, text=True, check=False)
    assert not (tmp_path / "ran").exists()
    assert "refused:" in done.stdout, done.stderr
    assert "[y/N]" not in done.stdout, "the question itself must not be asked"


def test_every_call_that_loads_by_transformers_says_so():
    """`from_pretrained` and `from_config` have `trust_remote_code`, by name or in the keywords that the caller made."""
    silent = []
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            source = path.read_text("utf-8")
            for node in ast.walk(ast.parse(source)):
                if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                    continue
                if node.func.attr not in ("from_pretrained", "from_config") or path.name == "nemo.py":
                    continue
                named = any(keyword.arg == "trust_remote_code" for keyword in node.keywords)
                collected = any(keyword.arg is None for keyword in node.keywords) and "trust_remote_code" in source
                if not (named or collected or ast.unparse(node.func.value) == "nn.Embedding"):
                    silent.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert silent == []


def test_stdin_is_back_afterwards():
    from speech_robust_bench.core.secrets import closed_stdin

    before = sys.stdin
    with pytest.raises(EOFError), closed_stdin():
        input("run it?")
    assert sys.stdin is before
