"""The windows as Spark plans: a DataFrame in, a DataFrame out, native expressions only, but for the general plan.

Every plan keeps to what Spark Connect offers, reads no clock and starts no job: a job starts when the caller writes.
"""
