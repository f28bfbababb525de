"""Servers behind TLS, through the same connections: streams, large bodies, kept-alive connections, no blind trust."""

import asyncio
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from app.observations import RequestFirstToken

from .proxy_rig import Asked, Client, on_both_loops, rig, sse

HI = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n'
STOP = b'data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}]}\n\n'
EVENTS = (HI, HI, STOP, b"data: [DONE]\n\n")

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate with openssl")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1, signed by itself, with its key in the same file."""
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    key, cert = file.with_suffix(".key"), file.with_suffix(".crt")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test"
    where = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)]
    subprocess.run([*command.split(), *where], check=True, capture_output=True)
    file.write_bytes(key.read_bytes() + cert.read_bytes())
    return file


def context(certificate: Path) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(certificate)
    return made


async def stream(asked: Asked) -> None:
    await asked.send(*sse(*EVENTS))


@on_both_loops
async def test_streams_and_large_bodies_pass(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    large = b'{"stream":true,"messages":[{"role":"user","content":"' + b"word " * 500_000 + b'"}]}'
    async with rig(stream, tls=context(certificate)) as r:
        for body in (b'{"stream":true}', large):
            assert (await r.fetch(body)).body == b"".join(EVENTS)
            assert r.server.asked[-1].body == body
        assert (await r.ended(2)).outcome == "ok"
        assert len(r.all(RequestFirstToken)) == 2
        assert r.server.connections == 1


@on_both_loops
async def test_a_connection_that_the_server_closed_is_opened_anew(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    async def once(asked: Asked) -> None:
        await stream(asked)
        asked.writer.close()

    async with rig(once, tls=context(certificate)) as r:
        for _ in range(3):
            assert (await r.fetch(b"{}")).complete
            await asyncio.sleep(0.01)
        assert r.server.connections == 3


@on_both_loops
async def test_a_client_that_leaves_closes_the_server_s_connection(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    closed = asyncio.Event()

    async def endless(asked: Asked) -> None:
        await asked.send(*sse(HI)[:-1])
        await asked.closed()
        closed.set()
        asked.writer.transport.abort()

    async with rig(endless, tls=context(certificate)) as r:
        client = await Client.to(r.url)
        await client.ask(b'{"stream":true}')
        await client.read_until(HI)
        client.close()
        async with asyncio.timeout(1):
            await closed.wait()
        assert (await r.ended()).outcome == "client_gone"


@on_both_loops
async def test_a_certificate_that_nobody_vouches_for_is_refused(certificate: Path) -> None:
    async with rig(stream, tls=context(certificate)) as r:
        answer = await r.fetch(b"{}")
        assert answer.status == 502
        assert b"certificate" in answer.body
        assert not r.server.asked
        assert (await r.ended()).outcome == "server_gone"
