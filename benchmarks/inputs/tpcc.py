"""TPC-C's tables and its five transactions, at scale 1, as sysbench-tpcc has them.

One warehouse with ten districts. The tables have the foreign keys of the specification. There are
fewer items and customers than it asks for (ITEMS, CUSTOMERS), so that targets are filled quickly;
what a transaction changes is the same.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from random import Random
from typing import Final

import pymysql
from pymysql.constants import CLIENT

from tests.load.worker import RETRIED, send
from tests.servers.mysqld import Server

ITEMS: Final = 10_000
CUSTOMERS: Final = 300
"""In each district."""
DISTRICTS: Final = 10
_CONNECTIONS: Final = 4
LONG_RECURSION: Final = (
    "SET SESSION /*!80000 cte_max_recursion_depth = 1000000 */"
    " /*M!100200 max_recursive_iterations = 1000000 */"
)
"""For MySQL, and for MariaDB, which does not read the first comment."""
_RETRIED: Final = RETRIED | {1020}
"""MariaDB: another transaction has changed the row meanwhile (innodb_snapshot_isolation)."""

_TABLES: Final = (
    (
        "CREATE TABLE warehouse (w_id SMALLINT PRIMARY KEY, w_name VARCHAR(10), w_street"
        " VARCHAR(40),"
        " w_tax DECIMAL(4,4), w_ytd DECIMAL(12,2))"
    ),
    (
        "CREATE TABLE district (d_id TINYINT, d_w_id SMALLINT, d_name VARCHAR(10),"
        " d_street VARCHAR(40), d_tax DECIMAL(4,4), d_ytd DECIMAL(12,2), d_next_o_id INT,"
        " PRIMARY KEY (d_w_id, d_id), FOREIGN KEY (d_w_id) REFERENCES warehouse (w_id))"
    ),
    (
        "CREATE TABLE customer (c_id INT, c_d_id TINYINT, c_w_id SMALLINT, c_first VARCHAR(16),"
        " c_last VARCHAR(16), c_street VARCHAR(40), c_phone CHAR(16), c_since DATETIME,"
        " c_credit CHAR(2), c_discount DECIMAL(4,2), c_balance DECIMAL(12,2),"
        " c_ytd_payment DECIMAL(12,2), c_payment_cnt SMALLINT, c_delivery_cnt SMALLINT, c_data"
        " TEXT,"
        " PRIMARY KEY (c_w_id, c_d_id, c_id), KEY (c_w_id, c_d_id, c_last, c_first),"
        " FOREIGN KEY (c_w_id, c_d_id) REFERENCES district (d_w_id, d_id))"
    ),
    (
        "CREATE TABLE history (h_id BIGINT AUTO_INCREMENT PRIMARY KEY, h_c_id INT, h_c_d_id"
        " TINYINT,"
        " h_c_w_id SMALLINT, h_d_id TINYINT, h_w_id SMALLINT, h_date DATETIME, h_amount"
        " DECIMAL(6,2),"
        " h_data VARCHAR(24), FOREIGN KEY (h_c_w_id, h_c_d_id, h_c_id) REFERENCES customer"
        " (c_w_id, c_d_id, c_id))"
    ),
    (
        "CREATE TABLE orders (o_id INT, o_d_id TINYINT, o_w_id SMALLINT, o_c_id INT,"
        " o_entry_d DATETIME, o_carrier_id TINYINT, o_ol_cnt TINYINT, PRIMARY KEY (o_w_id, o_d_id,"
        " o_id), KEY (o_w_id, o_d_id, o_c_id, o_id), FOREIGN KEY (o_w_id, o_d_id, o_c_id)"
        " REFERENCES"
        " customer (c_w_id, c_d_id, c_id))"
    ),
    (
        "CREATE TABLE new_orders (no_o_id INT, no_d_id TINYINT, no_w_id SMALLINT,"
        " PRIMARY KEY (no_w_id, no_d_id, no_o_id), FOREIGN KEY (no_w_id, no_d_id, no_o_id)"
        " REFERENCES"
        " orders (o_w_id, o_d_id, o_id))"
    ),
    (
        "CREATE TABLE item (i_id INT PRIMARY KEY, i_name VARCHAR(24), i_price DECIMAL(5,2),"
        " i_data VARCHAR(50))"
    ),
    (
        "CREATE TABLE stock (s_i_id INT, s_w_id SMALLINT, s_quantity SMALLINT, s_dist CHAR(24),"
        " s_ytd DECIMAL(8,0), s_order_cnt SMALLINT, s_data VARCHAR(50), PRIMARY KEY (s_w_id,"
        " s_i_id),"
        " FOREIGN KEY (s_w_id) REFERENCES warehouse (w_id), FOREIGN KEY (s_i_id) REFERENCES"
        " item (i_id))"
    ),
    (
        "CREATE TABLE order_line (ol_o_id INT, ol_d_id TINYINT, ol_w_id SMALLINT, ol_number"
        " TINYINT,"
        " ol_i_id INT, ol_delivery_d DATETIME, ol_quantity TINYINT, ol_amount DECIMAL(6,2),"
        " ol_dist_info CHAR(24), PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number), FOREIGN KEY"
        " (ol_w_id, ol_d_id, ol_o_id) REFERENCES orders (o_w_id, o_d_id, o_id), FOREIGN KEY"
        " (ol_w_id, ol_i_id) REFERENCES stock (s_w_id, s_i_id))"
    ),
)


def prepare(server: Server) -> None:
    """Make the tables and fill them."""
    numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {})"
    rows = [
        "INSERT INTO warehouse VALUES (1, 'one', 'a street', 0.1, 300000)",
        (
            f"INSERT INTO district {numbers.format(DISTRICTS)}"
            " SELECT i, 1, 'district', 'a street', 0.1, 30000, 1 FROM n"
        ),
        (
            f"INSERT INTO customer {numbers.format(CUSTOMERS)}"
            " SELECT i, d_id, 1, 'first', CONCAT('LAST', i % 100), 'a street', '0123456789', NOW(),"
            " 'GC', 0.1, -10, 10, 1, 0, REPEAT('customer ', 40) FROM n, district"
        ),
        f"INSERT INTO item {numbers.format(ITEMS)} SELECT i, 'an item', 1 + i % 90, 'data' FROM n",
        "INSERT INTO stock SELECT i_id, 1, 50, 'distribution', 0, 0, 'data' FROM item",
    ]
    with closing(server.client(flags=CLIENT.MULTI_STATEMENTS)) as client:
        send(client, [LONG_RECURSION, "CREATE DATABASE tpcc", "USE tpcc", *_TABLES, *rows])


def run(server: Server, transactions: int) -> int:
    """Run the transactions in the proportions of the specification; return how many committed.

    Those that only read are left out: they are not logged.
    """

    def work(connection: int) -> int:
        made = _transactions(Random(f"tpcc {connection}"))
        done, share = 0, transactions // _CONNECTIONS
        with closing(server.client("tpcc", flags=CLIENT.MULTI_STATEMENTS)) as client:
            while done < share:
                try:
                    send(client, next(made))
                except pymysql.err.OperationalError as error:
                    # A deadlock: rolled back, and the next one takes its place.
                    if error.args[0] not in _RETRIED:
                        raise
                    send(client, ["ROLLBACK"])
                else:
                    done += 1
        return done

    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        return sum(pool.map(work, range(_CONNECTIONS)))


def _transactions(rng: Random) -> Iterator[list[str]]:
    """Yield New-Order (45 of 92), Payment (43) and Delivery (4), without end."""
    while True:
        kind = rng.randrange(92)
        district, customer = rng.randint(1, DISTRICTS), rng.randint(1, CUSTOMERS)
        if kind < 45:
            yield _new_order(rng, district, customer)
        elif kind < 88:
            yield _payment(rng, district, customer)
        else:
            yield _delivery(rng)


def _new_order(rng: Random, district: int, customer: int) -> list[str]:
    items = sorted(rng.sample(range(1, ITEMS + 1), rng.randint(5, 15)))
    statements = [
        "BEGIN",
        (
            f"SELECT d_next_o_id INTO @o FROM district WHERE d_w_id = 1 AND d_id = {district}"
            " FOR UPDATE"
        ),
        f"UPDATE district SET d_next_o_id = @o + 1 WHERE d_w_id = 1 AND d_id = {district}",
        f"INSERT INTO orders VALUES (@o, {district}, 1, {customer}, NOW(), NULL, {len(items)})",
        f"INSERT INTO new_orders VALUES (@o, {district}, 1)",
    ]
    for number, item in enumerate(items, 1):
        quantity = rng.randint(1, 10)
        statements += [
            (
                f"UPDATE stock SET s_quantity = IF(s_quantity > {quantity + 10}, s_quantity -"
                f" {quantity}, s_quantity + 91 - {quantity}), s_ytd = s_ytd + {quantity},"
                f" s_order_cnt = s_order_cnt + 1 WHERE s_w_id = 1 AND s_i_id = {item}"
            ),
            (
                f"INSERT INTO order_line VALUES (@o, {district}, 1, {number}, {item}, NULL,"
                f" {quantity},"
                f" {quantity * 9.5}, 'distribution')"
            ),
        ]
    return [*statements, "COMMIT"]


def _payment(rng: Random, district: int, customer: int) -> list[str]:
    amount = rng.randint(1, 5000)
    return [
        "BEGIN",
        f"UPDATE warehouse SET w_ytd = w_ytd + {amount} WHERE w_id = 1",
        f"UPDATE district SET d_ytd = d_ytd + {amount} WHERE d_w_id = 1 AND d_id = {district}",
        (
            f"UPDATE customer SET c_balance = c_balance - {amount}, c_ytd_payment = c_ytd_payment +"
            f" {amount}, c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = 1 AND c_d_id = {district}"
            f" AND c_id = {customer}"
        ),
        (
            "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount,"
            " h_data)"
            f" VALUES ({customer}, {district}, 1, {district}, 1, NOW(), {amount}, 'a payment')"
        ),
        "COMMIT",
    ]


def _delivery(rng: Random) -> list[str]:
    carrier = rng.randint(1, 10)
    statements = ["BEGIN"]
    for district in range(1, DISTRICTS + 1):
        here = f"{{0}}_w_id = 1 AND {{0}}_d_id = {district}"
        statements += [
            f"SET @o = (SELECT MIN(no_o_id) FROM new_orders WHERE {here.format('no')})",
            f"DELETE FROM new_orders WHERE {here.format('no')} AND no_o_id = @o",
            f"UPDATE orders SET o_carrier_id = {carrier} WHERE {here.format('o')} AND o_id = @o",
            (
                f"UPDATE order_line SET ol_delivery_d = NOW() WHERE {here.format('ol')}"
                " AND ol_o_id = @o"
            ),
            (
                "UPDATE customer SET c_balance = c_balance + 100, c_delivery_cnt ="
                " c_delivery_cnt + 1"
                f" WHERE {here.format('c')} AND c_id = (SELECT o_c_id FROM orders WHERE"
                f" {here.format('o')} AND o_id = @o)"
            ),
        ]
    return [*statements, "COMMIT"]
