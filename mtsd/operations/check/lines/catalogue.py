"""Every line that `mtsd check` can print, with its remedy. docs/check.md has the same table."""

from enum import unique

from mtsd.apply.branches.branches import ATTACHED, UNLOGGED
from mtsd.apply.branches.splitting_allowed import ON_MARIADB
from mtsd.apply.position import position_schema, target_identity
from mtsd.apply.position.unreadable import UNREADABLE
from mtsd.apply.session import own_domain, pinning
from mtsd.control import policy_advice
from mtsd.operations.check.lines.line import KindOfLine, caution, error, ok, refusal, warning
from mtsd.replica.core import apply_mode, gtid_mode
from mtsd.replica.guards import circles, handed_over, lenient_target, own_replica
from mtsd.replica.guards.executed_beyond import EXECUTED_BEYOND
from mtsd.replica.guards.one_channel import MEETING, ON_ANOTHER_CHANNEL
from mtsd.replica.recovery import verdict
from mtsd.source import continuation, handshake, replaced_file, start
from mtsd.wire import neutral_session, traits


@unique
class Kind(KindOfLine):
    """The kinds of lines; the name in lower case with hyphens is a line's id."""

    # Reaching the servers.
    CONNECTED = ok("{server} connection", "{family} {version} at {address} as {user}")
    REFUSED = error(
        "{server} connection",
        "nothing is listening on {address}",
        "start the server, or correct host and port (or unix_socket) in [{server}]",
    )
    UNKNOWN_HOST = error(
        "{server} connection",
        "the name {host} cannot be resolved ({reason})",
        "correct [{server}] host, or name resolution on this machine",
    )
    NO_ANSWER = error(
        "{server} connection",
        "no answer from {address} in {seconds} s",
        "check [{server}] host, and for a firewall in between; a slow server may need a longer"
        " connect_timeout",
    )
    UNREACHABLE = error(
        "{server} connection",
        "{address} cannot be reached: {reason}",
        "correct [{server}] host and port, or the network between",
    )
    ACCESS_DENIED = error(
        "{server} connection",
        "user {user} is refused: {reason}",
        "correct user and password in [{server}], or create the user for the host in the message,"
        " or, for an account with REQUIRE SSL or REQUIRE X509, set tls, or tls_cert and tls_key;"
        " mtsd check --grants{config} prints what it must be granted",
    )
    HOST_REFUSED = error(
        "{server} connection",
        "this machine is refused: {reason}",
        "create user {user} for this host, or, if the server blocks it, run"
        " TRUNCATE TABLE performance_schema.host_cache on the server",
    )
    SERVER_REFUSES = error(
        "{server} connection",
        "{user} cannot log in: {reason}",
        "{remedy}",
    )
    CONNECTION_LOST = error(
        "{server} connection",
        "it was lost during the check: {reason}",
        "check the server's error log, and try again",
    )
    NOT_LOOKED_AT = error(
        "{server} connection",
        "the server refuses the check's queries: {reason}",
        "{remedy}, and try again",
    )
    NOT_COMPARED = warning(
        "both servers",
        "the two servers were not compared",
        "correct the connection, and try again",
    )
    TOO_OLD = refusal("{server} version", traits.TOO_OLD)
    OTHER_VERSION = refusal("{server} version", neutral_session.OTHER_VERSION)
    FAMILIES = ok(
        "both versions",
        "{source} to {target}: rows are applied as SQL, and a statement that the target does not"
        " understand stops the replica",
    )
    BINLOG_NOT_ALLOWED = warning(
        "target BINLOG",
        "{user} may not run BINLOG statements: rows are applied as SQL, which costs more on both"
        " sides",
        "{grants}, if the target allows that",
    )
    ROWS_AS_SQL = ok("rows as SQL", "columns are found by {how}")
    NOT_BY_BINLOG = refusal("both versions", apply_mode.NOT_BY_BINLOG)
    OLDER_TARGET = warning(
        "both versions",
        "the source ({source}) is newer than the target ({target})",
        "statements and collations that the target does not know stop the replica: upgrade the"
        " target first",
    )

    # TLS.
    TLS_ON = ok("{server} TLS", "{version}, {cipher}, {verified}")
    TLS_LOCAL = ok("{server} TLS", "none, but {way} does not leave this machine")
    TLS_NOT_VERIFIED = warning(
        "{server} TLS",
        "{version}, {cipher}, but the server is not verified: an impostor would not be noticed",
        'set [{server}] tls = "verify_ca" or "verify_identity", and tls_ca unless a public'
        " authority has signed the server's certificate",
    )
    TLS_OFF = warning(
        "{server} TLS",
        "none: data can be read and changed in transit",
        'give the server a certificate, and set [{server}] tls = "verify_identity"',
    )
    TLS_NOT_OFFERED = error(
        "{server} TLS",
        "[{server}] tls = {wanted}, but the server offers none",
        'give the server a certificate (ssl_cert, ssl_key), or set [{server}] tls = "disabled"',
    )
    TLS_REQUIRED = error(
        "{server} TLS",
        'the server accepts only encrypted connections, but [{server}] tls = "disabled"',
        'set [{server}] tls = "verify_identity"',
    )
    TLS_WRONG_CERTIFICATE = error(
        "{server} TLS",
        "the server's certificate is not accepted: {reason}",
        "set [{server}] tls_ca to the authority that has signed it, and host to a name in the"
        " certificate; if neither helps, someone may be intercepting the connection",
    )
    TLS_FAILED = error(
        "{server} TLS",
        "no encrypted connection could be negotiated: {reason}",
        "make the server's tls_version compatible with this machine's OpenSSL, and present the"
        " certificate that it requires with tls_cert and tls_key",
    )
    TLS_FILE = error(
        "{server} TLS", "a file cannot be used: {reason}", "correct tls_ca, tls_cert and tls_key"
    )

    # Privileges.
    PRIVILEGES = ok("{server} privileges", "{user} has what mtsd needs")
    PRIVILEGES_MISSING = error("{server} privileges", "{user} lacks {missing}", "{grants}")
    DEFINERS = warning(
        "target definers",
        "{user} lacks {missing}: a view, routine, trigger or event of another account would be"
        " refused and stop the replica; nothing else needs that",
        '{grants}, or set [target] definer = "current_user"',
    )
    SESSION_KEPT = warning(
        "target session variables",
        "{user} may not set {variables}: rows and definitions are applied, but a statement that"
        " changes rows (of a session with another binlog_format than ROW) stops the replica, as"
        " does a definition with CONNECTION_ID() or temporary tables",
        "{grants}, if the source has such statements",
    )
    STATEMENTS_REFUSED = error(
        "target session variables",
        "{user} may not set {variables}, which is needed to apply statements, and the source's"
        " binlog_format is {value}",
        "{grants}, or SET PERSIST binlog_format = ROW on the source",
    )
    CANNOT_PIN = refusal("target session variables", pinning.CANNOT_PIN)
    CANNOT_LOG = refusal("target sql_log_bin", pinning.CANNOT_LOG)
    ROLES_INACTIVE = warning(
        "{server} roles",
        "{roles} granted to {user}, but not active when it logs in",
        "SET DEFAULT ROLE ALL TO {user}",
    )
    FUNCTION_CREATORS = warning(
        "target triggers and functions",
        "the target writes a binary log and log_bin_trust_function_creators is OFF: CREATE TRIGGER"
        " and CREATE FUNCTION from the source are refused (1419) and stop the replica",
        "SET PERSIST log_bin_trust_function_creators = ON on the target",
    )
    UNSAFE_FUNCTIONS = warning(
        "target functions",
        "log_bin_trust_function_creators is ON on the source and OFF on the target, which writes a"
        " binary log: CREATE FUNCTION without DETERMINISTIC, NO SQL or READS SQL DATA is refused"
        " there (1418), whatever the user's privileges, and stops the replica",
        "SET PERSIST log_bin_trust_function_creators = ON on the target",
    )
    ACCOUNTS = warning(
        "target accounts",
        "CREATE USER, GRANT and the like from the source would be refused and stop the replica:"
        " {user} lacks {missing}",
        "manage accounts on the source with sql_log_bin = 0, or {grants}",
    )
    SYSTEM_TABLES_WRITABLE = warning(
        "target system schemas",
        "{user} may write to the tables of mysql: whoever controls the source can make himself an"
        " administrator of the target",
        "take that away, as mtsd check --grants prints it",
    )

    # The source's binary log.
    BINARY_LOG = ok("source log_bin", "ON")
    NO_BINARY_LOG = refusal("source log_bin", handshake.NO_BINARY_LOG)
    ROW_FORMAT = ok("source binlog_format", "ROW")
    STATEMENT_FORMAT = warning(
        "source binlog_format",
        "{value}: statements run again on the target, {order}; temporary tables that are open when"
        " mtsd or the target stops are lost",
        "SET PERSIST binlog_format = ROW",
    )
    NUMBERS_INTERLEAVED = warning(
        "source innodb_autoinc_lock_mode",
        "2, and binlog_format is STATEMENT: of an INSERT … SELECT or LOAD DATA only the first"
        " number that AUTO_INCREMENT gave is logged, so beside other inserts its rows get other"
        " numbers here, or those of others (1062), as on the server's own replica",
        "SET PERSIST binlog_format = ROW or MIXED, or start the source with"
        " innodb_autoinc_lock_mode = 1",
    )
    ROW_IMAGE = ok("source binlog_row_image", "FULL")
    ROW_IMAGE_PARTIAL = warning(
        "source binlog_row_image",
        "{value}: rows are found by the source's key, so every table of the target must have that"
        " key and the same columns",
        "SET PERSIST binlog_row_image = FULL",
    )
    DEFAULTS_NOT_LOGGED = warning(
        "source binlog_row_image",
        "MINIMAL: a MariaDB does not log which columns a REPLACE sets to their defaults if it finds"
        " its row by a unique key; here they keep their values, as on the server's own replica",
        "SET PERSIST binlog_row_image = FULL (or NOBLOB), if REPLACE is used on tables with unique"
        " keys beside the primary key",
    )
    ROW_METADATA = ok(
        "source binlog_row_metadata", "{value}: rows that are passed on undecoded do not need it"
    )
    EVENT_OPTIONS = ok("source events", "{options}: all of them are supported")
    NO_CHECKSUM = warning(
        "source binlog_checksum",
        "NONE: corruption on the source's disk or in transit goes undetected",
        "SET PERSIST binlog_checksum = CRC32",
    )
    BINLOG_FILTERED = warning(
        "source binary log",
        "it is incomplete: {filters}",
        "remove binlog_do_db and binlog_ignore_db from the source's configuration, unless the rest"
        " is not wanted on the target",
    )
    CHAIN_CUT = warning(
        "source log_replica_updates",
        "OFF, but the source is itself a replica: what it replicates is not in its binary log",
        "start the source with log_replica_updates = ON, or replicate from its own source",
    )
    SYNC_BINLOG = warning(
        "source sync_binlog",
        "{value}: after a power failure the source may lack transactions that the target has, which"
        " stops the replica",
        "SET PERSIST sync_binlog = 1",
    )
    RETENTION = ok("source retention", "{period}")
    RETENTION_SHORT = warning(
        "source retention",
        "binary logs are purged after {period}: a replica stopped for longer loses its place",
        "SET PERSIST binlog_expire_logs_seconds = 604800 (a week), or more",
    )
    RETENTION_DELAY = error(
        "source retention",
        "binary logs are purged after {period}, but [replica] delay is {delay}: what is held back"
        " has not been read, and is purged before it is",
        "raise binlog_expire_logs_seconds on the source well above the delay, or lower the delay",
    )
    RETENTION_NEAR = warning(
        "source retention",
        "the position has not moved for {age} and is in {file}, and files are purged after"
        " {period}",
        "start mtsd soon, or raise binlog_expire_logs_seconds on the source in the meantime",
    )
    LOGS_UNSEEN = warning(
        "source binary log",
        "its files cannot be listed, so it was not checked whether the position is still there:"
        " {reason}",
        "GRANT {privilege} ON *.* TO {user}",
    )
    LOGS_HELD = warning(
        "source binary log",
        "its files cannot be listed, so it was not checked whether the position is still there:"
        " its clients wait for a replica, which keeps the log locked",
        "start mtsd, or look again once they go on",
    )

    POSITION_SCHEMA_ON_SOURCE = warning(
        "source databases",
        "{schema} exists ({tables}): changes in a database with the position schema's name are"
        " not replicated",
        "give the position tables a schema of their own: [target] schema",
    )
    POSITION_SCHEMA_OF_ANOTHER = ok(
        "source databases",
        "{schema} contains the position tables of an mtsd that writes to the source: it is not"
        " replicated",
    )
    CIRCLE = refusal("both servers", circles.LOOPS)
    CIRCLE_IF_BOTH_RUN = caution("both servers", circles.WOULD_LOOP)
    CIRCLE_BY_REPLICA = refusal("both servers", circles.OWN_LOOPS)
    CIRCLE_UNSEEN = caution("source databases", circles.UNSEEN)

    # Server ids.
    SERVER_ID = ok("source server_id", "{source}; this replica's is {replica}")
    NO_SERVER_ID = error(
        "source server_id",
        "0: the source accepts no replicas",
        "SET PERSIST server_id to a number that no other server has",
    )
    SERVER_ID_SAME = refusal("source server_id", handshake.SAME_SERVER_ID)
    DAEMON_CONNECTED = ok("source replicas", "this channel's daemon reads as server_id {value}")
    READ_BY_ANOTHER = warning(
        "source replicas",
        "a replica with this channel's UUID, {uuid}, reads as server_id {value}, and no daemon runs"
        " here: it has only just stopped, or the position tables are a copy of its target's",
        "if it is still there after a minute, find the other mtsd, and run mtsd position adopt on"
        " the copy: a daemon that is started here gives way to it",
    )
    SERVER_ID_TAKEN = error(
        "source replicas",
        "another replica reads with server_id {value} ({uuid}): the source disconnects one of them",
        "give this replica another id: [source] server_id",
    )
    SEMI_SYNC = ok("source semi-sync", "waits for this replica, {limit} at most")
    SEMI_SYNC_NOT_THERE = warning(
        "source semi-sync",
        "it cannot wait for replicas, so [source] semi_sync has no effect",
        "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so' on the source",
    )
    SEMI_SYNC_OFF = warning(
        "source semi-sync",
        "it waits for no replica, so [source] semi_sync has no effect",
        "SET PERSIST {variable} = ON on the source (on MariaDB: SET GLOBAL, and its option file)",
    )
    SERVER_ID_MAYBE_TAKEN = warning(
        "source replicas",
        "a replica reads with server_id {value} ({uuid}): this channel's daemon, or another",
        "if it is another, give this one a different id: [source] server_id",
    )
    SERVER_ID_OF_TARGET = warning(
        "target server_id",
        "{value}, the same as this replica's: the target could not itself replicate from the source"
        " at the same time",
        "give this replica another id: [source] server_id",
    )
    SAME_SERVER = error(
        "both servers",
        "source and target are the same server ({uuid})",
        "correct host and port of one; copies of a data directory need server_uuids of their own:"
        " remove auto.cnf from one and restart it",
    )

    # Where replication begins or continues.
    POSITION_TABLES_NEW = ok("target position", "none yet: the first start creates {schema}")
    POSITION_ELSEWHERE = warning(
        "target position",
        "none in the position schema yet, but {schema} on the target has one for the same source,"
        " {uuid}: what was applied from there may be applied twice",
        "set [target] schema to {schema}, or, with mtsd stopped, move its tables with RENAME TABLE;"
        " drop {schema} if it is no longer used",
    )
    POSITION = ok("target position", "{position}, group {number}{gtids}")
    STOPPED_GROUP = error(
        "target channel",
        "{group}, stopped the replica at {time}, and the next start applies it again: {message}",
        "do what that says, then start mtsd; it goes on by itself once the group can be applied",
    )
    DAEMON_RUNS = ok("target channel", "a daemon is running on it (connection {connection})")
    START = ok("source start", "{start}")
    START_MISSING = refusal("source start", start.MISSING)
    START_PURGED = refusal("source start", start.HISTORY_PURGED)
    START_FILES_PURGED = refusal("source start", start.FILES_PURGED)
    START_WITHOUT_GTIDS = refusal("source start", start.WITHOUT_GTIDS)
    START_NOT_EXECUTED = refusal("source start", start.NOT_EXECUTED)
    START_NO_PLACE = refusal("source start", start.NO_PLACE)
    START_INSIDE_GROUP = refusal("source start", start.INSIDE_GROUP)
    START_WITHOUT_FILES = refusal("source start", start.WITHOUT_FILES)
    START_UNSEEN = refusal("source start", start.UNSEEN)
    POSITION_AVAILABLE = ok("source position", "what is needed next is in the source's binary log")
    ANOTHER_SOURCE = ok(
        "source position",
        "the source is now {uuid}, before it was {former}: it has executed all that was applied,"
        " and mtsd continues with it",
    )
    POSITION_PURGED = refusal("source position", continuation.PURGED)
    POSITION_FILE_PURGED = refusal("source position", continuation.PURGED_FILE)
    POSITION_FILE_APPLIED = refusal("source position", continuation.PURGED_APPLIED)
    POSITION_PURGED_BEHIND = warning(
        "source position",
        "{found}, but a daemon runs, which may have received it",
        "leave it running until mtsd status{config} shows as executed what it now shows as"
        " received; only if it stops before that, copy the data again",
    )
    POSITION_PAST_END = refusal("source position", continuation.PAST_END)
    POSITION_REWRITTEN = refusal("source position", continuation.REWRITTEN)
    POSITION_FILE_REPLACED = refusal("source position", replaced_file.REPLACED)
    POSITION_RENAMED = refusal("source position", continuation.RENAMED)
    POSITION_WITHOUT_GTIDS = warning(
        "source position",
        "{position} is not known by GTID before the source's next binary log file: until then, no"
        " other source can take over, and what the target has executed is not compared",
        "FLUSH BINARY LOGS on the source while mtsd runs",
    )
    TARGET_EXECUTED_BEYOND = refusal("target position", EXECUTED_BEYOND)
    POSITION_WITHOUT_FILES = refusal("source position", continuation.WITHOUT_FILES)
    POSITION_BY_GTID = refusal("source position", continuation.GTIDS_OFF)
    SOURCE_BEHIND = refusal("source position", continuation.AHEAD)
    OTHER_SOURCE = refusal("source position", continuation.OTHER_SOURCE)
    OTHER_FAMILY = refusal("source position", continuation.OTHER_FAMILY)
    OTHER_SOURCE_NOT_KNOWN_BY_GTID = refusal("source position", continuation.NOT_KNOWN_BY_GTID)
    OTHER_SOURCE_NOT_REPAIRED = refusal("source position", continuation.NOT_REPAIRED)
    SOURCE_ON_ANOTHER_CHANNEL = refusal("target channel", ON_ANOTHER_CHANNEL)
    FILTERS_MEET = refusal("target channel", MEETING)
    FILTER = ok("filter", "{rules}; an XA transaction of the source would stop the replica")
    FILTER_MATCHES_NOTHING = warning(
        "filter",
        "no table of the source matches {rules}",
        "correct the names in [filter], which are those on the target (only rewrite_db has the"
        " source's), unless such tables are still to be created",
    )
    FILTER_BY_SESSION = warning(
        "filter",
        "the source's binlog_format is {value}, and {keys} judges a statement by the database that"
        " its session uses (USE), not by the tables that it changes: INSERT INTO shop.t in a"
        " session that uses another database, or none, is judged by that one, without an error",
        "filter by tables, wild_do_table or wild_ignore_table = ['shop.%'], or"
        " SET PERSIST binlog_format = ROW on the source",
    )
    POSITION_TABLES_PARTIAL = refusal("target position tables", position_schema.PARTIAL)
    POSITION_ROW_LOST = refusal("target position tables", position_schema.ROW_LOST)
    POSITION_WORKERS_LOST = refusal("target position tables", position_schema.WORKERS_LOST)
    POSITION_ROW_OLDER = refusal("target position tables", position_schema.ROW_OLDER)
    POSITION_UNREADABLE = refusal("target position tables", UNREADABLE)
    POSITION_TABLES_ALTERED = refusal("target position tables", position_schema.ALTERED)
    POSITION_TABLES_VERSION = refusal("target position tables", position_schema.VERSION)
    POSITION_TABLES_ENGINE = refusal("target position tables", position_schema.NO_TRANSACTIONS)
    POSITION_COPIED = refusal("target position tables", target_identity.COPIED)
    HANDED_OVER = refusal("target position", handed_over.FENCED)
    TARGET_MOVED = warning(
        "target position tables",
        "the target is {now} now, and was {before} at the last start: moved, or a copy of that"
        " server with all of its files",
        "if it is a copy, run mtsd position adopt on one of the two, and give that server another"
        " server_uuid (remove auto.cnf) or server_id",
    )
    POSITION_UNSEEN = error(
        "target position tables",
        "they cannot be read: {reason}",
        "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON `{schema}`.* TO {user}",
    )
    REPAIR_LEFT = warning(
        "target position",
        "mtsd or the target was killed while transactions were applied in no order (consistency ="
        ' "eventual"): until groups {first} to {last} have been applied once more, the target may'
        " show what the source never had",
        "start mtsd: it begins with that, whatever the consistency",
    )
    IN_DOUBT = warning(
        "target groups in doubt",
        "{groups}: the last run was interrupted while applying; the next start checks on the target"
        " what became of them",
        "nothing, unless the next start says that it cannot tell",
    )
    IN_DOUBT_WITHOUT_EVIDENCE = refusal("target groups in doubt", verdict.NO_EVIDENCE)
    IN_DOUBT_LOG_PURGED = refusal("target groups in doubt", verdict.LOG_PURGED)
    IN_DOUBT_LOG_OTHER = refusal("target groups in doubt", verdict.LOG_OTHER)
    IN_DOUBT_CRASHED = refusal("target groups in doubt", verdict.CRASHED)
    IN_DOUBT_NON_TRANSACTIONAL = refusal("target groups in doubt", verdict.NON_TRANSACTIONAL)

    # The policy.
    POLICY_CHOSEN = ok("policy", '"auto" comes to "{policy}": {because}')
    OTHER_POLICY = warning("policy", "{found}", policy_advice.REMEDY)
    NO_LOGICAL_CLOCK = warning(
        "source order of commits",
        '{family} {version} logs no logical clock: with parallel_type = "logical_clock" one'
        " transaction is applied after another",
        "set [replica] parallel_type = {instead}",
    )
    CLOCK_OF_COMMITS = warning(
        "source order of commits",
        "binlog_transaction_dependency_tracking = COMMIT_ORDER: only what commits on the source at"
        " the same time is applied in parallel",
        "SET PERSIST binlog_transaction_dependency_tracking = 'WRITESET' on the source, if its"
        " binlog_format is ROW",
    )
    NO_COMMIT_PARENT = warning(
        "source order of commits",
        'MySQL {version} logs no commit parents: with parallel_type = "commit_parent" one'
        " transaction is applied after another",
        'set [replica] parallel_type = "database" or "table"',
    )
    MERGED_WITHOUT_ORDER = warning(
        "source order of commits",
        "filter.rewrite_db makes one database of several ({databases}), of which the source logs no"
        ' common order: with parallel_type = "{policy}" their transactions are applied one after'
        " another",
        'set [replica] parallel_type = "row" or "table"',
    )
    KEYS_NOT_LOGGED = warning(
        "source keys of rows",
        'binlog_row_image = {value} leaves out former values of keys: with parallel_type = "row",'
        " changes of unique columns, and deletes from tables with more than a primary key, count"
        " for their whole tables",
        "SET PERSIST binlog_row_image = 'FULL' on the source (MariaDB: SET GLOBAL, and in its"
        " configuration)",
    )
    ROWS_NOT_WHOLE = warning(
        "source whole rows",
        '{setting} = {value}: consistency = "eventual" has to apply rows once more after a crash,'
        " and stops if they are not whole",
        "SET PERSIST {setting} = '{whole}' on the source (MariaDB: SET GLOBAL, and in its"
        " configuration)",
    )
    NEWER_ROW_NOT_WHOLE = error(
        "source whole rows",
        "{setting} = {value}, and newer_row_column compares whole rows",
        "SET PERSIST {setting} = '{whole}' on the source (MariaDB: SET GLOBAL, and in its"
        " configuration), or remove [replica] newer_row_column",
    )
    CHANGED_AS_WHOLE = warning(
        "target keys of rows",
        'with parallel_type = "row", changes of {count} are applied one after another: {tables}',
        "give them a primary key, and to text columns of keys a collation that docs/policies.md"
        " names; or leave it so",
    )

    # XA transactions.
    LOCKS_UNREADABLE = warning(
        "target lock waits",
        '{user} lacks {missing}: with consistency = "any_time", an earlier transaction that waits'
        " for a lock of a later one is held up for a second each time",
        "{grants}",
    )
    LOCKS_UNOBSERVED = warning(
        "target lock waits",
        "performance_schema is OFF, so nobody can see who waits for whom: with"
        ' consistency = "any_time", an earlier transaction that waits for a lock of a later one is'
        " held up for a second each time",
        "start the target with performance_schema = ON",
    )
    XA_UNLOGGED = warning("target XA transactions", UNLOGGED.found, UNLOGGED.remedy)
    XA_ATTACHED = warning("target XA transactions", ATTACHED.found, ATTACHED.remedy)
    XA_UNLISTED = warning(
        "target XA transactions",
        "{user} lacks {missing}: an XA transaction of the source that is interrupted, or fails, may"
        " stop the replica",
        "{grants}",
    )
    SPLIT_ON_MARIADB = error("target splitting", ON_MARIADB.found, ON_MARIADB.remedy)
    SPLIT_UNLOGGED = error(
        "target splitting", f"split_transactions: {UNLOGGED.found}", UNLOGGED.remedy
    )
    SPLIT_ATTACHED = error(
        "target splitting", f"split_transactions: {ATTACHED.found}", ATTACHED.remedy
    )
    SPLIT_UNLISTED = error(
        "target splitting",
        "{user} lacks {missing}: with split_transactions, a start after a crash has to"
        " list what is prepared",
        "{grants}",
    )
    PREPARED_BEFORE = warning(
        "source XA transactions",
        "{count} already prepared: {xids}; the target lacks what replication begins after, so that"
        " their commit would stop the replica",
        "commit them or roll them back on the source before its data is copied",
    )
    XIDS_TAKEN = warning(
        "target XA transactions",
        "{count} prepared there, but not by mtsd: {xids}; their locks remain, and a transaction of"
        " the source with one of these xids would stop the replica",
        "commit them or roll them back (XA RECOVER lists them)",
    )
    XIDS_GONE = warning(
        "target XA transactions",
        "{count} that mtsd has prepared there no longer prepared: {xids}; somebody has committed"
        " them or rolled them back, and what the source does with them will stop the replica",
        "compare the rows that they change on both servers",
    )
    XID_FORMATS = warning(
        "target XA transactions",
        "xids with different format ids are prepared ({formats}): MySQL with a binary log may roll"
        " some of them back when it recovers from a crash",
        "let everything that prepares transactions on the source use one format id",
    )

    # GTIDs.
    GTIDS = ok("both gtid_modes", "source {source}, target {target}; {way}; {meaning}")
    OTHER_GTIDS = ok(
        "both GTIDs", "{way}; the source's GTIDs mean nothing to the target of another family"
    )
    OTHER_FAMILY_GTIDS = refusal("target gtid", gtid_mode.OTHER_GTIDS)
    MARIADB_TARGET_GTIDS = refusal("target gtid", gtid_mode.ON_MARIADB)
    MARIADB_GTIDS = ok("both GTIDs", "MariaDB's; {way}; the target does not learn the source's")
    OWN_DOMAIN = ok(
        "target gtid_domain_id",
        "mtsd writes to the target's binary log in the domain {domain}, which is none of the"
        " source's",
    )
    DOMAIN_SHARED = refusal("target gtid_domain_id", own_domain.SHARED_DOMAIN)
    DOMAIN_SHARED_LOOSELY = warning(
        "target gtid_domain_id", own_domain.SHARED_DOMAIN.found, own_domain.SHARED_DOMAIN.remedy
    )
    CANNOT_LEAVE_DOMAIN = refusal("target gtid_domain_id", own_domain.CANNOT_LEAVE_DOMAIN)
    CANNOT_LEAVE_LOOSELY = warning(
        "target gtid_domain_id",
        own_domain.CANNOT_LEAVE_DOMAIN.found,
        own_domain.CANNOT_LEAVE_DOMAIN.remedy,
    )
    OWN_GTIDS_AHEAD = warning(
        "target GTIDs",
        "in domains of the source the target has written {gtids} itself, which is ahead of the"
        " position {position}: with gtid_strict_mode its own replica could not take over at that"
        " (error 1947)",
        "take over only after the source's numbers have passed it, or after RESET MASTER on the"
        " target",
    )
    TARGET_WITHOUT_EVIDENCE = warning(
        "target log_bin",
        "OFF, or [target] binary_log = false: if mtsd or the target is killed in the middle of DDL,"
        " nothing shows whether it was applied, and the next start may ask a person",
        "start the target with log_bin, and set [target] binary_log = true",
    )
    SOURCE_GTIDS_PARTLY = warning(
        "source gtid_mode",
        "{value}: reading is by file and position, and cannot follow to another server",
        "finish the change to gtid_mode = ON (or OFF)",
    )
    TARGET_WITHOUT_GTIDS = warning(
        "target gtid_mode",
        "{value}: if mtsd or the target is killed in the middle of DDL, nothing shows whether it"
        " was applied, and the next start may ask a person",
        "set enforce_gtid_consistency = ON and gtid_mode = ON on the target",
    )
    GTIDS_NEEDED = refusal("both gtid_modes", gtid_mode.WITHOUT_GTIDS)
    GTIDS_NOT_ALLOWED = refusal("target gtid", gtid_mode.GTIDS_NOT_ALLOWED)
    MIRROR_WITH_BINLOG = refusal("target gtid", gtid_mode.MIRROR_LOGGED)
    NOTHING_TO_MIRROR = warning(
        "target gtid",
        '"mirror", but the source\'s gtid_mode is {value}: there is nothing to mirror',
        'set gtid_mode = ON on the source, or [target] gtid = "off"',
    )
    GTID_CONSISTENCY = warning(
        "both enforce_gtid_consistency",
        "{source} on the source and ON on the target: what only the source allows, a transaction"
        " that mixes engines or contains temporary table DDL, stops the replica",
        "SET PERSIST enforce_gtid_consistency = ON on the source (WARN first)",
    )

    # What the daemon needs on this machine.
    STATUS_SOCKET_TAKEN = error(
        "status socket",
        "the daemon of channel {channel!r} to {target} answers on {path}: mtsd run refuses to start"
        " beside it",
        "give each daemon its own [status] socket",
    )
    STATUS_SOCKET_NO_SOCKET = error(
        "status socket",
        "{path} exists and is not a socket: mtsd run leaves it as it is, and refuses to start",
        "set another [status] socket, or remove it",
    )
    STATUS_SOCKET_FOLDER = warning(
        "status socket",
        "{path} cannot be created: {why}; started like this, mtsd run refuses",
        "create the folder for the user of the daemon (systemd does, with RuntimeDirectory), or set"
        " [status] socket",
    )

    # What the target accepts.
    WRITABLE = ok("target read_only", "{value}")
    SUPER_READ_ONLY = error(
        "target super_read_only",
        "ON: every change is refused (1290), and mtsd run waits until it is OFF",
        "SET PERSIST super_read_only = OFF; read_only may stay ON, with CONNECTION_ADMIN",
    )
    READ_ONLY = error(
        "target read_only",
        "ON, and {user} may not write anyway (1290): mtsd run waits until it is OFF",
        "{grants}, or SET PERSIST read_only = OFF",
    )
    SECURE_TIMESTAMP = error(
        "target secure_timestamp",
        "YES: a definition or statement does not get the time that it had on the source (1290)",
        "start the target with secure_timestamp = REPLICATION",
    )
    NATIVE_REPLICA = refusal("target replica", own_replica.RUNS)
    NATIVE_REPLICA_CONFIGURED = caution("target replica", own_replica.CONFIGURED)
    NATIVE_REPLICA_UNKNOWN = caution("target replica", own_replica.UNKNOWN)
    NATIVE_REPLICA_UNSEEN = caution("target replica", own_replica.UNSEEN)
    PASSES_OVER = refusal("target {variable}", lenient_target.PASSES_OVER)
    RENAMES = refusal("target replicate_rewrite_db", lenient_target.RENAMES)
    OTHER_ENGINE = refusal("target enforce_storage_engine", lenient_target.OTHER_ENGINE)
    FIRES_TRIGGERS = caution("target triggers", lenient_target.FIRES_TRIGGERS)
    SESSIONS = ok("target connections", "{free} free, mtsd needs {needed}")
    TOO_FEW_SESSIONS = error(
        "target connections",
        "{name} = {value}, but mtsd needs {needed} sessions",
        "raise {name} on the target, or lower [replica] parallel_workers",
    )
    SESSIONS_SCARCE = warning(
        "target connections",
        "{free} of {value} are free, but mtsd needs {needed}",
        "raise max_connections on the target",
    )
    FAR_AWAY = warning(
        "target distance",
        "a round trip to the target takes {value} ms, and mtsd waits for one for each batch of"
        " transactions, and for some four around each definition",
        "run mtsd on the target's machine, or in its zone: the source may be far away",
    )
    PACKET = ok("target max_allowed_packet", "{value}: row events up to {row} can be applied")
    PACKET_SMALL = warning(
        "target max_allowed_packet",
        "{value}, less than the source's {source}: a row event over {row} stops the replica, as do"
        " larger statements, values of variables and results of functions",
        "SET PERSIST max_allowed_packet = {wanted} on the target",
    )
    BATCH_CUT = warning(
        "replica batch_bytes",
        "{value}, but the target accepts row events up to {row} in one statement: larger batches"
        " are sent in pieces",
        "raise max_allowed_packet on the target, or lower [replica] batch_bytes",
    )
    PENDING = ok("replica pending_jobs_size_max", "{value}; larger transactions are streamed")
    PENDING_SMALL = warning(
        "replica pending_jobs_size_max",
        "{value}, less than the source's max_allowed_packet ({source}): one event may need more"
        " memory than that, and transactions that are larger are not applied in parallel",
        "set [replica] pending_jobs_size_max = {wanted}",
    )
    TARGET_STATEMENT_FORMAT = error(
        "target binlog_format",
        "STATEMENT: the target cannot write rows to its binary log, and refuses them (1665, 1666)",
        "SET PERSIST binlog_format = ROW on the target, or set [target] binary_log = false",
    )
    NO_LOCAL_FILES = warning(
        "target local_infile",
        "OFF, and the source's binlog_format is {value}: LOAD DATA is logged as a statement with"
        " its file, which the target refuses (3948)",
        "SET PERSIST local_infile = ON on the target",
    )
    VARIABLE_DIFFERS = warning(
        "both {name}",
        "{source} on the source, {target} on the target: {why}",
        "make them equal",
    )
    DEFAULT_COLLATION = warning(
        "both default collation of utf8mb4",
        "{source} on the source, {target} on the target: in a column or database that a definition"
        " gives CHARACTER SET utf8mb4 without COLLATE, other values are equal there, and statements"
        " and unique keys find others",
        "name the collation in definitions{or_set}",
    )
    UTF8_DIFFERS = warning(
        "both CHARACTER SET utf8",
        "{source} on the source, {target} on the target: a definition that names it makes columns"
        " that hold other characters",
        "{change}, or write utf8mb3 or utf8mb4 in definitions",
    )
    LOWER_CASE = warning(
        "both lower_case_table_names",
        "{source} on the source, {target} on the target: {why}",
        "set up the target with {source}; it cannot be changed later",
    )
    NAMES_COLLIDE = error(
        "both lower_case_table_names",
        "{count} of the source whose names differ only in case are one on the target: {tables};"
        " what is to be created is there already (1050), or the rows of all are in one",
        "set up the target with the source's lower_case_table_names, or rename or leave out all"
        " but one of each ([filter] ignore_table goes by the name on the target, and so for all)",
    )
    TIME_ZONES = ok("both time zones", "{found}")
    NO_TIME_ZONES = warning(
        "target time zones",
        "the source knows time zones by name, but the target does not: a statement run under a"
        " named one stops the replica (1298)",
        "mysql_tzinfo_to_sql /usr/share/zoneinfo | mysql -u root mysql, on the target",
    )
    TIME_ZONE_UNKNOWN = error(
        "target time zones",
        "the source's time_zone is {name}, but the target knows no names: DDL and statements stop"
        " the replica (1298)",
        "mysql_tzinfo_to_sql /usr/share/zoneinfo | mysql -u root mysql, on the target",
    )
    SYSTEM_TIME_ZONE = warning(
        "both system_time_zone",
        "the source's time_zone is SYSTEM, which is {source} there and {target} on the target:"
        " times in statements and DDL mean a different moment",
        "give both machines the same time zone, or SET PERSIST time_zone = '+00:00' on the source",
    )
    CLOCK = ok("{server} clock", "{offset}")
    CLOCK_OFF = warning(
        "{server} clock",
        "{offset}: commit times and times in logs do not match",
        "have both machines follow the same time servers (NTP)",
    )

    # Tables, triggers, events.
    TABLES = ok("{server} tables", "{count}, all transactional and with a key")
    NO_TABLES = ok("{server} tables", "none yet")
    NOT_COPIED = warning(
        "target tables",
        "none, but mtsd {begins}, as if the data had been copied to this target",
        "load the copy here, or correct host and port in [target]; or drop the position schema, if"
        ' there is one, and set [source] start = "earliest"',
    )
    TABLES_UNSEEN = warning(
        "{server} tables",
        "{user} sees none, so engines and keys were not checked",
        "GRANT REFERENCES ON *.* TO {user} shows which tables exist, but none of their contents",
    )
    NON_TRANSACTIONAL = warning(
        "{server} engines",
        "{count} not transactional: {tables}; if a change is interrupted, a person has to compare",
        "ALTER TABLE … ENGINE = InnoDB",
    )
    TARGET_ENGINE = error(
        "target engines",
        "{count} not transactional, unlike on the source: {tables}; if a change is interrupted, a"
        " person has to compare",
        "ALTER TABLE … ENGINE = InnoDB on the target, with sql_log_bin = 0 if it has replicas",
    )
    BLACKHOLES = error(
        "target engines",
        "{count} with ENGINE = BLACKHOLE, unlike on the source: {tables}; a row that is changed or"
        " deleted is not found there (1032), except by the server's own replica",
        "leave them out ([filter] ignore_table), or ALTER TABLE … ENGINE = InnoDB on the target",
    )
    NO_KEY = warning(
        "{server} keys",
        "{count} without a primary key: {tables}; each changed or deleted row is searched for in"
        " the whole table, or by an index that may not be unique",
        "ADD PRIMARY KEY",
    )
    MISSING_TABLES = warning(
        "both tables",
        "{count} of the source are not on the target: {tables}; and mtsd {begins}: changes of their"
        " rows stop it (1146), unless a definition that it has still to read creates them",
        "copy them, and start at the copy's position; or leave them out ([filter] ignore_table); or"
        ' copy nothing, and start with "earliest"',
    )
    COLUMNS = ok("both columns", "{count} on both, with columns that accept the source's rows")
    COLUMNS_REFUSED = error(
        "target columns",
        "{count} to which the target cannot apply the source's rows (1677): {columns}",
        "{remedy}; unless a definition that is still to be replicated does so",
    )
    COLUMNS_CUT = warning(
        "target columns",
        "{count} whose values replica_type_conversions lets the target truncate: {columns}",
        "give them the source's type (ALTER TABLE on the target)",
    )
    COLUMNS_MISREAD = error(
        "target columns",
        "{count} whose bytes have another meaning on the target: {columns}; rows are applied"
        " without an error, but with other values",
        "give them the source's sign, character set or list of values (ALTER TABLE on the target)",
    )
    COLUMNS_MOVED = warning(
        "target columns",
        "{count} with another name in the same position: {columns}; rows are applied by position",
        "put the columns in the source's order (ALTER TABLE on the target), unless only the name"
        " differs",
    )
    COLUMNS_BY_ZONE = warning(
        "target columns",
        "{count} generated from a TIMESTAMP: {columns}; rows are applied as SQL, and here the"
        " target computes them in the time zone '+00:00', whatever that of the source's session"
        " was",
        "let sessions of the source have time_zone = '+00:00', or store a DATETIME in place of the"
        " TIMESTAMP (ALTER TABLE on both servers)",
    )
    COLUMNS_BY_DEFAULT_ZONE = warning(
        "target columns",
        "{count} generated from a TIMESTAMP: {columns}; if the first statement of a transaction"
        " uses no time zone, the source does not say its session's, and the target computes them in"
        " its own time_zone, {target} ({source} on the source)",
        "start both servers with the same default_time_zone",
    )
    COLUMNS_FEWER = warning(
        "target columns",
        "{count} with fewer columns than on the source: {tables}; the contents of the last ones are"
        " not replicated",
        "ALTER TABLE … ADD COLUMN on the target",
    )
    FOREIGN_KEYS = warning(
        "{server} foreign keys",
        '{count} from another database: {keys}; with parallel_type = "database", transactions on'
        " tables of these databases that have foreign keys count for all of them",
        "keep tables that reference each other in one database",
    )
    FOREIGN_KEYS_JOIN = warning(
        "both foreign keys",
        "{count} from one database to another: {keys}; a MariaDB does not log which tables others"
        " refer to, so these databases are applied as one",
        "keep tables that reference each other in one database, or set [replica] parallel_type ="
        ' "table" or "row"',
    )
    CASCADES = warning(
        "{server} foreign keys",
        "{count} with cascades, and innodb_native_foreign_keys is OFF: {keys}; a deadlock or a lock"
        " wait time-out inside a cascade is then no error for MySQL 9.7, and changes are lost"
        " or logged although they were undone, so that servers differ",
        "start the server with innodb_native_foreign_keys = ON",
    )
    VERSIONED = error(
        "target tables",
        "{count} with system versioning, whose rows would be history at once on the target, a"
        " MariaDB from 11.5 on, because the source is older: {tables}",
        "drop system versioning from them on both servers, or upgrade the source to 11.5 or later",
    )
    VERSIONED_AS_SQL = error(
        "target tables",
        "{count} with system versioning, but rows are applied as SQL, which cannot write the"
        " history that a MariaDB logs: {tables}",
        'drop system versioning on the target, or set [target] apply_mode = "binlog"',
    )
    NOT_GENERATED = error(
        "target columns",
        "{count} with generated columns, which the source, a newer MariaDB, does not log when it"
        " changes a row: the target would keep their former values, or not find the row: {tables}",
        'set [target] apply_mode = "sql", and the target generates them',
    )
    TRIGGERS = ok(
        "target triggers", "{count}; they do not fire for rows, whose effects are replicated"
    )
    OWN_TRIGGERS = warning(
        "target triggers",
        "{count} not seen on the source: {triggers}; they do not fire for the rows"
        " that mtsd applies",
        "drop them, or do their work elsewhere",
    )
    TRIGGERS_REFUSED = error(
        "target triggers",
        "{count}, but rows are applied as SQL, which refuses tables with triggers: {triggers}",
        'drop them, or set [target] apply_mode = "binlog"',
    )
    POSITION_SCHEMA_REACHED = warning(
        "target position tables",
        "a MariaDB does not log which databases a statement changes, and one may change them"
        " through {found}: mtsd would lose its position without an error",
        "drop those that change tables of {schema} (one that only reads them is harmless), set"
        " binlog_format = ROW on the source, or give the position tables another [target] schema",
    )
    EVENTS = ok("target events", "{found}")
    EVENTS_TWICE = warning(
        "target events",
        "{count} enabled: {events}; their effects are replicated, and happen again on the target",
        "ALTER EVENT … DISABLE ON REPLICA on the target, or SET PERSIST event_scheduler = OFF",
    )
