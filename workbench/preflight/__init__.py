"""What can be known before any GPU hour is spent. Nothing here imports torch."""
