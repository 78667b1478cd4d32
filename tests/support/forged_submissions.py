"""Changes to a submission as somebody who cheats would make them, with the hashes brought in line."""

from __future__ import annotations

import hashlib
import json

from speech_robust_bench.push import submission


def seal(folder):
    """Bring the hashes of submission.json and run.json in line, as somebody who cheats would."""
    run = json.loads((folder / "run.json").read_text())
    for config, entry in run["configs"].items():
        if (folder / f"{config}.jsonl").is_file():
            entry["sha256"] = hashlib.sha256((folder / f"{config}.jsonl").read_bytes()).hexdigest()
    (folder / "run.json").write_text(json.dumps(run))
    made = json.loads((folder / "submission.json").read_text())
    names = [path.name for path in folder.iterdir() if path.is_file() and path.name != "submission.json"]
    made["files"] = {name: submission.file_facts(folder / name).as_json() for name in names}
    (folder / "submission.json").write_text(json.dumps(made))


def edit(folder, name, change):
    made = json.loads((folder / name).read_text())
    change(made)
    (folder / name).write_text(json.dumps(made))


def edit_lines(folder, config, change):
    path = folder / f"{config}.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines = change(lines) or lines
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def each_line(change):
    def apply(lines):
        for line in lines:
            change(line)

    return apply


def set_in(*path, value):
    def change(made):
        for key in path[:-1]:
            made = made[key]
        made[path[-1]] = value

    return change


# name -> (what is done to the submission, what the refusal says). All are sealed afterwards but those in UNSEALED.
