"""Advice for graphs: which vertex property should be the partition key.

files or documents ─▶ elements ─▶ measures of each property ─▶ gates, order, reasons
"""
