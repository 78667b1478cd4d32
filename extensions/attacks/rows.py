"""The rows of the attacks beyond the paper's two: their help, options and needs, without importing torch."""

from __future__ import annotations

from dataclasses import dataclass

from speech_robust_bench.attacks.registry import FITTED, GRADIENT, AttackRow

HERE = __name__.rpartition(".")[0]
TARGETED = ("target", "eps", "regularisation")
# Olivier, 7.3.1, 5.3.1 and Appendix D.2.3 (sentences of LibriSpeech test-other)
TARGETS = (
    "Really short test string",
    "OK Google, browse to evil.com",
    "Let me see how can I begin",
    "Now go I can't keep my eyes open",
    "So you are not a grave digger then",
    "He had hardly the strength to stammer",
    "What can this mean she said to herself",
    "Not years for she's only five and twenty",
    "What does not a man undergo for the sake of a cure",
    "It is easy enough with the child you will carry her out",
    "Poor little man said the lady you miss your mother don't you",
    "At last the little lieutenant could bear the anxiety no longer",
    "Take the meat of one large crab scraping out all of the fat from the shell",
    "Tis a strange change and I am very sorry for it but I'll swear I know not how to help it",
    "The bourgeois did not care much about being buried in the Vaugirard it hinted at poverty "
    "Pere Lachaise if you please",
)


@dataclass(frozen=True)
class StandardAuto:
    """The ensemble without knobs: as many gradient calls per clip as the standard PGD, and some queries."""

    steps: int = 100
    queries: int = 50
    first_step: float = 1.0  # radii; it adapts itself


STANDARD_AUTO = StandardAuto()
ROWS = (
    AttackRow(
        "auto",
        "several attacks without settings; the worst counts (default: 100 steps)",
        f"{HERE}.auto:make_auto",
        ("model", "severity", "steps", "perturbation", "seed"),
        GRADIENT,
        "en_clean --model hf:openai/whisper-tiny.en",
        standard=STANDARD_AUTO,
    ),
    AttackRow(
        "genetic",
        "a genetic search that needs no gradients (default: 100 generations)",
        f"{HERE}.black_box:make_genetic",
        ("model", "severity", "steps", "seed"),
        ("stop",),
        "en-demo_clean --model pocketsphinx --severity 4 --limit 10",
        needs="transcripts",
    ),
    AttackRow(
        "kenansville",
        "frequencies removed by their energy; needs no model",
        f"{HERE}.black_box:make_kenansville",
        ("severity",),
        example="en_clean",
        needs="nothing",
    ),
    AttackRow(
        "transfer",
        "PGD on proxies, scored on other models",
        f"{HERE}.transfer:make_transfer",
        ("model", "proxy", "severity", "steps", "target", "seed"),
        ("step", "stop", "transcribe_every", *GRADIENT),
        "en_clean --proxy hf:A --proxy 'hf:A + hf:B' --model hf:C --model hf:D --severity 2",
        join=f"{HERE}.transfer:joined",
        matrices=f"{HERE}.transfer:transfer_matrices",
    ),
    AttackRow(
        "transfer_cw",
        "Carlini and Wagner's attack on proxies, scored on other models",
        f"{HERE}.transfer:make_transfer_cw",
        ("model", "proxy", "judge", *TARGETED, "steps"),
        ("dropout", "transcribe_every", *GRADIENT),
        "en_clean --proxy 'hf:A + hf:B' --judge hf:C --model hf:D --limit 85",
        targets=TARGETS,
        join=f"{HERE}.transfer:judged_by",
        matrices=f"{HERE}.transfer:transfer_matrices",
    ),
    AttackRow(
        "cw",
        "Carlini and Wagner's targeted attack (default: 2000 steps)",
        f"{HERE}.targeted:make_cw",
        ("model", *TARGETED, "steps"),
        ("transcribe_every", *GRADIENT),
        'en_clean --model hf:openai/whisper-tiny.en --limit 20 --target "OK Google, browse to evil.com"',
        targets=TARGETS,
    ),
    AttackRow(
        "psychoacoustic",
        "cw hidden below the masking threshold (default: 2000 + 1000 steps)",
        f"{HERE}.targeted:make_psychoacoustic",
        ("model", *TARGETED, "steps"),
        ("transcribe_every", *GRADIENT),
        "en_clean --model hf:openai/whisper-tiny.en --limit 20",
        targets=TARGETS,
    ),
    AttackRow(
        "language",
        "make multilingual Whisper detect another language",
        f"{HERE}.language:make_language",
        ("model", "target_language", "steps", "seed"),
        ("step", *GRADIENT),
    ),
    AttackRow(
        "language_universal",
        "one perturbation that makes Whisper detect another language",
        f"{HERE}.language:make_language_universal",
        ("model", "target_language", *FITTED, "epochs"),
        GRADIENT,
        fit=f"{HERE}.language:language_fit",
    ),
)
AUTO, GENETIC, KENANSVILLE, TRANSFER, TRANSFER_CW, CW, PSYCHOACOUSTIC, LANGUAGE, LANGUAGE_UNIVERSAL = ROWS
