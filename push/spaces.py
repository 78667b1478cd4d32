"""Spaces: a metric that stands alone, or the leaderboard. Only what changed goes up, and old files are taken away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from speech_robust_bench.push.dataset_upload import git_blob
from speech_robust_bench.push.hub import Hub

KIND = "space"
KEPT = (".gitattributes",)  # the Hub's own


def metric_files(metrics: Sequence[str] = ()) -> dict[str, dict[str, bytes]]:
    """The files of each metric's Space."""
    from speech_robust_bench.scoring import modules

    return {metric: modules.space_files(metric) for metric in metrics or modules.METRICS}


def push(hub: Hub, repo: str, files: Mapping[str, bytes], private: bool, message: str) -> list[str]:
    """Bring a Space to exactly these files, in one commit; returns the paths that changed."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    hub.create(repo, KIND, private, sdk="gradio")
    there = hub.files(repo, KIND, "main")
    changed = [path for path, data in files.items() if path not in there or there[path].blob != git_blob(data)]
    gone = [path for path in there if path not in files and path not in KEPT]

    def operations() -> list[CommitOperationAdd | CommitOperationDelete]:
        adds = [CommitOperationAdd(path_in_repo=path, path_or_fileobj=files[path]) for path in changed]
        return [*adds, *(CommitOperationDelete(path_in_repo=path) for path in gone)]

    if changed or gone:
        hub.commit(repo, KIND, operations, message)
    return changed
