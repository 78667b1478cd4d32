"""What every other folder builds on. Here: the package's name and version (setup.cfg reads it), and how to cite it."""

DISTRIBUTION = "speech-robust-bench"
__version__ = "0.1.0"
BIBTEX = """\
@article{shah2024speech,
    title = {Speech Robust Bench: A Robustness Benchmark For Speech Recognition},
    author = {Shah, Muhammad A. and Solans Noguero, David and Heikkila, Mikko A. and Raj, Bhiksha and
              Kourtellis, Nicolas},
    journal = {arXiv preprint arXiv:2403.07937},
    year = {2024}
}
"""
