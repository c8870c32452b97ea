"""Several families side by side, each with its own columns; within a state they are independent.

A product has a table in place of a family number. Row p of the table describes part p: its family, whether that is a
family of rows, and where its columns and its statistics begin and end.

prior: that of part p is prior[p, 0] for a family of numbers, prior[p] for a family of rows (cut to its columns)
statistics: number of time steps with any value, then the statistics of the parts one after the other
"""

from ihmm.kernels._jit import jit
from ihmm.kernels.families.dispatch import (
    change_number,
    change_row,
    combine_numbers,
    combine_rows,
    log_evidence_of_numbers,
    log_evidence_of_rows,
    log_predictive_of_number,
    log_predictive_of_row,
    missing,
)

FAMILY, OF_ROWS, COLUMN, LAST_COLUMN, STATISTIC, LAST_STATISTIC = range(6)  # columns of the table


@jit
def change_statistics(table, statistic, y, sign):
    if missing(y):
        return
    statistic[0] += sign
    for p in range(len(table)):
        part, column = table[p], table[p, COLUMN]
        own = statistic[part[STATISTIC] : part[LAST_STATISTIC]]
        if part[OF_ROWS]:
            change_row(part[FAMILY], own, y[column : part[LAST_COLUMN]], sign)
        else:
            change_number(part[FAMILY], own, y[column], sign)


@jit
def log_predictive(table, prior, statistic, y):
    total = 0.0
    for p in range(len(table)):
        part, column = table[p], table[p, COLUMN]
        own = statistic[part[STATISTIC] : part[LAST_STATISTIC]]
        if part[OF_ROWS]:
            row = y[column : part[LAST_COLUMN]]
            total += log_predictive_of_row(part[FAMILY], prior[p, :, : len(row)], own, row)
        else:
            total += log_predictive_of_number(part[FAMILY], prior[p, 0], own, y[column])
    return total


@jit
def combine(table, prior, first, second, combined):
    for p in range(len(table)):
        part, begin, end = table[p], table[p, STATISTIC], table[p, LAST_STATISTIC]
        if part[OF_ROWS]:
            own = prior[p, :, : part[LAST_COLUMN] - part[COLUMN]]
            combine_rows(part[FAMILY], own, first[begin:end], second[begin:end], combined[begin:end])
        else:
            combine_numbers(part[FAMILY], prior[p, 0], first[begin:end], second[begin:end], combined[begin:end])
    combined[0] = first[0] + second[0]


@jit
def log_evidence(table, prior, statistic):
    total = 0.0
    for p in range(len(table)):
        part, own = table[p], statistic[table[p, STATISTIC] : table[p, LAST_STATISTIC]]
        if part[OF_ROWS]:
            total += log_evidence_of_rows(part[FAMILY], prior[p, :, : part[LAST_COLUMN] - part[COLUMN]], own)
        else:
            total += log_evidence_of_numbers(part[FAMILY], prior[p, 0], own)
    return total
