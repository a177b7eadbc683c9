"""What each command of the command line does. In: options. Out: text, files, an exit code.

`add_commands(app)` of a module adds its commands to the typer application; `cli.py` lists the
modules. Commands import what they need themselves, so that each is quick to start.
"""
