"""Every experiment of the paper (T15 §4), one file each, and the page that compares our numbers with the paper's.

    make paper                                  or    python -m experiments all
    python -m experiments list
    python -m experiments run four_state alice

An experiment is a module with `TITLE`, `jobs` (independent computations), `numbers` (the values on the page) and
`figures`. Results are stored in files, so that an interrupted run can be continued.
"""
