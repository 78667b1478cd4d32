"""Front ends that clean a clip before it is transcribed, `front:rnnoise|moonshine`, and their effect on quality."""

API = dict.fromkeys(("FrontQuality", "front_quality"), f"{__name__}.quality")
ADAPTERS = {"front": f"{__name__}.adapter"}
FRONT_ENDS = {
    name: f"{__name__}.adapter:{name}"
    for name in ("asnr", "deepfilternet", "noisereduce", "python", "rnnoise", "speechbrain", "webrtc", "wpe")
}
