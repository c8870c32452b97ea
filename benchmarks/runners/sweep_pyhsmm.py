"""ms of processor time per sweep of pyhsmm's weak-limit HDP-HSMM: python sweep_pyhsmm.py SERIES.npy TRUNCATION

pyhsmm 0.1.7 does not install by itself any more: it imports what it does not require, and asks for Eigen at an address
that is gone. In a new environment (Python 3.11), with SOURCES where `pip download` leaves them when it fails:

    pip install "numpy<2" scipy "cython<3" setuptools wheel future six nose matplotlib
    pip install --no-build-isolation pybasicbayes
    pip download --no-clean --no-deps --no-build-isolation --no-binary :all: pyhsmm
    apt-get download libeigen3-dev && dpkg -x libeigen3-dev_*.deb eigen
    mkdir SOURCES/deps && cp -r eigen/usr/include/eigen3/Eigen SOURCES/deps
    pip install --no-deps --no-build-isolation SOURCES

The names that newer versions of NumPy and SciPy do not have are supplied below.
"""

import builtins
import sys
import time
import types

import numpy as np
import scipy.misc
import scipy.special


def main() -> None:
    y, longest = np.load(sys.argv[1])[:, None], int(sys.argv[2])
    supply_old_names()
    import pyhsmm
    from pyhsmm.basic.distributions import Gaussian, PoissonDuration

    np.random.seed(0)  # noqa: NPY002 - pyhsmm draws from it
    emission = {"mu_0": np.array([2.0]), "sigma_0": np.eye(1), "kappa_0": 0.1, "nu_0": 4.0}
    model = pyhsmm.models.WeakLimitHDPHSMM(
        alpha=6.0,
        gamma=6.0,
        init_state_concentration=6.0,
        obs_distns=[Gaussian(**emission) for _ in range(20)],
        dur_distns=[PoissonDuration(alpha_0=1.0, beta_0=0.1) for _ in range(20)],
    )
    model.add_data(y, trunc=longest)
    times = []
    for _ in range(12):
        begin = time.process_time()
        model.resample_model()
        times.append(time.process_time() - begin)
    print(1e3 * min(times))


def supply_old_names() -> None:
    scipy.misc.logsumexp = scipy.special.logsumexp
    for name in ("float", "int", "bool", "object"):
        setattr(np, name, getattr(builtins, name))
    products = types.ModuleType("numpy.core.umath_tests")
    products.inner1d = lambda x, y: np.einsum("...i,...i->...", x, y)  # type: ignore[attr-defined]
    sys.modules["numpy.core.umath_tests"] = products


if __name__ == "__main__":
    main()
