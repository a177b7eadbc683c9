"""What pages show and do, without a browser: requests to the server in, plain values out.

`client` speaks to the server; `watching` looks at containers for all pages together.
"""
