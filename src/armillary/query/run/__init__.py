"""Running a plan, one page at a time. In: a plan and a container. Out: rows, a continuation, and
what it cost."""
