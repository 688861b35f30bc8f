"""What sampling and training leave on disk, and reading it back: groups as parquet, JSON, CSV and plain text."""
