"""Places as numbers, for the spatial index: GeoJSON → boxes → cells of a plane."""
