"""Data in any form, as polars frames of bounded size.

sources      which files, of which format; gz and standard input
json_text    chunks of whole lines; a JSON array made into lines
json_frames  lines into frames: which properties there are, broken lines set aside
csv_frames   the same for CSV and TSV
frames       one stream of batches from everything, Parquet and live containers too
"""
