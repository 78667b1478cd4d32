"""Results and metadata in the formats of others: Every Eval Ever and Croissant."""

from speech_robust_bench.cli.command import CommandRow

COMMANDS = [
    CommandRow("export", "publish", "export results (Every Eval Ever) or metadata (Croissant)", f"{__name__}.command"),
]
API = {
    "export_croissant": f"{__name__}.croissant",
    "export_results": f"{__name__}.every_eval_ever",
}
