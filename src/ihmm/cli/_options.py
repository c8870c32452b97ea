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
time_option = click.option("--time", metavar="NAME", help="Column with the time of each row: dates, or numbers.")
dt_option = click.option("--dt", metavar="TIME", help="Time between rows, such as 0.1ms; seconds without a unit.")
sample_rate_option = click.option("--sample-rate", metavar="RATE", help="Rows per second, such as 10kHz.")
decimal_option = click.option("--decimal", type=click.Choice([".", ","]), help="Decimal mark of numbers.")
skip_rows_option = click.option(
    "--skip-rows", type=NOT_NEGATIVE, default=0, help="Lines above the header that are not part of the table."
)
na_option = click.option(
    "--na", multiple=True, metavar="VALUE", help="Number or text that marks missing values. May be repeated."
)
order_by_option = click.option(
    "--order-by", type=click.Choice(["use", "mean"]), help="Number states by use, the default, or by their mean."
)
name_option = click.option(
    "--name", multiple=True, metavar="STATE=NAME", help="Name of a state, such as 0=closed. May be repeated."
)
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
