"""Events of the Nexmark benchmark, by the rules of its public generator, and the windows of its queries.

Of 50 events in a row 1 is a new person, 3 are new auctions and 46 are bids; each has its place in time by its number.
Half of the bids go to the first of the newest hundred auctions, three quarters are by the second of the newest hundred
persons; the others are spread over the newest 100 auctions (and 10 to come) and the newest 1,000 persons (and 10).
Prices are 100 * 10^u, u evenly between 0 and 6. Its chance is numpy's, so single bids differ from the Java generator's;
texts (names, channels, urls) are left out. Three quarters of the auctions are sold by the first of the newest hundred
persons; other sellers are spread as bidders are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.clickstream import BASE_MS, Ints, write_events
from benchmarks.query import Aggregate, Columns, Query
from benchmarks.workload import Arrival, Case, Size, Workload
from windowlib.model.assigners import Session, Sliding, Tumbling

PERSONS, AUCTIONS, BIDS = 1, 3, 46
EPOCH = PERSONS + AUCTIONS + BIDS
FIRST_ID = 1_000
HOT_EVERY = 100  # hot are the auctions and persons whose number is a multiple of this
LEAD = 10  # numbers not yet given
SECOND_MS = 1_000


@dataclass(frozen=True, slots=True)
class Bids:
    """Bids, and the rules' numbers: one bid in `hot_auctions` is for any auction, one in `hot_bidders` by any person.

    Columns `auction`, `bidder`, `price` (bigint), `date_time` (timestamp).
    """

    hot_auctions: int = 2
    hot_bidders: int = 4
    hot_sellers: int = 4
    auctions_in_flight: int = 100
    active_people: int = 1_000
    events_per_second: float = 10_000
    seed: int = 0

    def write(self, path: Path, number: int, events: int, start_ms: int, span_ms: int) -> None:
        """File `number` of so many bids: those that follow the files before it, in order of time."""
        rng = np.random.default_rng([self.seed, number])
        bid = number * events + np.arange(events, dtype=np.int64)
        epoch, event = bid // BIDS, bid // BIDS * EPOCH + PERSONS + AUCTIONS + bid % BIDS
        columns = {
            "auction": self._auction(rng, epoch),
            "bidder": self._bidder(rng, epoch),
            "price": np.round(10.0 ** (rng.random(events) * 6) * 100).astype(np.int64),
            "date_time": self.time_ms(event),
        }
        write_events(path, columns, "date_time")

    def span_ms(self, bids: int) -> int:
        """How much time so many bids take."""
        return round(bids / BIDS * EPOCH / self.events_per_second * 1000)

    def time_ms(self, event: Ints) -> Ints:
        """When these events happen, by their numbers among all events."""
        return BASE_MS + (event * (1e6 / self.events_per_second)).astype(np.int64) // 1000

    def _auction(self, rng: np.random.Generator, epoch: Ints) -> Ints:
        newest = epoch * AUCTIONS + AUCTIONS - 1
        oldest = np.maximum(newest - self.auctions_in_flight, 0)
        any_one = oldest + rng.integers(0, newest - oldest + 1 + LEAD)
        hot = rng.integers(0, self.hot_auctions, len(epoch)) > 0
        return FIRST_ID + np.where(hot, newest // HOT_EVERY * HOT_EVERY, any_one)

    def _bidder(self, rng: np.random.Generator, epoch: Ints) -> Ints:
        newest = epoch * PERSONS + PERSONS - 1
        hot = rng.integers(0, self.hot_bidders, len(epoch)) > 0
        return FIRST_ID + np.where(hot, newest // HOT_EVERY * HOT_EVERY + 1, self._any_person(rng, newest))

    def seller(self, rng: np.random.Generator, epoch: Ints) -> Ints:
        """Who opens an auction in each of these epochs."""
        newest = epoch * PERSONS + PERSONS - 1
        hot = rng.integers(0, self.hot_sellers, len(epoch)) > 0
        return FIRST_ID + np.where(hot, newest // HOT_EVERY * HOT_EVERY, self._any_person(rng, newest))

    def _any_person(self, rng: np.random.Generator, newest: Ints) -> Ints:
        active = np.minimum(newest + 1, self.active_people)
        return newest + 1 - active + rng.integers(0, active + LEAD)


@dataclass(frozen=True, slots=True)
class Openings:
    """New persons and new auctions as one stream; who they are by, and which of the two an event is.

    Columns `person` (the new one's own, or the seller's number), `auction` (1 for an auction, 0 for a person; bigint),
    `date_time` (timestamp).
    """

    rules: Bids

    def write(self, path: Path, number: int, events: int, start_ms: int, span_ms: int) -> None:
        """File `number` of so many events: those that follow the files before it, in order of time."""
        rng = np.random.default_rng([self.rules.seed, number])
        of_epoch = PERSONS + AUCTIONS
        opening = number * events + np.arange(events, dtype=np.int64)
        epoch, place = opening // of_epoch, opening % of_epoch
        is_auction = place >= PERSONS
        columns = {
            "person": np.where(is_auction, self.rules.seller(rng, epoch), FIRST_ID + epoch * PERSONS + place),
            "auction": is_auction.astype(np.int64),
            "date_time": self.rules.time_ms(epoch * EPOCH + place),
        }
        write_events(path, columns, "date_time")

    def span_ms(self, events: int) -> int:
        """How much time so many events take."""
        return round(events / (PERSONS + AUCTIONS) * EPOCH / self.rules.events_per_second * 1000)


BY_AUCTION = Columns("auction", "date_time", "price")
BY_BIDDER = Columns("bidder", "date_time", "price")
BY_PERSON = Columns("person", "date_time", "auction")
NUMBER = (Aggregate("bids", "count"),)
EVENTS_AND_AUCTIONS = (Aggregate("events", "count"), Aggregate("auctions", "sum"))
QUERIES = {
    "nexmark-q5": (
        "bids by auction in the last 10 s, every 2 s: the windows of the hot items",
        Query("q5", Sliding(10 * SECOND_MS, 2 * SECOND_MS), BY_AUCTION, NUMBER, out_of_orderness_ms=0),
    ),
    "nexmark-q7": (
        "the highest price of every 10 s",
        Query("q7", Tumbling(10 * SECOND_MS), BY_AUCTION, (Aggregate("price", "max"),), False, out_of_orderness_ms=0),
    ),
    "nexmark-q8": (
        "new persons and the auctions they open in the same 10 s, as one stream",
        Query("q8", Tumbling(10 * SECOND_MS), BY_PERSON, EVENTS_AND_AUCTIONS, out_of_orderness_ms=0),
    ),
    "nexmark-q11": (
        "bids by bidder in sessions of 10 s",
        Query("q11", Session(10 * SECOND_MS), BY_BIDDER, NUMBER, out_of_orderness_ms=0),
    ),
}


def nexmark(bids: Bids) -> list[Workload]:
    """A workload for each query."""
    source: dict[Columns, Bids | Openings] = {BY_PERSON: Openings(bids)}
    return [
        Workload(name, says, _cases(query, source.get(query.columns, bids))) for name, (says, query) in QUERIES.items()
    ]


def _cases(query: Query, source: Bids | Openings) -> Callable[[Size], list[Case]]:
    def cases(size: Size) -> list[Case]:
        span_ms = source.span_ms(size.events)
        arrivals = [
            Arrival("", source, size.events, BASE_MS + number * span_ms, span_ms, timed=number > 0)
            for number in range(size.files)
        ]
        return [Case("", (query,), arrivals)]

    return cases
