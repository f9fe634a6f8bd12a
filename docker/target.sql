-- Prepares the target; the image has made the user mtsd, with its password, just before.
-- As `mtsd check --grants` prints it: enough for everything but CREATE USER, GRANT and the like. Run
-- these on both servers with sql_log_bin = 0, because on the source alone they stop the replica.
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES, INDEX, ALTER, CREATE TEMPORARY TABLES, EXECUTE, CREATE VIEW, CREATE ROUTINE, ALTER ROUTINE, EVENT, TRIGGER, RELOAD, REPLICATION CLIENT ON *.* TO 'mtsd'@'%';
GRANT REPLICATION_APPLIER, XA_RECOVER_ADMIN, SESSION_VARIABLES_ADMIN ON *.* TO 'mtsd'@'%';
SET PERSIST partial_revokes = ON;
REVOKE SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES, INDEX, ALTER, CREATE TEMPORARY TABLES, CREATE VIEW, CREATE ROUTINE, ALTER ROUTINE, EVENT, TRIGGER ON `mysql`.* FROM 'mtsd'@'%';
REVOKE INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES, INDEX, ALTER, CREATE TEMPORARY TABLES, CREATE VIEW, CREATE ROUTINE, ALTER ROUTINE, EVENT, TRIGGER ON `sys`.* FROM 'mtsd'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON `mtsd`.* TO 'mtsd'@'%';

-- Without SUPER, triggers and functions of the source take this.
SET PERSIST log_bin_trust_function_creators = ON;

RESET BINARY LOGS AND GTIDS;
