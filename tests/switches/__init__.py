"""Many switches of the writers under a load, some of them killed."""
