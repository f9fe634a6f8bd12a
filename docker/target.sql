-- Prepares the target; the image has made the user mtsd, with its password, just before.
-- Whatever was run on the source is run again by this user: all privileges are needed.
GRANT ALL ON *.* TO 'mtsd'@'%' WITH GRANT OPTION;

RESET BINARY LOGS AND GTIDS;
