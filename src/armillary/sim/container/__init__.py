"""The simulated container: who holds how much, where it lies, how it grows, what moves it.

population, placing ──▶ layout ──▶ state ◀── growth, demand
                                     └──▶ moving: splits, throughput, merges
"""
