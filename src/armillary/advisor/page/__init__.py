"""One page that shows a comparison of keys: a file without scripts that asks nothing of a network.

build    the page from top to bottom
plots    drawings: bars, heat map, Lorenz curve, top keys, fan-out
drawing  the elements they are made of
style    colours and rules, light and dark
words    numbers as people read them
"""
