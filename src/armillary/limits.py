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

# --- requests ---
BATCH_OPERATIONS_MAX = 100
BATCH_BYTES_MAX = 2 * MB
PATCH_OPERATIONS_MAX = 10
PAGE_BYTES_MAX = 4 * MB
PAGE_ITEMS_DEFAULT = 100
PAGE_ITEMS_MAX = 1000  # what a page holds when the caller leaves the size to us

# --- containers (nosql-rest 2.6) ---
UNIQUE_KEYS_MAX = 10
UNIQUE_KEY_PATHS_MAX = 16
INDEX_PATHS_MAX = 1500  # included and excluded, each
COMPOSITE_PATHS_MAX = 8  # properties of one composite index
COMPOSITE_INDEXES_MAX = 100
DATABASES_AND_CONTAINERS_MAX = 500
FEED_RETENTION_SECONDS_MAX = 30 * 24 * 3600
PHYSICAL_PARTITIONS_MAX = 10_000  # of one container, at creation

# --- query text (nosql-query 8) ---
QUERY_CHARACTERS_MAX = 512 * KB
QUERY_DEPTH_MAX = 128  # nesting of a query text; more could not be walked or compiled by recursion
QUERY_JOINS_MAX = 10
QUERY_UDF_CALLS_MAX = 10
QUERY_IN_ITEMS_MAX = 16_000
QUERY_LOGICAL_TERMS_MAX = 2_000  # operands of AND, and of OR, in one query
QUERY_ERRORS_MAX = 100  # reported for one text
QUERY_COUNT_MAX = 4_294_967_295  # TOP, OFFSET and LIMIT

# --- engine ---
KEY_BYTES_MAX = 511  # LMDB's compiled-in bound; every engine refuses longer keys
GROUP_COMMANDS_MAX = 64  # commands in one commit
QUEUE_COMMANDS_MAX = 10_000  # waiting for the writer; more are refused
READ_SECONDS_MAX = 5.0  # age of a read transaction; an old one makes the LMDB file grow
READERS_MAX = 1024  # LMDB reader slots over all processes
READER_CHECK_SECONDS = 10.0
SPACES_OWN_DATABASE_MAX = 500  # above this, spaces share a sub-database by prefix
MAP_BYTES_DEFAULT = 1024 * GB  # LMDB address space, not disk
RESERVE_BYTES = 64 * MB  # writes are refused when the disk has less than this left
STATEMENT_TIMEOUT_MS = 30_000  # PostgreSQL

# --- terms in index keys ---
TERM_CUT_BYTES = (
    200  # longer strings are cut, marked and hashed; filters are re-checked on the item
)
SHAPES_MAX = 256  # distinct sets of paths counted per physical partition

# --- functions of a query (nosql-query 6; the bounds on size are ours) ---
REPLICATE_CHARACTERS_MAX = 10_000
QUERY_STRING_CHARACTERS_MAX = 4 * MB  # of one function's result: more could not leave in a page
QUERY_ARRAY_ITEMS_MAX = 1_000_000
REGEX_SECONDS_MAX = 0.5  # of one match
REGEX_CHARACTERS_MAX = 4096  # of one pattern
POLYGON_POINTS_MAX = 4096  # limits page
FUZZY_DISTANCE_MAX = 2  # edits of a full-text term

assert BATCH_BYTES_MAX >= ITEM_BYTES_MAX
assert 1 + 8 + (1 + 2 * TERM_CUT_BYTES + 2 + 8) + 8 <= KEY_BYTES_MAX, "an index key must fit"
