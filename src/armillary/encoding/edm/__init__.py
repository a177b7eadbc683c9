"""Table entities: EDM values, their order, and the form in which they are stored.

values  EDM values as stored: `{"$t": type, "$v": value}`
json    EDM values as the JSON of OData, and whole entities as plain JSON
model   the value model: index terms, comparison, keys
"""
