"""Expectation–maximisation for levels in noise with memory and a hard minimum dwell time.

A change from j to k at step t is one move that covers the next `dwell` steps: since the dwell time is at least the
order p of the noise, the state before matters in these steps only. Forward and backward passes therefore have K states
and K² moves per step, whatever the dwell time.
"""

import math

import numpy as np

from ihmm.kernels._jit import in_place, jit

NEGLIGIBLE = 1e-7  # posterior weight


@in_place
def _log_t(square, dof):
    """log density of a standardised residual with the given square, without the constant."""
    if math.isinf(dof):
        return -0.5 * square
    return -0.5 * (dof + 1.0) * math.log1p(square / dof)


@in_place
def _log_constant(dof):
    """The constant of the log density of a standardised residual."""
    if math.isinf(dof):
        return -0.5 * math.log(2.0 * math.pi)
    return math.lgamma(0.5 * (dof + 1.0)) - math.lgamma(0.5 * dof) - 0.5 * math.log(math.pi * dof)


@jit
def score(z, offsets, level, scale, coefficients, dof, dwell, recalled, settled, change):
    """Log densities: (T, K) of settled steps, and (T, K, K) of the first `dwell` steps after a change from j to k at t.

    `z` is y without its predictable part; NaN in its first column marks uninformative steps. `coefficients` is (p, D).
    They are written to `settled`, which is 0, and `change`, which is −∞.
    """
    length, n_columns = z.shape
    n_states, order = len(level), len(coefficients)
    remaining = np.empty((order + 1, n_columns))  # B_a in row a − 1; the last row is 0
    mean, constant = np.empty((n_states, n_columns)), np.empty(n_states)
    for d in range(n_columns):
        remaining[order, d] = 0.0
        for lag in range(order - 1, -1, -1):
            remaining[lag, d] = remaining[lag + 1, d] + coefficients[lag, d]
    for k in range(n_states):
        constant[k] = 0.0
        for d in range(n_columns):
            mean[k, d] = level[k, d] * (1.0 - remaining[0, d])
            constant[k] += _log_constant(dof) - math.log(scale[k, d])
    for t in range(length):
        if math.isnan(z[t, 0]):
            continue
        for k in range(n_states):
            total = constant[k]
            for d in range(n_columns):
                total += _log_t(((z[t, d] - mean[k, d]) / scale[k, d]) ** 2, dof)
            settled[t, k] = total
    for s in range(len(offsets) - 1):
        for t in range(offsets[s] + 1, offsets[s + 1]):
            last = min(t + dwell, offsets[s + 1])
            for k in range(n_states):
                rest = 0.0
                for u in range(min(t + recalled, last), last):
                    rest += settled[u, k]
                for j in range(n_states):
                    if j == k:
                        continue
                    total = rest
                    for u in range(t, min(t + recalled, last)):
                        if math.isnan(z[u, 0]):
                            continue
                        total += constant[k]
                        for d in range(n_columns):
                            shift = remaining[u - t, d] * (level[k, d] - level[j, d])
                            total += _log_t(((z[u, d] - mean[k, d] - shift) / scale[k, d]) ** 2, dof)
                    change[t, j, k] = total


@jit
def smooth(settled, change, offsets, log_initial, log_stay, log_jump, dwell, weight, moves):
    """Log likelihood. Posterior weights of settled steps, (T, K), and changes, (T, K, K), are the last two arguments.

    The weight of a step that is settled for certain because its age is past the memory of the noise is not separated
    from changes: `maximise` adds it.
    """
    length, n_states = settled.shape
    alpha, beta = np.empty((length, n_states)), np.empty((length, n_states))
    start, terms = np.empty(n_states), np.empty(n_states)
    total = 0.0
    for s in range(len(offsets) - 1):
        begin, end = offsets[s], offsets[s + 1]
        first = min(begin + dwell, end)  # the steps before it are in the first state for certain
        for k in range(n_states):
            start[k] = log_initial[k]
            for t in range(begin, first):
                start[k] += settled[t, k]
            alpha[first - 1, k] = start[k]
            beta[end - 1, k] = 0.0
        for t in range(first, end):
            for k in range(n_states):
                for j in range(n_states):
                    terms[j] = -np.inf
                    if j != k and t - dwell >= first - 1:
                        terms[j] = alpha[t - dwell, j] + log_jump[j, k] + change[t - dwell + 1, j, k]
                terms[k] = alpha[t - 1, k] + log_stay[k] + settled[t, k]
                alpha[t, k] = _log_sum(terms)
        for t in range(end - 2, first - 2, -1):
            for j in range(n_states):
                for k in range(n_states):
                    if k == j:
                        terms[k] = log_stay[j] + settled[t + 1, j] + beta[t + 1, j]
                    else:
                        after = beta[t + dwell, k] if t + dwell < end else 0.0
                        terms[k] = log_jump[j, k] + change[t + 1, j, k] + after
                beta[t, j] = _log_sum(terms)
        for k in range(n_states):
            terms[k] = start[k] + beta[first - 1, k]
        evidence = _log_sum(terms)
        total += evidence
        for k in range(n_states):
            for t in range(begin, first):
                weight[t, k] = math.exp(start[k] + beta[first - 1, k] - evidence)
        for t in range(first, end):
            for j in range(n_states):
                weight[t, j] = math.exp(alpha[t - 1, j] + log_stay[j] + settled[t, j] + beta[t, j] - evidence)
                for k in range(n_states):
                    if k != j:
                        after = beta[t + dwell - 1, k] if t + dwell - 1 < end else 0.0
                        moves[t, j, k] = math.exp(alpha[t - 1, j] + log_jump[j, k] + change[t, j, k] + after - evidence)
    return total


@in_place
def _log_sum(terms):
    highest = terms[0]
    for i in range(1, len(terms)):
        highest = max(highest, terms[i])
    if highest == -np.inf:
        return -np.inf
    total = 0.0
    for i in range(len(terms)):
        if terms[i] > highest - 40.0:
            total += math.exp(terms[i] - highest)
    return highest + math.log(total)


@jit
def decode(settled, change, offsets, log_initial, log_stay, log_jump, dwell, path):
    """The most probable path (Viterbi) is written to `path`, (T,)."""
    length, n_states = settled.shape
    best, origin = np.empty((length, n_states)), np.empty((length, n_states), np.int64)
    for s in range(len(offsets) - 1):
        begin, end = offsets[s], offsets[s + 1]
        first = min(begin + dwell, end)
        for k in range(n_states):
            best[first - 1, k] = log_initial[k]
            for t in range(begin, first):
                best[first - 1, k] += settled[t, k]
        for t in range(first, end):
            for k in range(n_states):
                best[t, k], origin[t, k] = best[t - 1, k] + log_stay[k] + settled[t, k], k
                for j in range(n_states):
                    if j != k and t - dwell >= first - 1:
                        value = best[t - dwell, j] + log_jump[j, k] + change[t - dwell + 1, j, k]
                        if value > best[t, k]:
                            best[t, k], origin[t, k] = value, j
        # the last visit may be shorter than the minimum: the recording ends
        t, k = end - 1, 0
        for j in range(n_states):
            if best[t, j] > best[t, k]:
                k = j
        highest = best[t, k]
        for u in range(max(first, end - dwell + 1), end):
            for j in range(n_states):
                for i in range(n_states):
                    if i != j and best[u - 1, j] + log_jump[j, i] + change[u, j, i] > highest:
                        highest = best[u - 1, j] + log_jump[j, i] + change[u, j, i]
                        for v in range(u, end):
                            path[v] = i
                        t, k = u - 1, j
        while t >= begin:
            if t <= first - 1:
                for v in range(begin, t + 1):
                    path[v] = k
                break
            if origin[t, k] == k:
                path[t] = k
                t -= 1
            else:
                for v in range(t - dwell + 1, t + 1):
                    path[v] = k
                t, k = t - dwell, origin[t, k]


@jit
def maximise(y, z, offsets, weight, moves, level, scale, coefficients, dof, dwell, recalled, shared, dofs):
    """Update levels, scales and coefficients, (K, D), (K, D) and (p, D), in place; return the best of the `dofs`.

    `weight` is changed, too: settled steps within moves are added, so that it becomes the weight of settled steps.
    """
    length, n_columns = y.shape
    n_states, order = len(level), len(coefficients)
    n_entries = 0  # at most
    for s in range(len(offsets) - 1):
        for t in range(offsets[s] + 1, offsets[s + 1]):
            for j in range(n_states):
                for k in range(n_states):
                    if moves[t, j, k] > NEGLIGIBLE:
                        n_entries += recalled
                        for u in range(t + recalled, min(t + dwell, offsets[s + 1])):
                            weight[u, k] += moves[t, j, k]
    for t in range(length):
        for k in range(n_states):
            n_entries += weight[t, k] > NEGLIGIBLE
    # one row per step and state with some weight: step, state, state before, age (order + 1 if settled)
    who, share = np.empty((n_entries, 4), np.int64), np.empty(n_entries)
    n_entries = 0
    for s in range(len(offsets) - 1):
        for t in range(offsets[s], offsets[s + 1]):
            for k in range(n_states):
                if weight[t, k] > NEGLIGIBLE and not math.isnan(z[t, 0]):
                    who[n_entries, 0], who[n_entries, 1] = t, k
                    who[n_entries, 2], who[n_entries, 3] = k, order + 1
                    share[n_entries] = weight[t, k]
                    n_entries += 1
                for j in range(n_states):
                    if moves[t, j, k] > NEGLIGIBLE:
                        for u in range(t, min(t + recalled, offsets[s + 1])):
                            if not math.isnan(z[u, 0]):
                                who[n_entries, 0], who[n_entries, 1] = u, k
                                who[n_entries, 2], who[n_entries, 3] = j, u - t + 1
                                share[n_entries] = moves[t, j, k]
                                n_entries += 1
    residual, tail = np.empty(n_entries), np.empty(n_entries)
    squares, counts = np.empty(n_states), np.empty(n_states)
    size = max(n_states, order)
    left, right, past = np.empty((size, size)), np.empty(size), np.empty(order)
    fit = np.empty(len(dofs))
    for g in range(len(dofs)):
        fit[g] = 0.0
    for d in range(n_columns):
        # Levels, given the coefficients: weighted least squares
        _clear(left, right, n_states)
        for i in range(n_entries):
            t, k, j, age = who[i, 0], who[i, 1], who[i, 2], who[i, 3]
            later = 0.0
            for lag in range(age - 1, order):
                later += coefficients[lag, d]
            whole = 1.0
            for lag in range(order):
                whole -= coefficients[lag, d]
            own, other = whole + later, -later
            mean = own * level[k, d] + other * level[j, d]
            square = ((z[t, d] - mean) / scale[k, d]) ** 2
            tail[i] = (1.0 + 1.0 / dof) / (1.0 + square / dof)
            w = share[i] * tail[i] / scale[k, d] ** 2
            left[k, k] += w * own * own
            right[k] += w * own * z[t, d]
            if later != 0.0:
                left[k, j] += w * own * other
                left[j, k] += w * own * other
                left[j, j] += w * other * other
                right[j] += w * other * z[t, d]
        for k in range(n_states):  # a little of the old value: a state without weight stays where it is
            ridge = 1e-6 / scale[k, d] ** 2
            left[k, k] += ridge
            right[k] += ridge * level[k, d]
        _solve(left, right, n_states)
        for k in range(n_states):
            level[k, d] = right[k]
        # Coefficients, given the levels
        if order > 0:
            _clear(left, right, order)
            for i in range(n_entries):
                t, k, j, age = who[i, 0], who[i, 1], who[i, 2], who[i, 3]
                w = share[i] * tail[i] / scale[k, d] ** 2
                for lag in range(order):
                    past[lag] = y[t - lag - 1, d] - level[k if lag + 1 < age else j, d]
                now = y[t, d] - level[k, d]
                for lag in range(order):
                    right[lag] += w * past[lag] * now
                    for other_lag in range(order):
                        left[lag, other_lag] += w * past[lag] * past[other_lag]
            for lag in range(order):
                left[lag, lag] += 1e-6 * left[lag, lag] + 1e-12
            _solve(left, right, order)
            total = 0.0
            for lag in range(order):
                total += right[lag]
            most = 0.98 if n_states > 1 else 0.9999  # a random walk has no levels
            factor = most / total if total > most else 1.0
            for lag in range(order):
                coefficients[lag, d] = factor * right[lag]
        # Scales, given both
        for k in range(n_states):
            squares[k], counts[k] = 0.0, 1e-12
        for i in range(n_entries):
            t, k, j, age = who[i, 0], who[i, 1], who[i, 2], who[i, 3]
            value = y[t, d] - level[k, d]
            for lag in range(order):
                value -= coefficients[lag, d] * (y[t - lag - 1, d] - level[k if lag + 1 < age else j, d])
            residual[i] = value
            squares[k] += share[i] * tail[i] * value * value
            counts[k] += share[i]
        square, count = 0.0, 0.0
        for k in range(n_states):
            square += squares[k]
            count += counts[k]
        pooled = square / count
        for k in range(n_states):
            # own scales borrow three steps from all states, so that none collapses onto equal values
            variance = pooled if shared else (squares[k] + 3.0 * pooled) / (counts[k] + 3.0)
            scale[k, d] = math.sqrt(max(variance, 1e-12 * pooled + 1e-300))
        for g in range(len(dofs)):
            nu = dofs[g]
            for i in range(n_entries):
                fit[g] += share[i] * _log_t((residual[i] / scale[who[i, 1], d]) ** 2, nu)
            fit[g] += count * _log_constant(nu)
    best = 0
    for g in range(len(dofs)):
        if fit[g] > fit[best]:
            best = g
    return dofs[best]


@in_place
def _clear(matrix, vector, n):
    for i in range(n):
        vector[i] = 0.0
        for j in range(n):
            matrix[i, j] = 0.0


@in_place
def _solve(matrix, vector, n):
    """Solve the first n equations in place by elimination; the matrix is symmetric and positive definite."""
    for i in range(n):
        for j in range(i + 1, n):
            factor = matrix[j, i] / matrix[i, i]
            for k in range(i, n):
                matrix[j, k] -= factor * matrix[i, k]
            vector[j] -= factor * vector[i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            vector[i] -= matrix[i, k] * vector[k]
        vector[i] /= matrix[i, i]
