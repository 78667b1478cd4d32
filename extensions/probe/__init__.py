"""The probe: a frozen encoder, a learned mix of its layers, and a small head trained with CTC (SUPERB-SG, Section 3).

It asks what a representation is worth for recognition, in domain and out of it, without fine-tuning the encoder.
"""

ADAPTERS = {"probe": f"{__name__}.adapter"}
VIEWS = {"Probe": f"{__name__}.attack_view:probe_view"}
