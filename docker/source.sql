-- Prepares the source; the image has made the user repl, with its password, just before.
-- As `mtsd check --grants` prints it:
GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'repl'@'%';
GRANT REFERENCES ON *.* TO 'repl'@'%';

-- The accounts are this server's own: what is replicated begins after them.
RESET BINARY LOGS AND GTIDS;
