"""What can be told about agents from what they leave behind: their logs and their work."""
