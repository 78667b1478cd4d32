"""The report: one HTML page about any number of runs, with everything in it and nothing fetched."""
