# The benchmark with torch and transformers, for a GPU or a CPU, run by a user who is not root.
#
#   docker build -t srb .                              # CPU
#   docker build -t srb --build-arg TORCH=cu130 .      # CUDA; any folder of https://download.pytorch.org/whl/
#
# .ci/docker_steps.py runs these steps without Docker. How to use the image: docs/how-to/run-as-a-job.md
FROM python:3.11-slim-bookworm

ARG TORCH=cpu

SHELL ["/bin/bash", "-o", "pipefail", "-c"]

# The voice of the synthetic speech. Debian keeps one version for each release, so the image's tag pins it.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends espeak-ng \
    && rm -rf /var/lib/apt/lists/*

# Jobs and Spaces of Hugging Face run as user 1000.
RUN useradd --create-home --uid 1000 srb

WORKDIR /opt/srb
COPY . source

# The extra index has the builds of torch for TORCH; constraints.txt pins every version.
RUN python -m venv environment \
    && PIP_EXTRA_INDEX_URL="https://download.pytorch.org/whl/${TORCH}" \
       environment/bin/pip install --no-cache-dir -c source/constraints.txt "./source[demo,models,codecs]" \
    && rm -rf source

ENV PATH=/opt/srb/environment/bin:$PATH
ENV HF_HOME=/home/srb/.cache/huggingface
# The driver comes from the machine; torch brings the rest of CUDA.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility

USER 1000
WORKDIR /home/srb
CMD ["srb", "--help"]
