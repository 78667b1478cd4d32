"""From transcripts to verdicts: normalise, align, count, resample, compare, rank; results files and their tables."""
