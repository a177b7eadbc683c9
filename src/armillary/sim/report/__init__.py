"""The answer of a simulation: rows of numbers (`result`) and one HTML page (`page`)."""
