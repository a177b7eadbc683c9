"""When an item is over. Facts: nosql-rest 6.2.

container defaultTtl   item ttl    expires
off                    any         never
-1                     none        never
n                      none        _ts + n
-1 or n                -1          never
-1 or n                m           _ts + m
"""

TTL_OFF = 0  # of the container: time to live is switched off
TTL_NONE = 0  # of the item: it has no ttl of its own
TTL_NEVER = -1


def is_expired(ts: int, own_ttl: int, default_ttl: int, now_s: int) -> bool:
    if default_ttl == TTL_OFF:
        return False
    ttl = own_ttl or default_ttl
    return ttl != TTL_NEVER and ts + ttl <= now_s
