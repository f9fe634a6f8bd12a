"""What a person who helps needs to see of a replica, without anybody's secrets."""
