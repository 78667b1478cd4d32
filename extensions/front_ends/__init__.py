"""Front ends that clean a clip before a recogniser hears it: `front:rnnoise|moonshine`; and what they do to quality."""

API = {
    "front_quality": f"{__name__}.api",
}
ADAPTERS = {"front": f"{__name__}.adapter"}
FRONT_ENDS = {
    name: f"{__name__}.{name}"
    for name in ("asnr", "deepfilternet", "noisereduce", "python", "rnnoise", "speechbrain", "webrtc", "wpe")
}
