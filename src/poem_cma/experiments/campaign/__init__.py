"""What long computations share: cells with their files, processes, progress, pictures, tables and the page."""
