"""Binary logs on Spark: rows as Arrow columns (extra `spark`)."""
