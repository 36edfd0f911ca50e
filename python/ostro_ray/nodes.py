"""Nodes on which workers fail: which of them are avoided, and which are left out for a while."""

import time


class FailingNodes:
    """A node is left out for `seconds` at its failure number `after` in a row, and at each one behind that. 0: none ever is."""

    def __init__(self, after, seconds, now=time.monotonic):
        self._after, self._seconds, self._now = after, seconds, now
        self.failures = {}  # by node: how many workers in a row have failed there
        self._until = {}  # by node that is left out: until when, and its address

    def failed(self, place, lived):
        """A worker has failed in this place; `lived`: it was not at its start, and failures are counted anew. Whether the node is left out now."""
        node = place["node"]
        self.failures[node] = 1 if lived else self.failures.get(node, 0) + 1
        if not self._after or self.failures[node] < self._after:
            return False
        self._until[node] = self._now() + self._seconds, place["address"]
        return True

    def left_out(self):
        """The nodes on which none is to be placed: node -> address."""
        return {node: address for node, (_, address) in self._until.items()}

    def back(self):
        """The addresses of nodes that are to be tried again since the last call."""
        now = self._now()
        found = {node: address for node, (until, address) in self._until.items() if until <= now}
        for node in found:
            del self._until[node]
        return sorted(found.values())
