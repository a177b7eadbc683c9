"""Every bound, with its unit and its source. Nothing below reads these numbers from anywhere else.

Thresholds a laptop may want to lower (partition bytes, partition RU/s, logical bytes) are settings
with these defaults; the rest are fixed.
"""

KB = 1024
MB = 1024 * KB
GB = 1024 * MB

# --- items (nosql-rest 2.6) ---
ITEM_BYTES_MAX = 2 * MB  # UTF-8 JSON of the user's body
ITEM_DEPTH_MAX = 128  # nesting of objects and arrays
ID_BYTES_MAX = 1023
NAME_CHARACTERS_MAX = 255  # database and container names
TTL_SECONDS_MAX = 2_147_483_647

# --- partition keys (nosql-rest 2.6, partitioning 1.8) ---
PARTITION_KEY_BYTES_MAX = 2048  # hash V2; V1 hashes only the first 100 characters
PARTITION_KEY_V1_CHARACTERS = 100
HIERARCHICAL_LEVELS_MAX = 3
LOGICAL_BYTES_MAX = 20 * 1000**3  # GB is decimal in limits; configurable
PARTITION_BYTES_MAX = 50 * 1000**3  # one physical partition; configurable
CLASSIC_BYTES_MAX = 10 * 1000**3  # of both in 2018: `throughput.profile = "classic"`
PARTITION_RU_MAX = 10_000  # RU/s of one physical partition; configurable

# --- throughput (partitioning 1.4, 1.6, 1.8) ---
THROUGHPUT_RU_MAX = 1_000_000  # RU/s of a container or shared database
SHARED_CONTAINERS_MAX = 25  # that share the throughput of one database
BURST_RU_MAX = 3000  # RU/s while spending the bank; partitions with as much of their own have none
BURST_SECONDS = 300  # of unused throughput that the bank holds
METADATA_RU = 240  # RU/s of an account for calls about databases, containers and throughput

# --- synthetic keys (partitioning 6.3: k = 92,104 is the largest of its table) ---
SYNTHETIC_PARTS_MAX = 16
SYNTHETIC_SEPARATOR_CHARACTERS_MAX = 16
SYNTHETIC_SUFFIXES_MAX = 100_000
SYNTHETIC_CANDIDATES_MAX = 100_000  # keys computed for one read

# --- requests ---
BATCH_OPERATIONS_MAX = 100
BATCH_BYTES_MAX = 2 * MB
PATCH_OPERATIONS_MAX = 10
PAGE_BYTES_MAX = 4 * MB
PAGE_ITEMS_DEFAULT = 100
FEED_SCAN_ROWS_MAX = 20_000  # log rows looked at for one page of a change feed
PAGE_ITEMS_MAX = 1000  # what a page holds when the caller leaves the size to us

# --- tables (table 11, 12) ---
TABLE_NAME_CHARACTERS_END = 255  # a name has fewer
TABLE_ROW_KEY_BYTES_MAX = 255  # Cosmos DB: a row key is the id of an item
STORAGE_KEY_BYTES_MAX = 1 * KB  # Storage: of either key, in UTF-16
STORAGE_ENTITY_BYTES_MAX = 1 * MB
STORAGE_VALUE_BYTES_MAX = 64 * KB  # Storage: of one property; strings in UTF-16
TABLE_PROPERTIES_MAX = 252  # and three of the system
TABLE_PROPERTY_CHARACTERS_MAX = 255  # of a name
TABLE_FILTER_CHARACTERS_MAX = 15 * KB  # the target has no room for more
TABLE_FILTER_TERMS_MAX = 500  # comparisons of one filter; ours
TABLE_FILTER_DEPTH_MAX = 100  # of parentheses and nots; ours
TABLE_PAGE_ENTITIES_MAX = 1_000  # Storage refuses a $top above
TABLE_PAGE_TABLES_MAX = 1_000
TABLE_MERGE_ROUNDS_MAX = 200  # a merge reads, then writes unless the entity changed; then again
TABLE_POLICIES_MAX = 5  # stored access policies of one table (Storage)
TABLE_CORS_RULES_MAX = 5
TABLE_RETENTION_DAYS_MAX = 365

# --- containers (nosql-rest 2.6) ---
UNIQUE_KEYS_MAX = 10
UNIQUE_KEY_PATHS_MAX = 16
INDEX_PATHS_MAX = 1500  # included and excluded, each
COMPOSITE_PATHS_MAX = 8  # properties of one composite index
COMPOSITE_INDEXES_MAX = 100
COMPUTED_PROPERTIES_MAX = 20  # nosql-query 7.4
VECTOR_DIMENSIONS_MAX = 4096  # nosql-query 7.1
FLAT_VECTOR_DIMENSIONS_MAX = 505  # of a vector in a flat index
QUANTIZATION_BYTES_MAX = 512  # of a quantized vector, and no more than it has dimensions
VECTOR_SEARCH_LIST_MIN = 25  # as the service's message says; its documentation says 10
VECTOR_SEARCH_LIST_MAX = 500
VECTOR_SHARD_PATHS_MAX = 1
DATABASES_AND_CONTAINERS = 500  # of an account, unless its settings say more
DATABASES_AND_CONTAINERS_MAX = 100_000
STORED_PROCEDURES_MAX = 100
TRIGGERS_MAX = 50
FUNCTIONS_MAX = 50
FEED_RETENTION_SECONDS_MAX = 30 * 24 * 3600
PHYSICAL_PARTITIONS_MAX = 10_000  # of one container, at creation

# --- users and keys of a database (the numbers are ours) ---
USERS_MAX = 10_000
PERMISSIONS_MAX = 1_000  # of one user
ENCRYPTION_KEYS_MAX = 100
TOKEN_SECONDS_DEFAULT = 3600  # life of a resource token
TOKEN_SECONDS_MAX = 24 * 3600

# --- query text (nosql-query 8) ---
QUERY_CHARACTERS_MAX = 512 * KB
QUERY_TOKENS_MAX = 100_000  # words and signs of a text; ours: each costs microseconds to parse
QUERY_DEPTH_MAX = 128  # nesting of a query text; more could not be walked or compiled by recursion
QUERY_JOINS_MAX = 10
QUERY_UDF_CALLS_MAX = 10
QUERY_IN_ITEMS_MAX = 16_000
QUERY_LOGICAL_TERMS_MAX = 2_000  # operands of AND, and of OR, in one query
QUERY_ERRORS_MAX = 100  # reported for one text
QUERY_COUNT_MAX = 4_294_967_295  # TOP, OFFSET and LIMIT
QUERY_GROUPS_MAX = 500_000  # cells of the table of groups, or different rows of a DISTINCT
QUERY_KEYS_MAX = 1_000  # partition keys that a filter is narrowed to; more, and all are read
QUERY_ELEMENTS_MAX = 1_000_000  # of arrays that FROM and JOIN go through for one item; ours
QUERY_STEPS_FREE = 200  # for each item and one more: ordinary joins and functions cost no more
QUERY_SECONDS_MAX = 20.0  # of one request: past it the query ends with an error
QUERY_BYTES_MAX = 64 * MB  # kept by one query: arrays, groups, sorted rows
CONDITION_STEPS_MAX = 100_000  # of the conditions of patches in one request: they run with writes
CONDITION_SECONDS_MAX = 1.0  # the same
CONDITION_BYTES_MAX = 8 * MB  # the same
QUERY_PAGE_SECONDS = 5.0  # after which a page ends with what it has
QUERY_SNAPSHOT_SECONDS = 1.0  # of one read transaction; a page may need several

# --- scripts (scripts 2.2, 3, 7.3; the numbers without a source are ours) ---
SCRIPT_SECONDS = 5.0  # of one run, waiting for its turn not counted
SCRIPT_SOFT_SHARE = 0.8  # of that, after which operations are no longer accepted
SCRIPT_STRIKE_SHARE = 0.4  # CPU time of a run that counts against its script: 2 s of 5
SCRIPT_STRIKES_MAX = 6  # runs over their bounds before a script is blocked
SCRIPT_STRIKES_KEPT = 10_000  # scripts whose strikes are remembered
SCRIPT_HEAP_BYTES = 64 * MB
SCRIPT_STACK_BYTES = 1 * MB
SCRIPT_PROCESS_BYTES = 336 * MB  # address space of a child besides the heap
SCRIPT_CHILDREN = 2  # processes that run scripts at once, and that are kept
SCRIPT_LONG_SECONDS = 0.03  # of CPU time without an answer; then a child gets a lower priority
SCRIPT_LONG_NICENESS = 10  # more than that of the server
SCRIPT_CHILD_RUNS = 2_000  # after which a child is replaced
SCRIPT_CHILD_RSS_BYTES = 24 * MB  # or when it has grown larger than this; a fresh one has 11
SCRIPT_START_SECONDS = 30.0  # for a child to begin; a busy machine lets it wait
SCRIPT_FRAME_BYTES_MAX = 32 * MB  # of one answer of a child
SCRIPT_PENDING_MAX = 10_000  # operations of one run; more are not accepted
SCRIPT_PENDING_BYTES = 8 * MB  # of bodies queued at once
SCRIPT_BLOCK_OPERATIONS = 200  # of those queued, that a child sends at once
SCRIPT_WRITTEN_BYTES_MAX = 32 * MB  # by one run
SCRIPT_MESSAGE_CHARACTERS_MAX = 2 * MB  # of a body that a script sets
SCRIPT_ANSWER_CHARACTERS_MAX = 4 * MB
SCRIPT_LOG_CHARACTERS_MAX = 8 * KB  # travels in a header, percent-encoded
SCRIPT_TEXT_BYTES_MAX = 1 * MB
SCRIPT_RETRIES_MAX = 40  # runs of one script after conflicts with other writers; then 449
SCRIPT_RETRY_SECONDS = 20.0  # after which no further run begins
SCRIPTS_WAITING_MAX = 4_096  # runs waiting for their turn; more are refused with 429
SCRIPT_CHAIN_RUNS = 64  # that follow each other on one snapshot, before they are durable
SCRIPT_CHAIN_SECONDS = 0.1  # age of that snapshot
SCRIPT_CHAIN_ROWS = 20_000  # written on it, in memory
SCRIPT_CONTENDED_SECONDS = 1.0  # runs on a key wait for each other after a conflict on it
SCRIPT_RIDS_RESERVED = 1_000  # at once, for items that scripts are going to write
FUNCTION_ROWS = 500  # rows of one call into JavaScript
FUNCTION_BLOCK_BYTES = 4 * MB  # of arguments of such a call

# --- engine ---
KEY_BYTES_MAX = 507  # LMDB's bound of 511 less a 4-byte space prefix; every engine refuses longer
GROUP_COMMANDS_MAX = 64  # commands in one group
REDO_LOG_BYTES = MB  # records of a data folder's redo log, before they go to LMDB
REDO_ROOM_BYTES = 32 * MB  # that LMDB needs at most for so many records: a page for 128 bytes
REDO_RECORD_BYTES_MAX = 256 * 1024  # a group that changes more is a commit of LMDB by itself
REDO_COMMANDS_MAX = 64  # in the redo log: more share more pages, and others wait longer
REDO_LONE_COMMANDS_MAX = 256  # the same of one caller, who waits once for so many of his writes
REDO_SECONDS_MAX = 0.1  # until what is in the redo log goes to LMDB, however little it is
BULK_OPERATIONS = 250  # of a bulk, in one command: they hold the writer for some 20 ms
LOAD_ITEMS = 2_000  # new items of a bulk, in one command of lists: some 100 ms
LOAD_ITEMS_FIRST = 500  # in the first command, then twice as many each time: the writer begins soon
LOAD_ITEMS_MIN = 16  # fewer go as operations
LOAD_BYTES = 8 * MB  # of their texts, in one command
LOAD_ENTRIES = 60_000  # of their indexed values, in one command
BULK_COMMANDS_AHEAD = 8  # commands of one bulk that wait for the writer or run
GARBAGE_OBJECTS = 100_000  # made between two collections of the youngest generation, in a bulk
QUEUE_COMMANDS_MAX = 10_000  # waiting for the writer; more are refused
BLOCK_CACHE_BYTES = 32 * MB  # decoded blocks of index rows, in each process
READ_SECONDS_MAX = 5.0  # age of a read transaction; an old one makes the LMDB file grow
READERS_MAX = 1024  # LMDB reader slots over all processes
READER_CHECK_SECONDS = 10.0
SPACES_OWN_DATABASE_MAX = 500  # above this, spaces share a sub-database by prefix
MAP_BYTES_DEFAULT = 1024 * GB  # LMDB address space, not disk
RESERVE_BYTES = 64 * MB  # writes are refused when the disk has less than this left
STATEMENT_TIMEOUT_MS = 30_000  # PostgreSQL
POSTGRES_WRITERS = 4  # connections for write groups, one space each at a time
POSTGRES_READERS_MAX = 16  # connections for reads
FEW_ROWS = 64  # of an index that a query on the event loop reads from PostgreSQL at most
FEW_ROW_BYTES = 32 * 1024  # of each item that they name
POSTGRES_WAITING_MAX = 1000  # reads waiting for a connection; more are refused
POSTGRES_CONNECT_SECONDS = 3  # to connect to one host
POSTGRES_POOL_SECONDS = 5.0  # to wait for a connection that others use
POSTGRES_IDLE_SECONDS = 30.0  # after which an idle connection is closed
POSTGRES_DEADLINE_SECONDS = 2.0  # to wait for an answer, after the database's own time-out
POSTGRES_PROBE_SECONDS = 1.0  # between two looks at the database
POSTGRES_IDLE_PROBE_SECONDS = 2.0  # the same while no request comes
POSTGRES_PROBE_DEADLINE_SECONDS = 1.5  # for the answer to a look
POSTGRES_SEARCH_SECONDS = 0.2  # between two tries of all hosts while the database is away
POSTGRES_START_SECONDS = 10.0  # to wait for a database when opening it in process
POSTGRES_ATTEMPTS_MAX = 4  # of one group or read, after deadlocks and lost connections
POSTGRES_CLOCK_SECONDS = 10.0  # between two looks at the database's clock
REPLICA_PROBE_SECONDS = 0.5  # between two looks at a standby that is read from
REPLICA_IDLE_PROBE_SECONDS = 5.0  # the same while there are no reads
REPLICA_DEADLINE_SECONDS = 5.0  # for an answer of a standby; then the primary is asked
REPLICA_LAG_MS_MAX = 10_000  # of a simulated region: old snapshots keep room in the data file
REGIONS_MAX = 32  # of one account
FAILOVER_SECONDS = 30  # for a standby to catch up and to be promoted
SCAN_CHUNK_ROWS = 64  # PostgreSQL: the first chunk of a scan; later ones aim at the bytes below
SCAN_CHUNK_ROWS_MAX = 4096
SCAN_CHUNK_BYTES = 1 * MB
INSERT_BATCH_ROWS = 4096  # rows of one INSERT, or the bytes below if they come first
INSERT_BATCH_BYTES = 8 * MB
DROP_CHUNK_ROWS = 2000  # rows of a dropped space deleted in one transaction

LSN_LEAP = 1 << 20  # after a restore: more than can have been lost

# --- splits and merges ---
MOVE_PIECE_BYTES = 512 * KB  # copied by one command: it must not hold the writer for long
MOVE_PIECE_BYTES_MIN = 64 * KB  # of the smallest piece, when the disk is slow
MOVE_PIECE_ROWS = 1_024  # of a full piece, of a smaller one fewer; each costs the writer 1 to 50 µs
MOVE_PARTS_MAX = 10_000  # logical partitions whose items are added up before they are sorted
MOVE_PIECE_ITEMS = 64  # changes replayed by one command, to begin with
MOVE_READ_ITEMS = 256  # items read in one snapshot
MOVE_PIECE_MS = 10  # a piece that took so much longer than any commit is followed by a smaller one
MOVE_REPLAY_ITEMS_MIN = 8  # of the smallest piece of changes, when the disk is slow
MOVE_REPLAY_ITEMS_MAX = 512  # changes replayed by one command while writers are quicker
MOVE_FREEZE_LSNS = 32  # a parent is frozen when no more changes than this are left to replay
MOVE_REPLAYS_MAX = 100  # pieces after which no less was left; then it is frozen all the same
MOVE_FROZEN_MS = 50  # how long it may then be frozen before its writers go on; twice as long next
SPLIT_POINT_ROWS = 2_000  # logical partitions looked at in one snapshot when a cut is chosen
SPLIT_POINT_PARTS = 20_000  # sums of neighbours that are remembered meanwhile
MOVE_BEAT_MS = 1_000  # how often a runner says that it is alive
FORMER_RANGES_REMEMBERED = 256  # whose consumption goes on in the statistics of their descendants
MOVES_REMEMBERED = 30  # splits and merges that are over, in the record of a container
FORMER_RANGE_SECONDS_MAX = 3_600  # a range that was split or merged may be asked for so long
MOVE_NO_ROOM_MS = 600_000  # until a split for which the disk had no room is tried again
MOVE_SILENT_MS = 5_000  # a move whose runner was silent for this long may be taken over
REKEY_PAGE_ITEMS = 100  # items brought to another key between two notes of how far it is
REKEY_LEFT_MAX = 1_000  # items that find no place under the new key; with more, the key is wrong
REKEY_ROUNDS_MAX = 5  # comparisons of the two containers while the source is being changed
FROZEN_WAIT_MS = 10_000  # how long a request waits for a frozen range before it gives up

# --- budgets and statistics that processes share ---
LEDGER_SLOTS = 16_384  # budgets in a ledger file; beyond, the stalest makes room
LEDGER_PROBES_MAX = 64  # slots in which one budget may live
LEDGER_DIRECT_RU = 2_000  # RU/s below which every operation is charged to the file at once
LEDGER_SLICES_FILE = 50  # slices of a second's budget that processes take from the file
LEDGER_SLICES_POSTGRES = 20  # or from the database
LEDGER_CONNECTIONS_MAX = 4  # PostgreSQL
CLOCK_STEP_SECONDS = 2  # a ledger written further in the future than this is not believed
BILLED_HOURS_MAX = 168  # hours of autoscale above the floor that an offer remembers
LEASE_MS = 10_000  # background work of a silent holder goes to another after this
COUNTER_PARTITIONS_MAX = 10_000  # physical partitions with statistics, per process
COUNTER_SKETCHES_MAX = 200  # of them with top keys, per process
COUNTER_KEYS = 100  # counters of one such sketch
COUNTER_KEYS_WAITING = 1_000  # keys that wait for one of them
COUNTER_KEY_BYTES_WAITING = 100  # of one that may wait; a longer one gets a counter at once
COUNTER_FILES_MAX = 64  # of processes that have ended, still part of the statistics
COUNTER_KEYS_SECONDS = 300  # after which the sketch of top keys begins again; the last one is kept

# --- server ---
TARGET_BYTES_MAX = 16 * KB  # path and query string of a request; longer is 414
HEAD_BYTES_MAX = 64 * KB  # target and headers; tokens of all kinds travel there; more is 431
HEADERS_MAX = 200
SESSION_PARTS_MAX = 64  # ranges in the session token of one answer; it travels in a header
BODY_BYTES_MAX = 4 * MB  # twice the largest legal request, so that the API can say what is wrong
PIPELINE_MAX = 64  # requests of one connection waiting for their turn; then we stop reading
PARALLEL_MAX = 8  # of them running at once
INLINE_MAX = 32  # answers on the event loop before other connections have their turn
CONNECTIONS_MAX = 16_384
FIRST_BYTE_SECONDS = 120.0  # a new connection may be silent for this long
HANDSHAKE_SECONDS = 10.0  # TLS
IDLE_SECONDS = 300.0  # between two requests; longer than the pools of the SDKs keep a connection
STREAM_IDLE_SECONDS = 1_800.0  # MongoDB and Gremlin drivers keep pools of idle connections
HEAD_SECONDS = 20.0  # from the first byte of a request to the end of its headers
BODY_SECONDS = 60.0  # from there to the end of its body
WRITE_SECONDS = 60.0  # without the client taking a single byte of its answer
LINGER_SECONDS = 2.0  # to read on after a refusal, so that the client sees it and no reset
DRAIN_SECONDS = 30.0  # for requests under way when the server is asked to stop
WRITE_BUFFER_BYTES = 256 * KB  # answers not yet taken by the client; above, nothing more is started
THREADS_MAX = 64  # for requests that wait; each is mostly asleep
QUERY_THREADS_MAX = 6  # of a worker, for queries; one container has at most half of them
QUERIES_COMPUTING_MAX = 1  # of them at a time: with more, the loop waits longer for its turn
CLOSE_SECONDS = 5.0  # for what is still being written after the last answer; then it is cut
LAST_REQUESTS_SECONDS = 3.0  # for what is at work without a client when the server stops
QUERY_DRAIN_SECONDS = 1.0  # for queries under way when the server is asked to stop
WAITING_MAX = 4_096  # requests waiting for a thread; more are 503
WAITING_BYTES_MAX = 256 * MB  # their bodies together
SCREENED_BYTES = 64 * KB  # of a body that come in before its signature is checked
TEMPLATE_REQUEST_BYTES_MAX = 48 * KB  # of a request that a template is made of
TEMPLATE_HEAD_BYTES_MAX = 16 * KB  # of a head that a template reads; a longer one is parsed
TEMPLATE_BYTES_MAX = 4 * KB  # of the pattern of a template
TEMPLATE_HEADERS_MAX = 48
RECEIVING_BYTES_MAX = 256 * MB  # bodies that are not whole yet, of all connections; then 503
WORKERS_MAX = 256

# --- topology controls ---
REPORT_KEYS = 20  # keys in the report of a container's partitions
REPORT_KEYS_SCANNED_MAX = 50_000  # items of a container whose largest keys are looked for
HEAT_SECONDS = 300  # of consumption in the heat of a container
HEAT_STEP_SECONDS = 5  # of one bin of it
FAULTS_MAX = 100
FAULT_DELAY_MS_MAX = 60_000
CLOCK_AHEAD_MS_MAX = 100 * 365 * 24 * 3600 * 1000  # what the clock may be put ahead in all
CONTROLS_POLL_MS = 500  # PostgreSQL: how old a server's picture of faults and clock may be
SNAPSHOTS_MAX = 100
SNAPSHOT_NAME_CHARACTERS_MAX = 64
RESTORE_PIECE_BYTES = 512 * KB  # rows brought back by one command, or the number below
RESTORE_PIECE_ROWS = 2_000
EVENT_STREAMS_MAX = 64  # readers of events, per worker
EVENT_POLL_SECONDS = 0.5
PORTAL_IDLE_SECONDS = 600.0  # without a visitor the process of the portal ends
PORTAL_QUIET_SECONDS = 120.0  # a connection to the portal on which nothing moves is closed

# --- terms in index keys ---
TERM_CUT_BYTES = (
    200  # longer strings are cut, marked and hashed; filters are re-checked on the item
)
SHAPES_MAX = 256  # distinct sets of paths counted per physical partition

# --- functions of a query (nosql-query 6; the bounds on size are ours) ---
REPLICATE_CHARACTERS_MAX = 10_000
QUERY_STRING_CHARACTERS_MAX = 4 * MB  # of one function's result: more could not leave in a page
QUERY_ARRAY_ITEMS_MAX = 1_000_000
QUERIES_KEPT_MAX = 512  # texts whose parsed form and plan are kept
QUERY_KEPT_CHARACTERS_MAX = 8 * 1024  # longer texts are parsed each time: they would fill memory
REGEX_SECONDS_MAX = 0.5  # of one match
REGEX_CHARACTERS_MAX = 4096  # of one pattern
REGEX_KEPT_CHARACTERS_MAX = 256  # of patterns that are kept compiled; of longer ones the last few
POLYGON_POINTS_MAX = 4096  # limits page
FUZZY_DISTANCE_MAX = 2  # edits of a full-text term

# --- MongoDB (mongodb 2, 6, 17, 22) ---
MONGO_MESSAGE_BYTES_MAX = 48_000_000
MONGO_LOGIN_BYTES_MAX = 64 * KB  # of a message before its client has logged in; ours
MONGO_COMMAND_BYTES_MAX = 16 * MB + 16 * KB  # of a command without its arrays of documents
MONGO_DOCUMENT_BYTES_MAX = 16 * MB  # of one document in a file of BSON
MONGO_REPLY_BYTES_MAX = 16 * MB  # documents of one batch of a cursor
MONGO_FIRST_BATCH = 101  # documents, unless the client says
MONGO_WRITE_BATCH_MAX = 100_000  # statements of one write command
MONGO_CURSOR_SECONDS = 600  # an idle cursor is removed
MONGO_CURSORS_MAX = 10_000  # open at once, all clients together
MONGO_SPOOL_BYTES_MAX = 256 * MB  # of a sorted or aggregated result that waits for its client
MONGO_MEMORY_BYTES_MAX = 100 * MB  # a sort or group holds, as the reference server
MONGO_OPERATION_SECONDS = 60
MONGO_TRANSACTION_SECONDS = 5
SNAPSHOT_SECONDS = 2 * MONGO_TRANSACTION_SECONDS  # items are kept as they were before a change
HOLD_SECONDS = 30  # changes are kept for snapshots after one was asked for, longer when again
MONGO_TRANSACTION_OPERATIONS_MAX = 1_000
MONGO_RECORD_SECONDS = 1800  # how long a retryable write is remembered
MONGO_INDEXES_MAX = 500
MONGO_COMPOUND_FIELDS_MAX = 8
MONGO_PIPELINE_STAGES_MAX = 1_000

assert BATCH_BYTES_MAX >= ITEM_BYTES_MAX
assert BODY_BYTES_MAX > BATCH_BYTES_MAX, "the API refuses before the server does"
assert HEAD_BYTES_MAX > TARGET_BYTES_MAX >= TEMPLATE_HEAD_BYTES_MAX
assert SYNTHETIC_CANDIDATES_MAX >= SYNTHETIC_SUFFIXES_MAX, "one group must be readable"
assert 1 + 8 + (1 + 2 * TERM_CUT_BYTES + 2 + 8) + 8 <= KEY_BYTES_MAX, "an index key must fit"
assert LEDGER_SLOTS > PHYSICAL_PARTITIONS_MAX, "the largest container must fit the ledger"

# --- Gremlin (gremlin reference 11) ---
GREMLIN_SCRIPT_BYTES_MAX = 64 * KB  # of one request
GREMLIN_STEPS_MAX = 400  # calls in one script
GREMLIN_DEPTH_MAX = 64  # nesting of steps and lists; ours: the parser recurses
GREMLIN_SCRIPTS_KEPT_MAX = 1024  # parsed texts that are kept; ours
GREMLIN_REPEATS_MAX = 32  # iterations of repeat()
GREMLIN_SECONDS_MAX = 30  # of one traversal
GREMLIN_MEMORY_BYTES_MAX = 2 * GB  # the service's bound; `[gremlin] memory` lowers it
GREMLIN_TRAVERSER_STEPS_MAX = 200_000_000  # traversers through steps, in one traversal; ours
GREMLIN_CHUNK_ITEMS = 64  # results of one partial response
GREMLIN_CHUNK_BYTES_MAX = 4 * MB  # of one partial response: Python's client refuses 10 MB
GREMLIN_MESSAGE_BYTES_MAX = 4 * MB  # of one WebSocket message from a client; ours
GREMLIN_NEIGHBOURS_MAX = 120_000  # edges of a graph that a process keeps the ends of; ours
GREMLIN_THERE_MAX = 100_000  # vertices of a graph that a process knows to be there; ours
GREMLIN_BATCH_TRAVERSERS = 512  # that go through the steps together; ours
GREMLIN_WAITING_MAX = 64  # requests of one connection that wait for their turn; ours
GREMLIN_IDLE_SECONDS_MAX = 3600  # of a connection
GREMLIN_TOKENS_MAX = 100  # distinct resource tokens an hour
