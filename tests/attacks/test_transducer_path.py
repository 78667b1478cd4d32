"""The best path of a transducer, against all paths, and its scores, against the loss."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from speech_robust_bench.attacks.views import base
from speech_robust_bench.attacks.views.transformers_models import best_path, path_scores

BLANK, FRAMES = 0, 4
TOKENS = torch.tensor([2, 1, 2])


def random_logits(durations: tuple[int, ...]) -> torch.Tensor:
    return 2 * torch.randn(FRAMES, len(TOKENS) + 1, 3 + len(durations), generator=torch.Generator().manual_seed(5))


def all_paths(logits: torch.Tensor, durations: tuple[int, ...], frame: int = 0, said: int = 0):
    """(log probability, decisions) of every alignment, by the definition of both kinds of transducers."""
    if frame == FRAMES:
        if said == len(TOKENS):
            yield 0.0, []
        return
    tokens = logits[frame, said, :3].log_softmax(-1)
    steps = logits[frame, said, 3:].log_softmax(-1) if durations else None
    for token in {BLANK, *TOKENS[said : said + 1].tolist()}:
        for place, taken in enumerate(durations or [int(token == BLANK)]):
            if (token == BLANK and not taken) or frame + taken > FRAMES - (token != BLANK):
                continue
            here = tokens[token] + (0 if steps is None else steps[place])
            for rest, decisions in all_paths(logits, durations, frame + taken, said + (token != BLANK)):
                yield float(here) + rest, [token * max(1, len(durations)) + place, *decisions]


@pytest.mark.parametrize("durations", [(), (0, 1, 2)])
def test_the_best_of_all_paths(durations) -> None:
    logits = random_logits(durations)
    paths = list(all_paths(logits, durations))
    probability, decisions = max(paths)
    path = best_path(logits, TOKENS, BLANK, durations)
    assert len(paths) >= 20
    assert path.tolist() == decisions
    chosen = path_scores(logits, path, BLANK, durations).log_softmax(-1).gather(1, path[:, None])
    assert float(chosen.sum()) == pytest.approx(probability, abs=1e-5)


def test_all_paths_together_are_the_loss() -> None:
    logits = random_logits(())
    total = torch.tensor([probability for probability, _ in all_paths(logits, ())]).logsumexp(0)
    loss = base.transducer(logits[None], torch.tensor([FRAMES]), [TOKENS], BLANK)
    assert -float(loss) * len(TOKENS) == pytest.approx(float(total), abs=1e-5)


@pytest.mark.parametrize("durations", [(), (0, 1, 2)])
def test_a_silent_clip_is_blanks(durations) -> None:
    path = best_path(random_logits(durations)[:, :1], torch.tensor([], dtype=torch.long), BLANK, durations)
    assert (path // max(1, len(durations)) == BLANK).all()
