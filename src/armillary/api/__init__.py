"""The protocols: each folder below translates one wire into the operations of `store/` and
`query/`. They do not import each other; what they share is `errors.py`.
"""
