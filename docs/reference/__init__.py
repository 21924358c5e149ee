"""The pages of the reference, made from the code: each key, table, column, command, exit code, figure and check."""
