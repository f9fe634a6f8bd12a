"""Binary logs, wherever they are: in a folder or at a live source."""
