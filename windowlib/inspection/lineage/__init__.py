"""Why a key's windows say what they say: their events by file and row, their versions, as of any batch. No Spark."""
