"""The numbers that plots and reports draw."""
