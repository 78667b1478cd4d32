"""Beyond the words of a transcript: formatting, terms, confidence, meaning, and what may be written in two ways."""

MEASURES = {
    "wer_lenient": f"{__name__}.lenient_wer:WER_LENIENT",
    "semantic_error": f"{__name__}.lenient_wer:SEMANTIC_ERROR",
    "confidence": f"{__name__}.calibration:CONFIDENCE",
}
