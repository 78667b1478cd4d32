"""`python -m speech_robust_bench` is the command `srb`."""

from __future__ import annotations

from speech_robust_bench.cli.program import main

raise SystemExit(main())
