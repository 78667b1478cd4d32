"""Recognisers as an attacker needs them: waveforms in, one loss per clip out, gradients back to the waveforms."""
