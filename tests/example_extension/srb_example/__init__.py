"""An extension of Speech Robust Bench, as anybody's package could be: it says what it adds and imports nothing."""

ADAPTERS = {"parrot": "srb_example.parrot"}
ATTACKS = {"hum": "srb_example.hum:ROW"}
CATEGORIES = {"adv_hum": "adversarial, an example"}
CORPORA = {"whispers": "srb_example.whispers:WHISPERS"}
MEASURES = {"long_words": "srb_example.long_words:LONG_WORDS"}
SCENARIOS = {"backwards": "srb_example.backwards:BACKWARDS", "hum": "srb_example.hum:HUM"}
