"""One-to-one assignment of rows to columns, by shortest augmenting paths (Jonker and Volgenant, 1987)."""

from ihmm.kernels._jit import jit

FAR = 2**62


@jit
def assign(gain, column_of, room):
    """Write the column of each row, all of them different, with the largest total gain. There are enough columns.

    Rows are added one by one. Prices keep gain[i, j] − row_price[i] − column_price[j] ≤ 0, with equality for the pairs
    that are assigned; an augmenting path along which this slack is least reaches a free column. `room`, (6, columns),
    is overwritten.
    """
    n_rows, n_columns = gain.shape
    row_price, column_price, row_of, slack, came_from, reached = room
    for j in range(n_columns):
        column_price[j], row_of[j] = 0, -1  # the row of each column, −1 if it is free
    for new in range(n_rows):
        highest = gain[new, 0] - column_price[0]
        for j in range(n_columns):
            slack[j], came_from[j], reached[j] = FAR, -1, 0
            highest = max(highest, gain[new, j] - column_price[j])
        row_price[new] = highest
        i, last = new, -1
        while i >= 0:
            nearest = -1
            for j in range(n_columns):
                if reached[j] == 0:
                    distance = row_price[i] + column_price[j] - gain[i, j]
                    if distance < slack[j]:
                        slack[j], came_from[j] = distance, last
                    if nearest < 0 or slack[j] < slack[nearest]:
                        nearest = j
            step = slack[nearest]
            row_price[new] -= step
            for j in range(n_columns):
                if reached[j] == 1:
                    row_price[row_of[j]] -= step
                    column_price[j] += step
                else:
                    slack[j] -= step
            reached[nearest] = 1
            i, last = row_of[nearest], nearest
        while last >= 0:
            before = came_from[last]
            row_of[last] = row_of[before] if before >= 0 else new
            last = before
    for j in range(n_columns):
        if row_of[j] >= 0:
            column_of[row_of[j]] = j
