"""ms of processor time per sweep of tsseg's HDP-HSMM: python sweep_tsseg.py SERIES.npy TRUNCATION"""

import sys
import time

import numpy as np
from tsseg.algorithms import HdpHsmmDetector


def main() -> None:
    y, longest = np.load(sys.argv[1])[:, None], int(sys.argv[2])

    def seconds(n_iter: int) -> float:
        detector = HdpHsmmDetector(n_iter=n_iter, trunc=longest, dur_family="negbin", max_len=None)
        begin = time.process_time()
        detector.fit_predict(y)
        return time.process_time() - begin

    seconds(1)  # compiles
    print(1e3 * min(seconds(6) - seconds(1) for _ in range(2)) / 5)


if __name__ == "__main__":
    main()
