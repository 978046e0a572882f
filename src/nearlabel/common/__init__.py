"""What every layer uses: arrays, the engine, threads, progress, checks and files."""
