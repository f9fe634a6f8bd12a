"""What is written into the docs from the list of metrics: their table, alerts and a dashboard."""
