"""Who asks, and may they? Keys, shared access signatures, tokens: headers in, a `Caller` out."""
