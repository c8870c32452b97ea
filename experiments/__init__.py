"""Every experiment of the paper (T15 §4), one file each, and the page that sets our numbers beside the paper's.

    make paper                                  or    python -m experiments all
    python -m experiments list
    python -m experiments run four_state alice

An experiment is a module with `TITLE`, `jobs` (what is to be computed, in independent pieces), `numbers` (what the
page says) and `figures`. Results are kept as files, so that a run that was interrupted goes on where it stood.
"""
