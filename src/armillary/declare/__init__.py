"""An account as a file: `armillary.toml` read and made real, and a running account written as one.

    armillary.toml ─▶ files ─▶ settings (config.py) + declared databases ─▶ applying ─▶ the account
    the account ─▶ describing ─▶ TOML (toml_text) or Bicep (bicep)

`lines` knows where in the text a key stands, so that an error names the line to mend. Reading does
not need the store; applying does.
"""
