"""Arguments and options shared by several commands."""

from pathlib import Path

import click

POSITIVE = click.IntRange(min=1)
NOT_NEGATIVE = click.IntRange(min=0)
PATH = click.Path(path_type=Path)

run_argument = click.argument("run", type=PATH)
files_argument = click.argument("files", nargs=-1, metavar="FILE...")
column_option = click.option(
    "--column",
    multiple=True,
    metavar="NAME",
    help="Column to read: a name, a pattern, or a number from 1 if there is no header. May be repeated.",
)
id_option = click.option("--id", metavar="NAME", help="Column that identifies the series of each row.")
delimiter_option = click.option("--delimiter", metavar="CHAR", help="Cell delimiter: a character, tab or space.")
cores_option = click.option(
    "--cores", type=POSITIVE, help="Number of chains to run at the same time; all processors by default."
)
report_option = click.option(
    "--report/--no-report",
    default=None,
    help="Write report.html; by default if the packages it needs are installed.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
quiet_option = click.option("--quiet", is_flag=True, help="Do not show progress.")
csv_option = click.option("--out", type=PATH, help="CSV file to write; standard output by default.")
