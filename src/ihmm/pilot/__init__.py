"""A quick first look at a recording: which structure of the model fits it."""
