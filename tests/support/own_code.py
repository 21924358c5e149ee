"""Code of an author's own, as text: a function that keeps state by key, and an aggregate."""


def top_and_mean(column: str) -> str:
    """The classes `Top(n)`, which gives rows with this column, id and nth, and `Mean`, of that column."""
    return TEXT.replace("COLUMN", column)


TEXT = '''
class Top:
    """The greatest values of a window, and how many evaluations of the key there were."""

    def __init__(self, n):
        self.n = n

    def process(self, values, context):
        context.key_state["evaluations"] = context.key_state.get("evaluations", 0) + 1
        greatest = sorted(values, key=lambda value: (-value["COLUMN"], value["id"]))[: self.n]
        return [{"COLUMN": v["COLUMN"], "id": v["id"], "nth": context.key_state["evaluations"]} for v in greatest]

    def clear(self, context):
        context.key_state["cleared"] = context.key_state.get("cleared", 0) + 1


class Mean:
    order_free = False

    def create_accumulator(self):
        return {"sum": 0, "n": 0}

    def add(self, held, value):
        return {"sum": held["sum"] + value["COLUMN"], "n": held["n"] + 1}

    def merge(self, a, b):
        return {"sum": a["sum"] + b["sum"], "n": a["n"] + b["n"]}

    def get_result(self, held):
        return held["sum"] / held["n"]
'''
