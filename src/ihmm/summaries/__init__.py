"""What the draws say of the states: matching across draws, summaries, levels."""
