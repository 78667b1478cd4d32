"""The losses against published values, against sums over all paths, and against finite differences."""

from __future__ import annotations

import itertools

import pytest

torch = pytest.importorskip("torch")
from support.tone_configs import one_thread  # noqa: F401

from speech_robust_bench.attacks.views import base


def test_transducer_is_the_published_example() -> None:
    """The example and its cost are those of the tests of warp-transducer."""
    logits = torch.tensor(
        [
            [
                [[0.1, 0.6, 0.1, 0.1, 0.1], [0.1, 0.1, 0.6, 0.1, 0.1], [0.1, 0.1, 0.2, 0.8, 0.1]],
                [[0.1, 0.6, 0.1, 0.1, 0.1], [0.1, 0.1, 0.2, 0.1, 0.1], [0.7, 0.1, 0.2, 0.1, 0.1]],
            ]
        ]
    )
    found = base.transducer(logits, torch.tensor([2]), [torch.tensor([1, 2])])
    assert 2 * float(found) == pytest.approx(4.495666, abs=1e-5)


def all_paths(log_probs: torch.Tensor, tokens: list[int]) -> torch.Tensor:
    """Minus the log of the sum over every order of staying (T times, the last at the end) and speaking."""
    frames = len(log_probs)
    total = []
    for spoken in itertools.combinations(range(frames + len(tokens) - 1), len(tokens)):
        frame, said, score = 0, 0, torch.zeros(())
        for place in range(frames + len(tokens) - 1):
            if place in spoken:
                score = score + log_probs[frame, said, tokens[said]]
                said += 1
            else:
                score = score + log_probs[frame, said, 0]
                frame += 1
        total.append(score + log_probs[frame, said, 0])
    return -torch.logsumexp(torch.stack(total), 0)


def test_transducer_loss_sums_all_paths_whatever_the_padding() -> None:
    torch.manual_seed(0)
    logits = torch.randn(2, 5, 4, 6, dtype=torch.double)
    frames, tokens = torch.tensor([5, 3]), [torch.tensor([2, 2, 5]), torch.tensor([1])]
    found = base.transducer(logits, frames, tokens)
    for row, count, own, loss in zip(logits, frames, tokens, found, strict=True):
        right = all_paths(row[:count].log_softmax(-1), own.tolist()) / len(own)
        assert float(loss) == pytest.approx(float(right), rel=1e-9)


def test_transducer_has_the_gradient_of_finite_differences() -> None:
    torch.manual_seed(0)
    logits = torch.randn(2, 4, 3, 4, dtype=torch.double, requires_grad=True)
    tokens = [torch.tensor([2, 1]), torch.tensor([3])]
    assert torch.autograd.gradcheck(lambda x: base.transducer(x, torch.tensor([4, 2]), tokens), logits)


def test_ctc_of_a_batch_is_torchs_of_each_clip() -> None:
    torch.manual_seed(0)
    logits = torch.randn(2, 9, 5)
    frames, tokens = torch.tensor([9, 5]), [torch.tensor([1, 2, 2]), torch.tensor([4])]
    found = base.ctc(logits, frames, tokens, 0)
    for row, count, own, loss in zip(logits, frames, tokens, found, strict=True):
        alone = torch.nn.CTCLoss(blank=0, reduction="mean")(
            row[:count, None].log_softmax(-1), own[None], count[None], torch.tensor([len(own)])
        )
        assert float(loss) == pytest.approx(float(alone), rel=1e-5)


def test_the_first_token_counts_as_olivier_says() -> None:
    """Eq. 5.2: 1/(L + lambda) [(1 + lambda) l_1 + sum of the others]."""
    torch.manual_seed(0)
    logits = torch.randn(2, 4, 7)
    tokens = [torch.tensor([1, 5, 2, 0]), torch.tensor([3, 0])]
    found = base.cross_entropy(logits, tokens, first_weight=1.0)
    for row, own, loss in zip(logits, tokens, found, strict=True):
        each = torch.nn.functional.cross_entropy(row[: len(own)], own, reduction="none")
        assert float(loss) == pytest.approx(float((2 * each[0] + each[1:].sum()) / (len(own) + 1)), rel=1e-5)
    plain = base.cross_entropy(logits, tokens)
    each = torch.nn.functional.cross_entropy(logits[1, :2], tokens[1])
    assert float(plain[1]) == pytest.approx(float(each), rel=1e-5)
