"""Recognisers used live: `srb run --stream`, the adapters `live` and `ws`, and the measure of latency and stability."""

ADAPTERS = {"live": f"{__name__}.replay", "ws": f"{__name__}.ws"}
API = {"StreamOptions": f"{__name__}.streams"}
LINE_CHECKS = {"stream": f"{__name__}.clip_measures:StreamedLines"}
MEASURES = {"streaming": f"{__name__}.measure:STREAMING"}
RUN_MODES = {"stream": f"{__name__}.streams:StreamOptions"}
