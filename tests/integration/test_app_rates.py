"""How often one client may ask, and whom it counts as."""

from .app_rig import dashboard

NOWHERE = {"vllm": "http://127.0.0.1:9"}
BEHIND = {"x-forwarded-for": "1.2.3.4"}
TOKEN = "an-operators-token"


async def test_a_client_that_asks_too_often_is_told_when_to_try_again() -> None:
    async with dashboard({**NOWHERE, "max_client_requests_per_s": "0.01"}) as board:
        first = await board.http.post("/v1/completions", content=b"{}")
        second = await board.http.post("/v1/completions", content=b"{}")
        assert first.status_code != 429
        assert second.status_code == 429 and int(second.headers["retry-after"]) >= 1
        assert second.json()["error"]["type"] == "rate_limit_error"
        assert "max_client_requests_per_s" in second.json()["error"]["message"]
        assert (await board.http.get("/api/state")).status_code == 200


async def test_what_changes_something_is_limited_and_what_reads_is_not() -> None:
    async with dashboard({**NOWHERE, "max_client_changes_per_s": "0.01"}) as board:
        own = {"origin": board.url}
        assert (await board.http.post("/api/mark", headers=own)).status_code == 200
        refused = await board.http.post("/api/mark", headers=own)
        assert refused.status_code == 429 and "retry-after" in refused.headers
        assert refused.json()["error"]["code"] == "rate_limited"
        assert [(await board.http.get("/api/state")).status_code for _ in range(3)] == [200, 200, 200]


async def test_clients_behind_a_trusted_proxy_are_told_apart_and_others_can_not_pretend() -> None:
    for trusted, status in (("127.0.0.1", 200), ("10.0.0.1", 429)):
        limited = {**NOWHERE, "max_client_changes_per_s": "0.01", "trusted_proxies": trusted}
        async with dashboard(limited) as board:
            own = {"origin": board.url}
            assert (await board.http.post("/api/mark", headers=own)).status_code == 200
            assert (await board.http.post("/api/mark", headers={**own, **BEHIND})).status_code == status


async def test_wrong_tokens_of_one_client_do_not_lock_others_out_behind_a_proxy() -> None:
    guarded = {**NOWHERE, "tokens": TOKEN, "trusted_proxies": "127.0.0.1", "max_failed_logins": "2"}
    async with dashboard(guarded) as board:
        own = {"origin": board.url}

        async def log_in(token: str, client: str) -> int:
            answer = await board.http.post("/login", data={"token": token}, headers={**own, "x-forwarded-for": client})
            return answer.status_code

        assert [await log_in("wrong", "1.2.3.4") for _ in range(2)] == [401, 401]
        assert await log_in(TOKEN, "1.2.3.4") == 429
        assert await log_in(TOKEN, "5.6.7.8") == 303


async def test_more_bodies_than_fit_are_refused_until_there_is_room() -> None:
    async with dashboard({**NOWHERE, "max_held_bytes": "100000"}) as board:
        refused = await board.http.post("/v1/completions", content=b"x" * 100_001)
        assert refused.status_code == 503 and refused.headers["retry-after"] == "1"
        assert (await board.http.post("/v1/completions", content=b"{}")).status_code != 503
