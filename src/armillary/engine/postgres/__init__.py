"""The engine on PostgreSQL and Citus: many servers, one database."""
