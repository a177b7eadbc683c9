"""Background work of one process: expired items are removed, old versions forgotten, indexes
finished.

Each piece is a bounded command that does no harm when two processes do it at once. Nothing depends
on it happening soon: readers never see an expired item. It sleeps on an event, so an idle account
costs nothing.
"""

import logging
import threading

from armillary.errors import DbError, NotFound
from armillary.store.accounts import AccountStore

INTERVAL_SECONDS = 10.0
log = logging.getLogger("armillary.housekeeping")


class Housekeeper:
    def __init__(self, account: AccountStore, interval_s: float = INTERVAL_SECONDS) -> None:
        self._account = account
        self._interval_s = interval_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="housekeeper", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def _loop(self) -> None:
        while not self._stop.wait(self._interval_s):
            try:
                keep_house(self._account)
            except DbError as error:
                # A full disk or a lost database: whoever writes hears of it; we try again later.
                log.warning("housekeeping stopped early: %s", error)


def keep_house(account: AccountStore) -> int:
    """One round over every container. How many rows it removed or rewrote."""
    done = 0
    account.clean_up()
    for database in account.list_databases():
        for record in account.list_containers(database.id):
            store = account.container(database.id, record.id)
            try:
                done += store.sweep() + store.trim_log() + store.reindex()
            except NotFound:
                continue  # deleted under our eyes
    return done
