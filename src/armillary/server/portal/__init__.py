"""The process of the portal, joined to the port of the server: started for its first visitor."""
