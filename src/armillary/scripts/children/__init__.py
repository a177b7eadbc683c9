"""The processes that run JavaScript: few at once, one warm, killed when they pass a bound.

process  one child as its parent sees it    child   what runs inside it; imports nothing of ours
pool     which child runs next              bounds  what one run may use
"""
