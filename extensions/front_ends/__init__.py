"""Front ends: what is put between a microphone and a recogniser. One file each, with `load(target)`, which gives a
function `(clip, rate) -> clip` of the same length, in step with the clip that it was given. A separator gives an array
(talkers, samples)."""
