"""What windows mean: the definition, in pure Python and the standard library. The specification is `operator`."""
