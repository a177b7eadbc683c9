"""The protocol's forms, without the store: targets and `$batch` bodies taken apart, entities in
OData JSON and in the stored form, ETags."""
