"""How chains are run: arguments, starts, threads, interruption, progress and compilation."""
