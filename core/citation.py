"""The paper that this benchmark implements, as BibTeX: for dataset cards and `evaluate` modules."""

BIBTEX = """\
@article{shah2024speech,
    title = {Speech Robust Bench: A Robustness Benchmark For Speech Recognition},
    author = {Shah, Muhammad A. and Solans Noguero, David and Heikkila, Mikko A. and Raj, Bhiksha and
              Kourtellis, Nicolas},
    journal = {arXiv preprint arXiv:2403.07937},
    year = {2024}
}
"""
