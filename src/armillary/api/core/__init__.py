"""What every protocol stands on: the account as one worker serves it (`gateway`), its keys and who
signed (`settings`, `signing`, `tokens`, `principals`), how clients of streams are served
(`streams`). Protocols import this package; it imports none of them."""
