"""The kinds of plan: what each does its own way, and nothing else does.

kind        the Protocol that the rest of the package asks
sessions    sessions of event time, by slices and islands
aligned     tumbling and sliding windows of event time, by slices
counts      count windows, by running numbers
general     every other specification: the operator itself, key by key
"""
