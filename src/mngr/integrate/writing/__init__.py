"""What an integration tells: commits, report, pull request, receipt; and handing it over to a forge."""
