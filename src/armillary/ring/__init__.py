"""The ring of a container as a picture: numbers in, SVG text out.

    heat report (JSON) ──▶ model ──▶ svg       words: how sizes and rates are written
                             │        │        geometry: turns into points
                             │        └─ style: colours, light and dark
                             └──▶ the terminal and the portal read the same model

It reads no store and knows no HTTP: the server, the portal, the terminal and a script for the
README draw with the same functions.
"""
