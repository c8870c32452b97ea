"""Reading series from CSV, TSV, NPY and Parquet files."""

from ihmm.tables._read import Table, read
from ihmm.tables._source import TableError

__all__ = ["Table", "TableError", "read"]
