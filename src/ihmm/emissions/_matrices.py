"""Triangular factors of covariance matrices, one or a stack of them."""

from math import lgamma

import numpy as np

from ihmm._typing import FloatArray

EPSILON = float(np.finfo(np.float64).eps)


def cholesky(covariance: FloatArray) -> FloatArray:
    """Lower triangular factors; a matrix made singular by rounding is replaced by the nearest positive definite one."""
    try:
        return np.asarray(np.linalg.cholesky(covariance))
    except np.linalg.LinAlgError:
        if covariance.ndim == 3:
            return np.stack([cholesky(matrix) for matrix in covariance])
    deviation = np.sqrt(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(deviation, deviation))
    half = vectors * np.sqrt(np.maximum(values, EPSILON * len(values)))
    return np.asarray(deviation[:, None] * triangle(half.T).T)


def triangle(matrix: FloatArray) -> FloatArray:
    """Upper triangular R with RᵀR = AᵀA and a non-negative diagonal, for A or each A in a stack. A tall A is reduced
    block by block."""
    *stack, _, size = matrix.shape
    height = max(2 * size, 4096 // size)
    while (n := matrix.shape[-2]) > height:
        padded = np.concatenate([matrix, np.zeros((*stack, -n % height, size))], axis=-2)
        matrix = np.reshape(np.linalg.qr(padded.reshape(*stack, -1, height, size), mode="r"), (*stack, -1, size))
    root = np.asarray(np.linalg.qr(matrix, mode="r"))
    return root * np.where(np.diagonal(root, axis1=-2, axis2=-1) < 0, -1.0, 1.0)[..., None]


def log_det(factor: FloatArray) -> FloatArray:
    """log |LLᵀ| for triangular factors L."""
    return np.asarray(2 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1))


def log_multigamma(dof: float, size: int) -> float:
    """log Γ_D(dof/2)."""
    return size * (size - 1) / 4 * float(np.log(np.pi)) + sum(lgamma((dof - i) / 2) for i in range(size))
