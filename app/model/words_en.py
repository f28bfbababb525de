"""What causes are called in English: the sentences of `sentences`, by key. Imports nothing but `language`."""

from .language import Language

ENGLISH = Language(
    joiner=" ",
    ms="ms",
    s="s",
    unknown="unknown",
    unknown_count="an unknown number of {noun}s",
    unknown_time="some time",
    sentences={
        "inferred": "Inferred from KV events: the server didn't report it.",
        "by_router": "As a router in front of the servers reported it: of a split into prefill and decode nodes, "
        "it may be the decode node's.",
        # What was reused.
        "reuse.blocks": "Reused {reused_blocks} of {prompt_blocks:block}.",
        "reuse.tokens": "Reused {cached_tokens:token} of {prompt_tokens}.",
        "reuse.ttft": "First token after {ttft_ms:time}{clock}.",
        "reuse.ttft.slower": "First token after {ttft_ms:time}{clock}; a cold request of about this length took "
        "{reference_ttft_ms:time}.",
        "reuse.ttft.faster": "First token after {ttft_ms:time}{clock} instead of {reference_ttft_ms:time}.",
        "reuse.clock": " ({engine_ttft_ms:time} by the server's own clock)",
        "full_hit.detail": "All that can be reused was{counted} only full blocks are cached.",
        "exact_multiple": "The prompt fills exactly one block of {block_size} tokens, which is cached, and can't be "
        "reused.",
        "exact_multiple.detail": "The last token is always computed anew, and its block with it. One token more, "
        "and it is reused.",
        "exact_multiple.why": "All that can be reused was{counted} the last token is always computed anew, and "
        "its block with it.",
        "exact_multiple.of": "The {prompt_tokens} tokens are an exact multiple of the block of {block_size}.",
        "counted": ": {computed_tokens:token} computed, since",
        "counted.unknown": ";",
        "computed": "{computed_tokens} of {prompt_tokens:token} {computed_tokens:was|were} computed.",
        "speed.saved": "Saved about {saved_ms:time} ({saved_low_ms:plain} to {saved_high_ms:plain}).",
        "speed.queue": "Not faster all the same: it waited {queue_ms:time} in the server's queue.",
        "speed.busy": "Not faster all the same: other requests ran at the same time.",
        "speed.tiny": "Not faster: what was reused is too little to be felt.",
        "speed.decode": "{decode_share:percent} of the whole time went into the answer, which reuse doesn't shorten.",
        # Where the prompt departs from what is known.
        "departs": "It departs from the nearest known prompt.",
        "departs.nowhere": "All {shared_tokens:token} stood in an earlier prompt.",
        "departs.where": "token {token}, in block {block}",
        "departs.ends": "The nearest earlier prompt ends after {shared_tokens:token}: new from {where}.",
        "departs.at": "Shares {shared_tokens:token} with the nearest known prompt, then differs at {where}{tail}",
        "departs.tail": ": {blocks_after:block} from there on had to be computed.",
        "departs.tail.unknown": ".",
        "straddle": "That block wasn't full, so {lost} had to be computed again.",
        "straddle.lost": "the {straddling_tokens:token} in it",
        "straddle.lost.unknown": "those in it",
        "moved": "{changed} changed, and {constant_tokens:token} after that are the same as before: they were computed "
        "again because of what stands before them.",
        "moved.span": "{span_tokens:token} from token {token} on",
        "moved.something": "Something before token {token}",
        "first_seen": "Seen for the first time: all {prompt_tokens:token} were computed.",
        "first_seen.detail": "Send it again to reuse it.",
        "first_seen.shares": "It shares {shared_tokens:token} with the nearest known prompt, less than one block of "
        "{block_size}. Send it again to reuse it.",
        "too_short": "The prompt has {prompt_tokens:token}: too short to reuse a block of {block_size} tokens.",
        "too_short.detail": "Only full blocks are cached, and the last token is always computed anew.",
        "too_short.shares": "Shares {shared_tokens:token} with the nearest known prompt, less than one block of "
        "{block_size} tokens.",
        "too_short.shares.detail": "Only full blocks are reused: the constant part must fill at least one.",
        "diverges.detail": "A prefix is reused only up to the first token that differs. Put what changes last.",
        "variable_first.detail": "Put what changes behind what stays: a prefix is reused only up to the first "
        "difference.",
        "alignment.detail": "Only full blocks are cached; a smaller block size loses less at each end.",
        # What the server hasn't got any more, has elsewhere, or leaves.
        "evicted": "Its prefix was resident before, and was evicted{when}{evictors}{cost}.",
        "evicted.detail": "The pool was full, and the blocks unused for longest had to go. More KV memory, or fewer "
        "distinct prompts at once, keeps it.",
        "reset": "Its prefix was resident until {emptied}{when}.",
        "reset.detail": "It is reused again from now on.",
        "emptied": "the cache was emptied",
        "emptied.restarted": "the server restarted",
        "when.just": " less than a second earlier",
        "when.seconds": " {n} s earlier",
        "when.minutes": " {n} min earlier",
        "evictors": " to make room for {by}{more}",
        "evictors.more": " and {others:other}",
        "cost": ": {lost_tokens:token} had to be computed again{time}",
        "cost.time": ", about {lost_ms:time}",
        "still_computing": "Its prefix was still being computed by {whose} at the same time.",
        "still_computing.detail": "Send the first request of a burst alone, and the others once its first token is "
        "there.",
        "computing.by": "request {by}, which ran",
        "computing.by.unknown": "a request that ran",
        "other_salt": "The same tokens are cached, but not under this request's cache salt.",
        "other_salt.unsalted": "The same tokens are cached, but under a cache salt, and this request has none.",
        "other_salt.detail": "Blocks are shared only between requests with the same salt.",
        "other_adapter": "The same tokens are cached, but for the adapter {adapter}.",
        "other_adapter.base": "The same tokens are cached, but for the base model.",
        "other_adapter.detail": "Blocks are shared only within one adapter.",
        "other_model": "The same tokens were computed before, but for the model {other_model}.",
        "other_model.unknown": "The same tokens were computed before, but for another model.",
        "other_model.detail": "Blocks are shared only within one model.",
        "other_image": "The same tokens are cached, but with other images or embeddings.",
        "other_image.detail": "Put images behind the text that stays the same.",
        "other_rank": "Its prefix is resident on rank {other_rank}, but rank {rank} served the request.",
        "other_rank.detail": "Each data-parallel rank has a cache of its own: route by prefix or session, or let each "
        "rank warm up once.",
        "other_server": "Its prefix is resident on another server, {other_server}.",
        "other_server.detail": "Blocks are never shared between processes: route by prefix or session.",
        "coarse_alignment": "{found}, but this server {habit}.",
        "coarse_alignment.detail": "Learned from its answers. Speculative decoding and hybrid models do so.",
        "coarse.matched": "{matched_tokens:token} match what is cached",
        "coarse.matched.unknown": "More matches what is cached",
        "coarse.drops": "drops the last {dropped_blocks:matched block}",
        "coarse.unit": "reuses multiples of {unit_tokens} tokens only",
        "coarse.and": " and ",
        "coarse.less": "reuses less than matches",
        # The same beside what was reused.
        "rest.evicted": "Block {block} was resident before, and was evicted{when}{evictors}{cost}.",
        "rest.reset": "The rest was resident until {emptied}{when}.",
        "rest.unexplained": "Block {block} seemed to be resident too, but the server didn't reuse it.",
        "rest.still_computing": "The rest was still being computed by {whose} at the same time.",
        "rest.other_rank": "A longer part of it is resident on rank {other_rank}, but rank {rank} served the request.",
        "rest.other_server": "A longer part of it is resident on another server, {other_server}.",
        # What isn't known, or went wrong.
        "cache_off": "Prefix caching is off on this server.",
        "cache_off.detail": "Start vLLM without --no-enable-prefix-caching.",
        "lookup_skipped": "The cache lookup was skipped, because the request asks for log probabilities of its prompt.",
        "lookup_skipped.detail": "Ask without prompt_logprobs to reuse it.",
        "inconsistent": "The server reports {cached_tokens} cached of {prompt_tokens} prompt tokens, which can't be.",
        "inconsistent.detail": "The figures are shown as they came, and left out of every rate.",
        "unexplained": "Nothing was reused.",
        "unexplained.seemed_resident": "Its first block seemed to be resident when it was sent: the server says "
        "otherwise.",
        "unexplained.no_events": "Why can't be known without KV events: start vLLM with --kv-events-config.",
        "unexplained.mismatch": "Why can't be known: the token ids at hand aren't the server's ({found_tokens} against "
        "{prompt_tokens}).",
        "unexplained.no_tokens": "Why can't be known without the prompt's token ids.",
        "unknown": "How much was reused is not known.",
        "missing.usage": "The response carried no usage. Ask for it with stream_options.include_usage, or let the "
        "dashboard: --mode enrich.",
        "missing.details": "This server does not report cached tokens per request; start vLLM with "
        "--enable-prompt-tokens-details.",
        "missing.details_here": "The server left out the cached tokens of this request, although it reports them for "
        "others: probably 0.",
        "missing.sequences": "Several sequences in one call can't be told apart.",
        "failed": "The request failed.",
        "failed.client_gone": "The client closed the connection before the answer was complete.",
        "failed.http_error": "The server refused the request.",
        "failed.stream_error": "The server reported an error within the stream.",
        "failed.empty": "The server ended the answer without content.",
        "failed.truncated": "The answer broke off before its end.",
        "failed.timed_out": "The server didn't answer in time.",
        "failed.server_gone": "The connection to the server was lost.",
        "failed.status": "The server refused the request with status {status}.",
        "failed.closed": "The server's connection was closed {closed_after_ms:time} after the request was sent; "
        "when the server stopped, only its own running requests tell.",
    },
)
