"""What always holds in a ledger, whatever it was told. Tests ask after every step; nothing else does.

Imports only its own package.
"""

from collections.abc import Iterator

from .block_cache import BlockCache
from .block_columns import columns_of
from .block_slots import FOREVER, ROOT, UNKNOWN_DEPTH, BlockSlots
from .child_lists import NOWHERE
from .ledger import Ledger
from .prefix_match import cacheable_tokens
from .rank_book import RankBook
from .request_records import block_table
from .requests import Request
from .servers import ServerBook


def violations(ledger: Ledger) -> list[str]:
    """Sentences on what doesn't hold; empty where all is well."""
    return list(_violations(ledger))


def _violations(ledger: Ledger) -> Iterator[str]:
    state = ledger.state
    for server in state.servers.values():
        for book in server.ranks.values():
            where = f"{server.id} rank {book.rank}"
            yield from (f"{where}: {text}" for text in _cache(book.cache))
            yield from (f"{where}: {text}" for text in _rank(ledger, book))
        yield from _rates(server)
    kept = list(state.requests.newest_first())
    if len(kept) > state.requests.bound:
        yield f"{len(kept)} requests kept of at most {state.requests.bound}"
    for request in kept:
        yield from (f"{request.id}: {text}" for text in _request(request))


def _cache(cache: BlockCache) -> Iterator[str]:
    if cache.unknown_removes < 0:
        yield "unknown removes below 0"
    for key, table in cache.tables.items():
        yield from (f"table {key}: {text}" for text in _slots(table, cache.number))
    if cache.walked is not None and cache.walked not in cache.tables.values():
        yield "walks a table that isn't kept"


def _slots(table: BlockSlots, number: int) -> Iterator[str]:
    resident = [slot for start, end in table.resident_runs() for slot in range(start, end)]
    if resident != [slot for slot, copies in enumerate(table.copies) if copies]:
        yield "the flags of resident slots differ from their copies"
    if sum(table.tokens[slot] is None for slot in resident) != table.sparse:
        yield f"{table.sparse} sparse blocks by the count, others by the column"
    if sum(max(table.holders[slot] - 1, 0) for slot in resident) != table.shared:
        yield f"{table.shared} shared by the count, others by the column"
    if sum(table.copies[slot] - 1 for slot in resident) != table.spare:
        yield f"{table.spare} spare copies by the count, others by the column"
    if len(resident) != table.resident:
        yield f"{table.resident} resident by the count, {len(resident)} by the column"
    if any(copies < 0 for copies in table.copies):
        yield "copies below 0"
    orphans = [s for s in resident if table.depth[s] == UNKNOWN_DEPTH and table.tokens[s] is not None]
    if len(orphans) != table.orphans:
        yield f"{table.orphans} orphans by the count, {len(orphans)} by the columns"
    if not table.uncertain <= set(resident):
        yield "an uncertain block isn't resident"
    if len(table._removed) > table._max_removed:
        yield "more removed blocks remembered than allowed"
    for block_hash, slot in table._slot_of.items():
        if table.hash[slot] != block_hash:
            yield f"slot {slot} is indexed under another hash"
        yield from _slot(table, slot, number)
    for key, slot in table._children.items():
        if (table.parent[slot], table.tokens[slot]) != key[:2]:
            yield f"slot {slot} is indexed under another parent"
    for slot in table._free:
        if table.hash[slot] is not None or table.copies[slot] or table._below.first[slot] != NOWHERE:
            yield f"free slot {slot} isn't blank"


def _slot(table: BlockSlots, slot: int, number: int) -> Iterator[str]:
    appeared, gone = table.appeared[slot], table.gone[slot]
    if table.copies[slot]:
        if not (appeared <= number and gone == FOREVER):
            yield f"resident slot {slot} appeared at {appeared} and goes at {gone}, now is {number}"
        if not table.resident_at(slot, number):
            yield f"resident slot {slot} isn't resident now"
    elif appeared != FOREVER and not appeared <= gone <= number:
        yield f"removed slot {slot} appeared at {appeared} and went at {gone}"
    if table.tokens[slot] is None:
        return
    parent = table.parent[slot]
    if table.child(parent, table.tokens[slot] or b"", table.extra[slot]) is None:
        yield f"slot {slot} isn't found by its tokens"
    if list(table.children(parent)).count(slot) != 1:
        yield f"slot {slot} isn't once among its parent's children"
    if parent != ROOT and table.depth[parent] != UNKNOWN_DEPTH and table.depth[slot] != table.depth[parent] + 1:
        yield f"slot {slot} is at depth {table.depth[slot]}, its parent at {table.depth[parent]}"


def _rank(ledger: Ledger, book: RankBook) -> Iterator[str]:
    state = ledger.state
    for block_hash, serials in book.sharing._holders.items():
        for serial in serials:
            request = state.requests.by_serial(serial)
            if request is None or block_hash not in request.hashes:
                yield f"request {serial} is said to hold a block that it doesn't"
    for request in book.open.values():
        if not request.running:
            yield f"{request.id} has ended, and its forecast still moves"
    for key, waiting in book.expected.items():
        if key[0] not in book.expected:
            yield "a block that is waited for stands under another parent than its own"
        if not waiting or any(request.expecting.get(book.rank) != key for request in waiting):
            yield "a request waits for a block that it doesn't expect"
    columns = columns_of(book)
    walked = book.cache.walked
    for start, end in walked.resident_runs() if walked is not None and book.sharing.holds_any else ():
        for slot in range(start, end):
            if walked is not None and walked.holders[slot] != len(book.sharing.holders(walked.hash[slot] or 0)):
                yield f"the count of requests that hold slot {slot} is wrong"
    if len(columns.hash) != book.cache.resident:
        yield "the columns don't hold the resident blocks"
    for row, parent_row in enumerate(columns.parent_row):
        depth = columns.depth[row]
        if parent_row is not None and depth is not None and columns.depth[parent_row] != depth - 1:
            yield f"row {row} doesn't follow its parent row"


def _rates(server: ServerBook) -> Iterator[str]:
    for reading in server.shown_rates:
        # Counters are the server's own, and are shown as they came.
        most = reading.query_tokens if reading.basis != "counter" else reading.hit_tokens
        if not 0 <= reading.hit_tokens <= most or reading.query_tokens < 0:
            yield f"{server.id}: {reading.window} by {reading.basis}: {reading.hit_tokens} of {reading.query_tokens}"
        if (reading.ratio is None) != (reading.query_tokens == 0):
            yield f"{server.id}: {reading.window} by {reading.basis} has a ratio of nothing, or none of something"


def _request(request: Request) -> Iterator[str]:
    size, length = request.block_size, request.prompt_tokens
    if request.predicted is not None and size and length is not None:
        if not 0 <= request.predicted <= cacheable_tokens(length, size):
            yield f"forecast of {request.predicted} tokens for a prompt of {length}"
        if request.predicted % size:
            yield f"forecast of {request.predicted} tokens in blocks of {size}"
    table = block_table(request)
    if table is None:
        return
    if not len(table.hash) == len(table.tokens) == len(table.state):
        yield "columns of the block table differ in length"
    if sum(table.tokens) < (length or 0):
        yield "the block table holds less than the prompt"
    order = {"reused": 0, "computed": 1, "pending": 2, "partial": 3, "decode": 3}
    ranks = [order[state] for state in table.state]
    if ranks != sorted(ranks):
        yield f"states of the block table out of order: {table.state}"
    if not request.running and request.ended is not None and request.ended.outcome == "ok" and not request.verdict:
        yield "ended without a verdict"
