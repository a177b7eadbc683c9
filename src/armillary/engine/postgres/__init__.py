"""postgres"""
