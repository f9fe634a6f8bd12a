"""What people are told: reasons, findings, commands, exit statuses."""
