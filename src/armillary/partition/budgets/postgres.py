"""The ledger of a database: every server on it shares its budgets.

All budgets are used in slices of r/20, each taken by one short statement: a round trip for every
operation would cost more than the operation. The statement locks the row, steps it to the current
second, settles, and cuts, so it is the arithmetic of `admission.Budget` and `ledger_slices.cut`
once more, in SQL; a test compares the two.

The table is unlogged and its commits are not waited for: after a crash of the database every budget
starts afresh, which costs a second's throughput at most. `now_ms` must be the database's
clock, as `PostgresEngine.now_ms` gives it.

No request fails because of this table. A charge never goes there: it comes after a commit, whose
answer must not depend on it, so debts are settled by a thread. An admission that needs a slice asks
for it, briefly; when there is no answer, each server goes on by itself with the budget as it last
was (`LastKnown`), and asks again a second later.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Final, TypeAlias

import psycopg
from psycopg import sql

from armillary.engine.postgres.address import Address
from armillary.engine.postgres.errors import kind_of, translated
from armillary.engine.postgres.supervisor import Supervisor
from armillary.errors import DbError, Unavailable
from armillary.limits import (
    BURST_RU_MAX,
    BURST_SECONDS,
    CLOCK_STEP_SECONDS,
    LEDGER_CONNECTIONS_MAX,
    LEDGER_SLICES_POSTGRES,
    POSTGRES_ATTEMPTS_MAX,
    POSTGRES_START_SECONDS,
)
from armillary.partition.budgets.admission import BudgetState, Enforce
from armillary.partition.budgets.last_known import LastKnown
from armillary.partition.budgets.ledger import Allowance, Held, fresh_state
from armillary.partition.budgets.slices import Grant, HeldSlice, Order, Slices
from armillary.partition.postgres_table import make_table

TABLE: Final = "armillary_ledger"
ASK_MS: Final = 100  # between two questions about a used-up budget

_TABLE: Final = """
CREATE UNLOGGED TABLE IF NOT EXISTS {ledger} (
  key bigint PRIMARY KEY, ru float8 NOT NULL, balance float8 NOT NULL, bank float8 NOT NULL,
  used float8 NOT NULL, second bigint NOT NULL, granted float8 NOT NULL
) WITH (fillfactor = 50)
"""

_MOVE_IN: Final = """
INSERT INTO {ledger} VALUES (%(key)s::bigint, %(ru)s, %(ru)s, 0, 0, %(second)s, 0)
ON CONFLICT DO NOTHING
"""

_RESET: Final = "DELETE FROM {ledger} WHERE key = %(key)s::bigint"

#: One step of arithmetic per name; the comments give the functions in Python.
_TAKE: Final = """
WITH held AS MATERIALIZED (
  SELECT *, second > %(second)s + {step} AS future, greatest(0, %(second)s - second) AS passed
  FROM {ledger} WHERE key = %(key)s::bigint FOR UPDATE
), renewed AS (  -- Budget._renew, and a clock that was put back
  SELECT
    CASE WHEN future THEN %(ru)s ELSE ru END AS ru,
    CASE WHEN future THEN %(ru)s WHEN passed > 0 THEN least(ru, balance + passed * ru)
         ELSE balance END AS balance,
    CASE WHEN future THEN 0
         WHEN passed > 0 AND %(burst)s AND ru < {burst_ru}
         THEN least({burst_seconds} * ru, bank + greatest(0, balance + (passed - 1) * ru))
         ELSE bank END AS bank,
    CASE WHEN future OR passed > 0 THEN 0 ELSE used END AS used,
    CASE WHEN future THEN %(second)s ELSE greatest(second, %(second)s) END AS second
  FROM held
), changed AS (  -- Budget.change
  SELECT
    CASE WHEN %(ru)s > ru
         THEN greatest(balance, least(balance + %(ru)s - ru, %(ru)s - used))
         WHEN %(ru)s < ru THEN least(balance, %(ru)s) ELSE balance END AS balance,
    CASE WHEN %(burst)s AND %(ru)s < {burst_ru}
         THEN least(bank, {burst_seconds} * %(ru)s) ELSE 0 END AS bank,
    used, second,
    CASE WHEN %(settle)s > 0 AND second <> %(settle_second)s THEN 0 ELSE %(settle)s END AS settle
  FROM renewed
), drawn AS (  -- cut: what is settled, and a debt paid from the bank
  SELECT balance + settle AS balance, bank, used - settle AS used, second,
    CASE WHEN %(burst)s AND balance + settle < 0
         THEN least(-balance - settle, bank, greatest(0, {burst_ru} - %(ru)s))
         ELSE 0 END AS draw
  FROM changed
), asked AS (  -- cut: the slice, of the balance or else of the bank
  SELECT balance + draw AS balance, bank - draw AS bank, used, second,
    CASE WHEN balance + draw > 0 THEN least(%(want)s, balance + draw)
         ELSE 0 END AS of_balance,
    CASE WHEN balance + draw <= 0 AND %(burst)s AND bank - draw > 0 AND used < {burst_ru}
         THEN least(%(want)s, bank - draw, {burst_ru} - used)
         ELSE 0 END AS of_bank
  FROM drawn
)
UPDATE {ledger} AS l SET ru = %(ru)s, balance = a.balance - a.of_balance, bank = a.bank - a.of_bank,
  used = a.used + a.of_balance + a.of_bank, second = a.second, granted = a.of_balance + a.of_bank
FROM asked AS a WHERE l.key = %(key)s::bigint
RETURNING l.granted, l.ru, l.balance, l.bank, l.used, l.second
"""

#: How long an admission waits for a slice, and how long after a failure it is not asked.
ANSWER_SECONDS: Final = 0.25
AWAY_SECONDS: Final = 1.0
RENEW_SECONDS: Final = 0.001  # into a second, when its slices are taken
log = logging.getLogger("armillary.ledger")

Row: TypeAlias = tuple[Any, ...]


class PostgresLedger:
    waits: Final = True
    """An admission may have to ask the database."""

    def __init__(self, url: str, enforce: Enforce = "on", *, schema: str | None = None) -> None:
        self._address = Address.parse(url, schema)
        # Losing the last moments of a budget is harmless; waiting for the disk is not.
        conninfo = self._address.conninfo("off", statement_timeout=str(int(ANSWER_SECONDS * 1000)))
        self._take_sql = self._statement(_TAKE)
        self._move_in_sql = self._statement(_MOVE_IN)
        self._reset_sql = self._statement(_RESET)
        self._supervisor = Supervisor.of(self._address, POSTGRES_START_SECONDS)
        table = self._statement(_TABLE)
        self._distributed = make_table(
            self._address.conninfo("off"), self._address.schema, TABLE, table, shard_by="key"
        )
        self._pool = self._supervisor.pool(
            "ledger", LEDGER_CONNECTIONS_MAX, conninfo, 2 * ANSWER_SECONDS, ANSWER_SECONDS
        )
        self._enforce = enforce
        self._last_known = LastKnown()
        self._away_until = 0.0
        self._debts: queue.SimpleQueue[HeldSlice | None] = queue.SimpleQueue()
        self._slices = Slices(
            self._take,
            LEDGER_SLICES_POSTGRES,
            ask_ms=ASK_MS,
            enforce=enforce,
            owes=self._debts.put,
        )
        self._now_ms = 0
        self._settling = threading.Lock()
        self._settler = threading.Thread(target=self._settle, name="ledger", daemon=True)
        self._settler.start()
        self._closed = False
        self._ending = threading.Event()
        self._renewer: threading.Thread | None = None

    @property
    def refused(self) -> int:
        return self._slices.refused

    def admit(self, allowance: Allowance, now_ms: int, *, low: bool = False) -> int | None:
        return self._slices.admit(allowance, now_ms, low=low)

    def charge(self, allowance: Allowance, ru: float, now_ms: int) -> None:
        self._now_ms = now_ms
        self._slices.charge(allowance, ru, now_ms)

    def held(self, allowance: Allowance, now_ms: int) -> Held | None:
        return self._slices.held(allowance) if self._enforce == "on" else None

    def reset(self, allowance: Allowance, now_ms: int) -> None:
        with self._settling:  # a debt that is on its way must not come after this
            self._slices.forget(allowance)
            self._run(self._reset_sql, {"key": allowance.key})

    def idle(self, now_ms: int) -> None:
        self._slices.idle(now_ms)

    def state(self, allowance: Allowance, now_ms: int) -> BudgetState:
        _, *state = self._row(Order(allowance, now_ms, 0.0, 0, 0.0))
        return BudgetState._make(state)

    def close(self) -> None:
        """Unused slices are not given back: they return with the second."""
        if self._closed:
            return
        self._closed = True
        self._ending.set()
        self._debts.put(None)
        self._settler.join()
        if self._renewer is not None:
            self._renewer.join()
        self._supervisor.forget(self._pool)
        self._supervisor.release()

    def renew_ahead(self, now_ms: Callable[[], int]) -> None:
        """From now on, at the beginning of each second: slices of the budgets that are in use. For
        a server whose event loop admits, and can't ask for one."""
        if self._renewer is None:
            self._renewer = threading.Thread(
                target=self._renew, args=(now_ms,), name="ledger-renew", daemon=True
            )
            self._renewer.start()

    def _renew(self, now_ms: Callable[[], int]) -> None:
        pause_s = 0.0
        while not self._ending.wait(pause_s):
            try:
                self._slices.renew_used(now_ms(), self._take_all)
                pause_s = (1000 - now_ms() % 1000) / 1000 + RENEW_SECONDS
            except DbError:  # without the database: the requests find out
                pause_s = AWAY_SECONDS

    # --- statements -------------------------------------------------------------------------------

    def _take(self, order: Order) -> Grant:
        if self._closed:
            raise Unavailable("The ledger is closed.")
        if monotonic() < self._away_until:
            return self._last_known.take(order)
        try:
            row = self._row(order)
        except DbError as error:
            self._away_until = monotonic() + AWAY_SECONDS
            log.warning("budgets are kept by this server alone: %s", error)
            return self._last_known.take(order)
        return self._learned(order, row)

    def _learned(self, order: Order, row: Row) -> Grant:
        granted, *state = row
        known = BudgetState._make(state)
        self._last_known.learn(order.allowance, known)
        return Grant(granted, known.balance, known.second)

    def _take_all(self, orders: Sequence[Order]) -> list[Grant]:
        """Of different budgets, in one round trip and one transaction, which on Citus would have
        several nodes: there, and when anything is unusual, one by one."""
        rows: list[Row | None] = []
        if not self._distributed and monotonic() >= self._away_until:
            try:
                with self._pool.connection() as connection:
                    with connection.pipeline():
                        asked = [
                            connection.execute(self._take_sql, _arguments(one)) for one in orders
                        ]
                    rows = [one.fetchone() for one in asked]
            except (psycopg.Error, DbError):
                rows = []  # none was committed, or some are lost for this second
        if not rows:
            return [self._take(one) for one in orders]
        return [
            self._take(order) if row is None else self._learned(order, row)
            for order, row in zip(orders, rows, strict=True)
        ]

    def _settle(self) -> None:
        """The thread that takes debts to the table."""
        while (held := self._debts.get()) is not None:
            try:
                with self._settling:
                    self._slices.settle(held, self._now_ms)
            except Exception:  # the debt stays with the slice
                log.exception("a debt could not be settled")

    def _row(self, order: Order) -> Row:
        allowance, arguments = order.allowance, _arguments(order)
        while not (rows := self._run(self._take_sql, arguments)):
            fresh = fresh_state(allowance, order.now_ms)
            self._run(self._move_in_sql, {**arguments, "second": fresh.second})
        return rows[0]

    def _run(self, statement: bytes, arguments: dict[str, Any]) -> list[Row]:
        """Again after a lost connection, when the first may have done its work: a slice may be
        taken twice by that and is lost for this second, but nothing is given back twice.
        """
        for attempt in range(POSTGRES_ATTEMPTS_MAX):
            try:
                with self._pool.connection() as connection:
                    cursor = connection.execute(statement, arguments)
                    return cursor.fetchall() if cursor.description is not None else []
            except psycopg.Error as error:
                kind = kind_of(error)
                if kind is None or not kind.again or attempt == POSTGRES_ATTEMPTS_MAX - 1:
                    raise translated(error) from error
                self._pool.clear()
                if arguments.get("settle", 0.0) > 0.0:
                    arguments = {**arguments, "settle": 0.0}
        raise AssertionError("the last attempt returns or raises")

    def _statement(self, text: str) -> bytes:
        names = {
            "ledger": sql.Identifier(self._address.schema, TABLE),
            "step": sql.Literal(CLOCK_STEP_SECONDS),
            "burst_ru": sql.Literal(BURST_RU_MAX),
            "burst_seconds": sql.Literal(BURST_SECONDS),
        }
        used = {name: value for name, value in names.items() if f"{{{name}}}" in text}
        return sql.SQL(text).format(**used).as_bytes()


def _arguments(order: Order) -> dict[str, Any]:
    return {
        "key": order.allowance.key,
        "ru": float(order.allowance.ru),
        "burst": order.allowance.burst,
        "second": order.now_ms // 1000,
        "settle": order.settle,
        "settle_second": order.settle_second,
        "want": order.want,
    }
