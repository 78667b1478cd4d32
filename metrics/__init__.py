"""WERD, NWERD, LWERR and their family: `evaluate` modules over one small scoring core.

`scoring` aligns and counts, `bootstrap` resamples, `difficulty` has the tables that NWERD divides by, `degradation`,
`groups` and `aggregate` turn counts into scores, `runs` and `compare` read run folders, `modules` installs and exports
the folders that `evaluate.load` finds. `docs/metrics.md` is the guide.
"""
