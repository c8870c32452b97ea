"""Reading series from CSV, TSV, NPY and Parquet files."""

from ihmm.tables._read import Table, read
from ihmm.tables._source import Layout, TableError

__all__ = ["Layout", "Table", "TableError", "read"]
