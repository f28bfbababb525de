"""What a cause is called in Simplified Chinese: the sentences of `words_en`, one by one.

Only wording; every number may be missing. Imports nothing but `words`.
"""

from collections.abc import Callable

from .words import Params, Remarks, Words, number, whole

REMARKS = Remarks(
    inferred="由 KV 事件推断：服务器没有报告。",
    by_router="由服务器前面的路由器报告：预填充与解码分离时，可能是解码节点的数字。",
)


def _reused(params: Params) -> Words:
    return _reuse_sentence(params), _join(_loss(params) or _computed_sentence(params), _speed(params))


def _full_hit(params: Params) -> Words:
    why = f"能复用的都复用了{_computed_part(params)}只有填满的块才会被缓存。"
    return _reuse_sentence(params), _join(why, _speed(params))


def _exact_multiple(params: Params) -> Words:
    size, prompt = _some(params.get("block_size")), _some(params.get("prompt_tokens"))
    if not whole(params, "reused_blocks"):
        text = f"提示词正好填满一个 {size} 个 token 的块：它已缓存，却不能复用。"
        return text, "最后一个 token 总要重新计算，它所在的块也一样。只要再多一个 token 就能复用。"
    why = f"能复用的都复用了{_computed_part(params)}最后一个 token 总要重新计算，它所在的块也一样。"
    return _reuse_sentence(params), _join(why, f"{prompt} 个 token 正好是块大小 {size} 的整数倍。", _speed(params))


def _computed_part(params: Params) -> str:
    computed = whole(params, "computed_tokens")
    return f"：计算了 {computed} 个 token，因为" if computed is not None else "；"


def _reuse_sentence(params: Params) -> str:
    reused, blocks = whole(params, "reused_blocks"), whole(params, "prompt_blocks")
    if reused is not None and blocks is not None:
        first = f"复用了 {blocks} 个块中的 {reused} 个。"
    else:
        cached, prompt = _some(params.get("cached_tokens")), _some(params.get("prompt_tokens"))
        first = f"复用了 {prompt} 个 token 中的 {cached} 个。"
    ttft, reference = number(params, "ttft_ms"), number(params, "reference_ttft_ms")
    if ttft is None:
        return first
    own = number(params, "engine_ttft_ms")
    clock = f"（按服务器自己的时钟为 {_time(own)}）" if own is not None else ""
    if reference is None:
        return f"{first}首 token 用时 {_time(ttft)}{clock}。"
    if ttft >= reference:
        return f"{first}首 token 用时 {_time(ttft)}{clock}；长度相近的冷请求用了 {_time(reference)}。"
    return f"{first}首 token 用时 {_time(ttft)}{clock}，而不是 {_time(reference)}。"


def _computed_sentence(params: Params) -> str | None:
    computed, prompt = whole(params, "computed_tokens"), whole(params, "prompt_tokens")
    if computed is None or prompt is None:
        return None
    return f"{prompt} 个 token 中计算了 {computed} 个。"


def _speed(params: Params) -> str | None:
    said: str | None = None
    saved, low, high = (number(params, name) for name in ("saved_ms", "saved_low_ms", "saved_high_ms"))
    if saved is not None and low is not None and high is not None:
        said = f"约节省 {_time(saved)}（{_plain(low)} 到 {_plain(high)}）。"
    reason = params.get("not_faster")
    if reason == "queue":
        return _join(said, f"仍然没有更快：它在服务器队列中等了{_padded(_time(number(params, 'queue_ms')))}。")
    if reason == "busy":
        return _join(said, "仍然没有更快：同时有其他请求在运行。")
    if reason == "tiny":
        return _join(said, "没有更快：复用的部分太少，感觉不到。")
    share = number(params, "decode_share")
    if share is not None:
        return _join(said, f"总时间的 {share * 100:.0f} % 用于生成回答，复用不会缩短这一部分。")
    return said


def _loss(params: Params) -> str | None:
    code = params.get("loss")
    found = LOSSES.get(code) if isinstance(code, str) else None
    return found(params) if found is not None else None


def _rest_evicted(params: Params) -> str:
    return f"第 {_some(params.get('block'))} 块曾在缓存中，{_when(params)}被驱逐{_evictors(params)}{_cost(params)}。"


def _rest_reset(params: Params) -> str:
    return f"其余部分曾在缓存中，直到{_when(params)}{_emptied(params)}。"


def _rest_unexplained(params: Params) -> str:
    return f"第 {_some(params.get('block'))} 块看起来也在缓存中，但服务器没有复用它。"


def _departure(params: Params) -> str:
    shared, token = whole(params, "shared_tokens"), whole(params, "token")
    if shared is None:
        return "它与最接近的已知提示词不同。"
    if token is None:
        return f"全部 {shared} 个 token 都在之前的提示词中出现过。"
    where = f"第 {token} 个 token（第 {_some(params.get('block'))} 块）"
    if params.get("ends"):
        return f"最接近的先前提示词在 {shared} 个 token 之后结束：从{where}起是新的。"
    after = whole(params, "blocks_after")
    tail = f"：从那里起的 {after} 个块必须计算。" if after is not None else "。"
    return f"与最接近的已知提示词共有 {shared} 个 token，从{where}起不同{tail}"


def _straddle(params: Params) -> str:
    straddling = whole(params, "straddling_tokens")
    lost = f"其中的 {straddling} 个 token" if straddling is not None else "其中的 token"
    return f"{_departure(params)}那个块没有填满，所以{lost}必须重新计算。"


def _moved(params: Params) -> str:
    constant, token = _some(params.get("constant_tokens")), _some(params.get("token"))
    span = whole(params, "span_tokens")
    changed = f"从第 {token} 个 token 起有 {span} 个 token 变了" if span else f"第 {token} 个 token 之前有内容变了"
    return f"{changed}，其后的 {constant} 个 token 与之前相同：只因前面的内容不同，它们被重新计算。"


def _first_seen(params: Params) -> Words:
    text = f"第一次出现：全部 {_some(params.get('prompt_tokens'))} 个 token 都要计算。"
    shared, size = whole(params, "shared_tokens"), whole(params, "block_size")
    if shared and size is not None:
        return text, f"它与最接近的已知提示词共有 {shared} 个 token，不足一个 {size} 个 token 的块。再发一次即可复用。"
    return text, "再发一次即可复用。"


def _too_short(params: Params) -> Words:
    size, shared = _some(params.get("block_size")), whole(params, "shared_tokens")
    if shared is not None:
        text = f"与最接近的已知提示词共有 {shared} 个 token，不足一个 {size} 个 token 的块。"
        return text, "只有填满的块才能复用：不变的部分至少要填满一个块。"
    text = f"提示词有 {_some(params.get('prompt_tokens'))} 个 token：太短，复用不了 {size} 个 token 的块。"
    return text, "只有填满的块才会被缓存，而最后一个 token 总要重新计算。"


def _diverges(params: Params) -> Words:
    return _departure(params), "前缀只能复用到第一个不同的 token 为止。请把会变的内容放到最后。"


def _variable_first(params: Params) -> Words:
    return _moved(params), "请把会变的内容放到不变的内容之后：前缀只能复用到第一处不同为止。"


def _alignment(params: Params) -> Words:
    return _straddle(params), "只有填满的块才会被缓存；块越小，末尾损失越少。"


def _evicted(params: Params) -> Words:
    return (
        f"它的前缀曾在缓存中，{_when(params)}被驱逐{_evictors(params)}{_cost(params)}。",
        "缓存池已满，最久未用的块必须让出。增加 KV 显存，或同时使用更少的不同提示词，就能保住它。",
    )


def _reset(params: Params) -> Words:
    return f"它的前缀曾在缓存中，直到{_when(params)}{_emptied(params)}。", "从现在起又可以复用了。"


def _other_salt(params: Params) -> Words:
    text = "相同的 token 已缓存，但不在这个请求的缓存盐（cache_salt）之下。"
    if not params.get("salted"):
        text = "相同的 token 已缓存，但带有缓存盐（cache_salt），而这个请求没有。"
    return text, "只有缓存盐相同的请求之间才共享块。"


def _other_adapter(params: Params) -> Words:
    adapter = params.get("adapter")
    whose = f"属于适配器 {adapter}" if adapter else "属于基础模型"
    return f"相同的 token 已缓存，但{whose}。", "只有同一个适配器之内才共享块。"


def _other_model(params: Params) -> Words:
    model = params.get("other_model")
    whose = f"属于模型 {model}" if model else "属于另一个模型"
    return f"相同的 token 之前计算过，但{whose}。", "只有同一个模型之内才共享块。"


def _other_image(params: Params) -> Words:
    return "相同的 token 已缓存，但对应的图像或嵌入不同。", "请把图像放到不变的文字之后。"


def _other_rank(params: Params) -> Words:
    other, rank = _some(params.get("other_rank")), _some(params.get("rank"))
    text = f"它的前缀在 rank {other} 上，但服务这个请求的是 rank {rank}。"
    return text, "每个数据并行 rank 都有自己的缓存：请按前缀或会话路由，或让每个 rank 各预热一次。"


def _other_server(params: Params) -> Words:
    text = f"它的前缀在另一台服务器上：{_some(params.get('other_server'))}。"
    return text, "进程之间从不共享块：请按前缀或会话路由。"


def _still_computing(params: Params) -> Words:
    by = params.get("by")
    whose = f"同时运行的请求 {by}" if by else "一个同时运行的请求"
    return f"{whose}当时还在计算它的前缀。", "请先单独发送一批中的第一个请求，等它的首 token 到了再发其余的。"


def _coarse_alignment(params: Params) -> Words:
    unit, dropped, matched = (whole(params, name) for name in ("unit_tokens", "dropped_blocks", "matched_tokens"))
    found = f"有 {matched} 个 token 与缓存匹配" if matched is not None else "与缓存匹配的更多"
    rules = []
    if dropped:
        rules.append(f"会丢弃最后 {dropped} 个匹配的块")
    if unit is not None and unit != whole(params, "block_size"):
        rules.append(f"只复用 {unit} 个 token 的整数倍")
    habit = "，并且".join(rules) if rules else "复用的比匹配的少"
    return f"{found}，但这台服务器{habit}。", "这是从它的回答中学到的；投机解码和混合模型会这样。"


def _cache_off(params: Params) -> Words:
    return "这台服务器关闭了前缀缓存。", "启动 vLLM 时不要使用 --no-enable-prefix-caching。"


def _lookup_skipped(params: Params) -> Words:
    text = "跳过了缓存查找，因为请求要求提示词的对数概率。"
    return text, _join(_computed_sentence(params), "不带 prompt_logprobs 发送即可复用。")


def _inconsistent(params: Params) -> Words:
    cached, prompt = _some(params.get("cached_tokens")), _some(params.get("prompt_tokens"))
    return (
        f"服务器报告 {prompt} 个提示词 token 中有 {cached} 个来自缓存，这不可能。",
        "数字按原样显示，不计入任何命中率。",
    )


def _unexplained(params: Params) -> Words:
    text, reason = "什么都没有复用。", params.get("reason")
    if reason == "seemed_resident":
        return text, "发送时它的第一个块看起来在缓存中：服务器却说不是。"
    if reason == "no_events":
        return text, "没有 KV 事件就无法知道原因：请用 --kv-events-config 启动 vLLM。"
    if reason == "sequences":
        return text, MISSING["sequences"]
    if reason == "mismatch":
        found, prompt = _some(params.get("found_tokens")), _some(params.get("prompt_tokens"))
        return text, f"无法知道原因：手头的 token 与服务器的不同（{found} 对 {prompt}）。"
    return text, "没有提示词的 token，就无法知道原因。"


MISSING = {
    "usage": "响应中没有 usage。请用 stream_options.include_usage 要求它，或让仪表盘代劳：--mode enrich。",
    "details": "这台服务器不按请求报告缓存的 token；请用 --enable-prompt-tokens-details 启动 vLLM。",
    "details_here": "服务器没有给出这个请求的缓存 token 数，虽然它对其他请求会给出：很可能是 0。",
    "sequences": "一次调用中的多个序列无法区分。",
}


def _unknown(params: Params) -> Words:
    return "复用了多少还不知道。", MISSING.get(str(params.get("missing")), MISSING["details"])


_OUTCOMES = {
    "client_gone": "客户端在回答完成之前断开了连接。",
    "http_error": "服务器拒绝了这个请求。",
    "stream_error": "服务器在流中报告了错误。",
    "empty": "服务器没有给出内容就结束了回答。",
    "truncated": "回答在结束之前中断了。",
    "timed_out": "服务器没有及时回答。",
    "server_gone": "与服务器的连接断开了。",
}


def _failed(params: Params) -> Words:
    outcome, status = str(params.get("outcome")), params.get("status")
    text = _OUTCOMES.get(outcome, "请求失败了。")
    if outcome == "http_error" and status is not None:
        text = f"服务器以状态 {status} 拒绝了这个请求。"
    error, closed = params.get("error"), number(params, "closed_after_ms")
    if error is None and closed is not None:
        return text, (f"请求发送 {_time(closed)} 后关闭了与服务器的连接；服务器何时停止，只能看它自己的运行中请求数。")
    return text, str(error) if error else None


WORDS: dict[str, Callable[[Params], Words]] = {
    "reused": _reused,
    "full_hit": _full_hit,
    "exact_multiple": _exact_multiple,
    "first_seen": _first_seen,
    "too_short": _too_short,
    "diverges": _diverges,
    "variable_first": _variable_first,
    "alignment": _alignment,
    "evicted": _evicted,
    "reset": _reset,
    "other_salt": _other_salt,
    "other_adapter": _other_adapter,
    "other_model": _other_model,
    "other_image": _other_image,
    "other_rank": _other_rank,
    "other_server": _other_server,
    "still_computing": _still_computing,
    "coarse_alignment": _coarse_alignment,
    "cache_off": _cache_off,
    "lookup_skipped": _lookup_skipped,
    "inconsistent": _inconsistent,
    "unexplained": _unexplained,
    "unknown": _unknown,
    "failed": _failed,
}
"""The codes of `words_en.WORDS`, and what words them."""

LOSSES: dict[str, Callable[[Params], str]] = {
    "evicted": _rest_evicted,
    "reset": _rest_reset,
    "unexplained": _rest_unexplained,
    "diverges": _departure,
    "first_seen": _departure,
    "too_short": _departure,
    "alignment": _straddle,
    "variable_first": _moved,
    "still_computing": lambda params: _still_computing(params)[0].replace("它的前缀", "其余部分"),
    "coarse_alignment": lambda params: _coarse_alignment(params)[0],
    "other_rank": lambda params: _other_rank(params)[0].replace("它的前缀", "更长的前缀"),
    "other_server": lambda params: _other_server(params)[0].replace("它的前缀", "更长的前缀"),
    "other_salt": lambda params: _other_salt(params)[0],
    "other_adapter": lambda params: _other_adapter(params)[0],
    "other_image": lambda params: _other_image(params)[0],
}


def _emptied(params: Params) -> str:
    return "服务器重启" if params.get("reason") == "restarted" else "缓存被清空"


def _evictors(params: Params) -> str:
    by, count = params.get("by"), whole(params, "by_count") or 0
    if not by:
        return ""
    shown = str(by).count(",") + 1
    more = f" 和另外 {count - shown} 个请求" if count > shown else ""
    return f"，为 {by}{more}腾出空间"


def _cost(params: Params) -> str:
    tokens, ms = whole(params, "lost_tokens"), number(params, "lost_ms")
    if tokens is None:
        return ""
    cost = f"，约 {_time(ms)}" if ms is not None else ""
    return f"：{tokens} 个 token 必须重新计算{cost}"


def _join(*sentences: str | None) -> str | None:
    return "".join(sentence for sentence in sentences if sentence) or None


def _some(value: int | float | str | None) -> int | float | str:
    return "未知数量" if value is None else value


def _time(ms: float | None) -> str:
    if ms is None:
        return "一段时间"
    return f"{_plain(ms)} 毫秒" if ms < 10_000 else f"{ms / 1000:.1f} 秒"


def _plain(ms: float) -> str:
    return f"{ms:.1f}" if abs(ms) < 10 else f"{ms:.0f}"


def _padded(text: str) -> str:
    return f" {text}" if text[:1].isdigit() else text


def _when(params: Params) -> str:
    """How long before the send; nothing where only the order is known."""
    seconds = number(params, "seconds")
    if seconds is None:
        return ""
    if seconds < 1:
        return "不到一秒之前"
    return f"{seconds:.0f} 秒前" if seconds < 120 else f"{seconds / 60:.0f} 分钟前"
