"""All operations of the command line in random orders, over random pipelines of all kinds of windows, one process."""
