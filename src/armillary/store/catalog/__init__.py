"""What exists: databases, containers and what belongs to them, as rows of space 0. In: names and
definitions. Out: records, and the state of a container as this process knows it.

One folder although it is large: each module is one kind of row of one space, behind `records`.
"""
