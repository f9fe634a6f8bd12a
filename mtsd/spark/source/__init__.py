"""The data source itself: batches and streams."""
