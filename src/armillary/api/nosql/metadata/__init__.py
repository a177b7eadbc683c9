"""Databases, containers, offers, users and scripts on the wire."""
