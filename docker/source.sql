-- Prepares the source; the image has made the user repl, with its password, just before.
GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'repl'@'%';

-- The accounts are this server's own: what is replicated begins after them.
RESET BINARY LOGS AND GTIDS;
