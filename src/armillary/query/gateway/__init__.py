"""Plans for official SDKs, which merge the answers of several partitions themselves."""
