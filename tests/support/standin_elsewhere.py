"""Recognisers for the tests of environments: they import nothing that only this environment has."""

from __future__ import annotations

import os

from support import standin

from speech_robust_bench.models.interface import SomeFailed


def onlythere(clips, rate, language):
    """Needs a package that one environment has."""
    import onlythere

    print("noise on stdout")
    return [str(onlythere.VERSION)] * len(clips)


def odd(clips, rate, language):
    """Fails as recognisers do, by what the first clip says."""
    number = standin.number_of(clips[0])
    if number == 0:
        raise RuntimeError("CUDA out of memory")
    if number == 1:
        raise SomeFailed(["fine", ValueError("bad clip")][: len(clips)])
    os._exit(7)
