"""Joins requests and blocks: by the session id that the dashboard issued, else by tokens and order.

A request whose prompt is known is walked along the blocks that the server named; where the walk ends, the request
waits for the next block of its prompt to be stored, and whoever waited longest is taken for its owner. Imports only
`ids`, `observations` and its own package.
"""

from ..ids import BlockHash, RequestId
from ..observations import BlockStored
from .block_cache import Stored
from .block_keys import TOKEN_BYTES
from .block_slots import ROOT, BlockSlots
from .owners import computing_holder
from .prefix_match import PromptKeys, known_path
from .rank_book import RankBook
from .request_book import RequestBook
from .requests import Request
from .servers import ServerBook


class Joiner:
    """Changes requests and the books of ranks; emits nothing."""

    def __init__(self, requests: RequestBook) -> None:
        self._requests = requests

    # --- requests move ---

    def sent(self, request: Request, server: ServerBook) -> None:
        """A request reached the server: notes what had happened there until now."""
        if len(server.ranks) == 1:
            request.rank = next(iter(server.ranks))
        for rank, book in server.ranks.items():
            request.as_of[rank] = book.cache.number
            book.open[request.id] = request
        request.block_size = server.block_size
        if request.sent.skips_cache_read:
            server.skipping[request.id] = request
        if request.sent.session_id is not None:
            server.sessions[request.sent.session_id] = request

    def rank_appeared(self, server: ServerBook, book: RankBook) -> None:
        """A rank is heard of for the first time: nothing had been heard of it when running requests were sent, and
        it may be the one that serves them."""
        for request in self._requests.running():
            if request.sent.server != server.id:
                continue
            request.as_of.setdefault(book.rank, 0)
            book.open[request.id] = request
            if not request.rank_sure:
                request.rank = book.rank if len(server.ranks) == 1 else None
                self.follow(request, server)

    def learn_prompt(self, request: Request, server: ServerBook, packed: bytes | None, length: int) -> bool:
        """The prompt's tokens are known: packed, None where one is no token id, and how many. Returns whether they can
        be walked."""
        request.tokens_length = length
        if packed is None or request.sent.sequences != 1:
            return False
        request.prompt = PromptKeys(packed, request.sent.salt, request.sent.lora_name)
        self.follow(request, server)
        return True

    def follow(self, request: Request, server: ServerBook) -> bool:
        """Walks the request on along the blocks known now. Returns whether its block table grew."""
        request.block_size = server.block_size or request.block_size
        if request.prompt is None:
            return False
        ranks = [request.rank] if request.rank is not None else list(server.ranks)
        grew = False
        for rank in ranks:
            grew = self._follow_on(request, server.rank(rank)) or grew
        return grew

    def drop_prompt(self, request: Request, server: ServerBook) -> None:
        """The token ids turned out not to be the server's: nothing that was drawn from them holds."""
        _unexpect_all(request, server)
        for book in server.ranks.values():
            book.let_go(request.serial, request.hashes)
        request.hashes = []
        request.prompt = None
        request.predicted, request.predicted_sure = None, False
        request.tokens_length = None

    def ended(self, request: Request, server: ServerBook) -> None:
        """The request ended: what comes now doesn't move its forecast. One whose prompt was computed still waits for
        blocks of its own, which may be announced late."""
        for book in server.ranks.values():
            book.open.pop(request.id, None)
        server.skipping.pop(request.id, None)
        if not request.served:
            _unexpect_all(request, server)

    def stop_waiting(self, request: Request, server: ServerBook) -> None:
        """Nothing more of this request is expected from the event stream."""
        _unexpect_all(request, server)

    def forget(self, request: Request, server: ServerBook) -> None:
        """The request is no longer kept."""
        self.ended(request, server)
        _unexpect_all(request, server)
        session = request.sent.session_id
        if session is not None and server.sessions.get(session) is request:
            del server.sessions[session]
        for book in server.ranks.values():
            book.let_go(request.serial, request.hashes)

    # --- blocks move ---

    def stored(
        self,
        book: RankBook,
        server: ServerBook,
        event: BlockStored,
        stored: Stored,
        owner: Request | None,
        at_s: float,
    ) -> tuple[Request | None, list[Request]]:
        """A store was applied. Returns the request that caused it, where known, and those whose table grew."""
        grown: list[Request] = []
        waiting = _waiting_for(book, event, stored) if book.expected else []
        if owner is None and waiting:
            owner = waiting[0]
        if owner is None and event.block_hashes and stored.reading == "stored":
            owner = computing_holder(self._requests, book, event.block_hashes[0], stored.depth, at_s)
        if owner is not None:
            self._own(owner, book, server, event, stored, grown)
        for request in waiting:
            if self._follow_on(request, book):
                grown.append(request)
        return owner, grown

    def _settle(self, owner: Request, book: RankBook, server: ServerBook) -> None:
        """Its own blocks say which rank served it."""
        if owner.rank != book.rank and owner.hashes:
            for other in server.ranks.values():
                other.let_go(owner.serial, owner.hashes)
            owner.hashes = []
        for other in server.ranks.values():
            if other is not book:
                other.expected.leave(owner)
        owner.rank, owner.rank_sure = book.rank, True
        self._follow_on(owner, book)

    def _own(
        self,
        owner: Request,
        book: RankBook,
        server: ServerBook,
        event: BlockStored,
        stored: Stored,
        grown: list[Request],
    ) -> None:
        if owner.rank != book.rank or not owner.rank_sure:
            self._settle(owner, book, server)
        table = book.cache.walked
        if (
            stored.tokens is None
            or stored.depth is None
            or table is not book.cache.tables.get((event.group_idx, event.medium))
        ):
            return
        owner.block_size = stored.tokens
        if stored.reading == "report":
            owner.reported_blocks = max(owner.reported_blocks or 0, stored.depth + len(event.block_hashes))
        elif owner.first_own_depth is None:
            owner.first_own_depth = stored.depth
        # Without the prompt's tokens, the blocks that the server names for it are all there is.
        if owner.prompt is None and owner.sent.sequences == 1 and stored.depth <= len(owner.hashes):
            fresh = list(event.block_hashes[len(owner.hashes) - stored.depth :])
            if fresh:
                book.hold(owner.serial, fresh)
                owner.hashes.extend(fresh)
                grown.append(owner)

    def advance(self, book: RankBook, owner: Request | None, *, fresh: bool, replayed: bool) -> None:
        """Where nobody says when a batch was published, moves what open requests count as before their send: stores
        that arrived after it, but belong to requests that had ended, do; anything else ends that."""
        if not book.open:
            return
        if owner is None and not replayed:
            if fresh:
                book.open.clear()
            return
        end_s = owner.ended.at_s if owner is not None and owner.ended is not None else None
        for request in list(book.open.values()):
            if owner is None or (end_s is not None and end_s <= request.sent.at_s):
                request.as_of[book.rank] = book.cache.number
            elif fresh:
                del book.open[request.id]

    def overtaken(self, book: RankBook, published_s: float) -> dict[RequestId, Request]:
        """Open requests that were sent after a batch was published, although it arrives only now. They are taken out
        until `caught_up`."""
        later = {name: request for name, request in book.open.items() if request.sent.at_s > published_s}
        for name in later:
            del book.open[name]
        return later

    def caught_up(self, book: RankBook, overtaken: dict[RequestId, Request]) -> None:
        """The batch was applied: all of it happened before these requests, and what follows after all others."""
        for request in overtaken.values():
            request.as_of[book.rank] = book.cache.number
        book.open = overtaken

    def cleared(self, book: RankBook) -> None:
        """The cache was emptied, which a server does only between requests: before those that were sent since."""
        for request in book.open.values():
            request.as_of[book.rank] = book.cache.number

    # --- inside ---

    def _follow_on(self, request: Request, book: RankBook) -> bool:
        """Walks on in one rank's blocks, and waits for the next one there."""
        book.expected.leave(request)
        prompt, table = self._sequence(request), book.cache.walked
        size = request.block_size
        if prompt is None or not size:
            return False
        fresh: list[BlockHash] = []
        if table is not None and table.block_size == size:
            start = table.find(request.hashes[-1]) if request.hashes else ROOT
            if start is None:
                fresh = _hashes(table, known_path(table, prompt))[len(request.hashes) :]
            else:
                fresh = _hashes(table, known_path(table, prompt, start, len(request.hashes)))
        single = request.rank is not None or len(request.as_of) <= 1
        if fresh and single:
            request.hashes.extend(fresh)
            book.hold(request.serial, fresh)
        _expect(request, book, prompt, request.hashes if single else fresh, size)
        return bool(fresh) and single

    def _sequence(self, request: Request) -> PromptKeys | None:
        """Prompt and answer as far as known; the last token sampled is computed from by nobody."""
        prompt = request.prompt
        if prompt is None or not request.output:
            return prompt
        return PromptKeys(prompt.packed + request.output[:-TOKEN_BYTES], prompt.salt, prompt.lora_name)


def _waiting_for(book: RankBook, event: BlockStored, stored: Stored) -> list[Request]:
    """Those who waited for blocks that were just stored, and no longer do."""
    table = book.cache.walked
    if table is None or stored.tokens is None or not stored.fresh:
        return []
    parent = event.parent_hash
    hashes = event.block_hashes if stored.fresh < len(event.block_hashes) else event.block_hashes[:1]
    found: list[Request] = []
    for block_hash in hashes:
        slot = table.find(block_hash)
        tokens = table.tokens[slot] if slot is not None else None
        if slot is not None and tokens is not None:
            found.extend(book.expected.take((parent, tokens, table.extra[slot])))
        parent = block_hash
    return found


def _expect(request: Request, book: RankBook, prompt: PromptKeys, known: list[BlockHash], size: int) -> None:
    chunk = prompt.chunk(len(known), size)
    if len(chunk) == size * TOKEN_BYTES:
        book.expected.wait(request, (known[-1] if known else None, chunk, prompt.extra(len(known))))


def _unexpect_all(request: Request, server: ServerBook) -> None:
    for book in server.ranks.values():
        book.expected.leave(request)


def _hashes(table: BlockSlots, path: list[int]) -> list[BlockHash]:
    return [block_hash for block_hash in (table.hash[slot] for slot in path) if block_hash is not None]
