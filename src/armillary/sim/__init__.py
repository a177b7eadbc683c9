"""`armillary simulate`: containers far past one machine, by the rules of `partition/`.

    scenario ──▶ population ──▶ layout ──▶ run ──▶ result
                 who is heavy,  ranges     │  an hour a step: growth, splits
                 and where                 └─ a second a step: windows of 429s

A container of 100 TB with 10^9 keys is a few thousand numbers here: the 10^4 heaviest keys stand
for themselves, at the place their hash gives them; all others are a mass spread over the ring, with
the unevenness that so many keys have. What a partition may do is asked of `partition/`: change a
rule there and the simulation moves. Nothing is stored and nothing waits: a year takes seconds.
"""
