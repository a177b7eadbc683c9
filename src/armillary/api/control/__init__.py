"""The controls of a server: topology, faults, time, snapshots, metrics. Under `/_armillary/`."""
