"""Raw series to validated arrays: numbers, symbols, texts, and their time axis."""
