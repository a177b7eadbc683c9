#!/bin/bash
# A standby of $PRIMARY, copied when its folder is empty. db-a has to let it in: the image's pg_hba.conf
# allows replication to nobody from outside, so the first start adds a line there.
set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  until psql -h "$PRIMARY" -U postgres -Atc 'SELECT 1' >/dev/null 2>&1; do sleep 1; done
  psql -h "$PRIMARY" -U postgres -c "COPY (SELECT 'host replication postgres all scram-sha-256') \
    TO PROGRAM 'cat >> \"\$PGDATA/pg_hba.conf\"'" -c 'SELECT pg_reload_conf()'
  pg_basebackup -d "host=$PRIMARY user=postgres application_name=$NAME" -D "$PGDATA" -R -X stream
  chmod 700 "$PGDATA"
fi
# A promotion may have to wait for this interval, which is 5 s unless it is set.
exec postgres -c wal_level=replica -c max_connections=200 -c synchronous_standby_names= \
  -c wal_retrieve_retry_interval=200ms
