"""What an operator does to an account, without a server: copies, checks, items out and in.

    copies     backup, restore, compact of a data folder
    doctor     everything that can be checked, one finding per line
    exporting  items of a container to a file, resumable
    importing  items of a file into a container, resumable
    journal    how far an export or import has come, in a small file alongside it

Long work reports its progress to a function; drawing it is the command line's.
"""
