"""One module per client. Each has `run(report, broker, directory, options)`."""
