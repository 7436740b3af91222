"""Races: who leaves when, who wins, what luck and drift do, what is stored, what load changes: nothing."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from pathlib import Path
from random import Random
from statistics import fmean

import pytest

from pdojo.budget import Budget
from pdojo.search.contract.evaluation import Candidate, Evaluation, Listener
from pdojo.search.contract.progress import SearchResult
from pdojo.search.contract.racing import CHANCE, STAGES, Race, TimingRequest, race, wins_needed
from pdojo.search.database import Database, Problem
from pdojo.search.engine.search import search
from pdojo.transforms.game import Game, fingerprint_of
from search_games import Downhill, Edges, Weather, best_in, facts, find, start

CANDIDATE = Candidate.of(start())
WRONG = Evaluation.failed("WrongResult", {"kind": "WrongResult"})


def timed(*samples: float) -> Evaluation:
    return Evaluation(1.0, detail={"samples": samples, "foreign_load": 3.0})


def raced(*ratios: float) -> Race:
    return Race(timed(*ratios), timed(*[1.0] * len(ratios)))


def candidates(count: int) -> list[Candidate]:
    found = {start().fingerprint: start()}
    random = Random(1)
    while len(found) < count:
        other = Edges().neighbour(random.choice(list(found.values())), random)
        if other is not None:
            found[other.fingerprint] = other
    return [Candidate.of(each) for each in found.values()]


@pytest.mark.parametrize(
    ("rounds", "needed"), [(1, 2), (3, 4), (4, 5), (5, 5), (7, 7), (8, 7), (9, 8), (15, 12), (25, 18), (45, 29)]
)
def test_as_many_rounds_are_to_be_won_as_are_not_by_chance(rounds: int, needed: int) -> None:
    """The table of the one-sided sign test at 5 %; where no number is so rare, nothing is decided."""
    assert wins_needed(rounds) == needed
    for wins in range(rounds + 1):
        assert raced(*[0.5] * wins, *[1.01] * (rounds - wins)).won == (wins >= needed)


def test_only_samples_of_one_turn_are_compared() -> None:
    """A machine that becomes slower by half."""
    weather = [1.0 + 0.05 * k for k in range(15)]
    faster = timed(*(0.98 * w for w in weather))
    assert Race(faster, timed(*weather)).won
    assert Race(faster, timed(*weather)).ratio == pytest.approx(0.98)
    assert not Race(timed(*weather), faster).won


def test_what_failed_or_ran_alone_wins_nothing() -> None:
    for each in (Race(WRONG, timed(1.0)), Race(timed(1.0)), Race(timed(1.0), WRONG)):
        assert not each.won
        assert not each.goes_on
        assert each.ratio is None


def test_equal_programs_win_as_often_as_chance_allows() -> None:
    random = Random(3)
    wins = sum(raced(*(random.lognormvariate(0.0, 0.1) for _ in range(45))).won for _ in range(2000))
    assert 0 < wins < 2000 * CHANCE


def test_who_cannot_win_leaves_and_all_samples_are_kept() -> None:
    one, other, third, fourth = candidates(4)
    # Loses all; wins one of three and then nothing; wins all; fails in the second stage.
    names = [each.fingerprint for each in (one, other, third, fourth)]
    pace = dict(zip(names, ([1.1] * 45, [0.9] + [1.1] * 44, [0.9] * 45), strict=False))
    run = 0
    heats: list[tuple[int, int]] = []

    def heat(left: Sequence[Candidate], rounds: int) -> list[Race]:
        nonlocal run
        heats.append((len(left), rounds))
        run += rounds
        return [
            (Race(WRONG, timed(1.0)) if run > 3 else raced(*[0.9] * 3))
            if each is fourth
            else raced(*pace[each.fingerprint][run - rounds : run])
            for each in left
        ]

    left = race([one, other, third, fourth], heat)
    found = {each.fingerprint: result for each, result in left}
    assert heats == [(4, 3), (3, 6), (1, 36)]
    assert [len(found[each].ratios) for each in names] == [3, 9, 45, 0]
    assert [found[each].won for each in names] == [False, False, True, False]
    assert found[names[2]].evaluation.detail["samples"] == [0.9] * 45
    assert found[names[3]].evaluation.failure == "WrongResult"


class Loaded:
    """Samples of two programs on a machine that others use.

    A neighbour comes and goes, and slows both samples of a turn down by up to four times. A scheduler takes away 4 ms
    at random, mostly in the same turns. Each sample has noise of its own besides.
    """

    def __init__(self, seed: int, apart: float) -> None:
        self.random = Random(seed)
        self.apart = apart

    def turn(self) -> tuple[float, float]:
        factor = self.random.choice([1.0, 1.5, 2.5, 4.0])
        delay = self.random.choice([0.0, 0.0, 4e-3])
        return self._sample(1e-3, factor, delay), self._sample(1e-3 * self.apart, factor, delay)

    def _sample(self, seconds: float, factor: float, delay: float) -> float:
        own = 4e-3 if self.random.random() < 0.1 else 0.0
        return seconds * factor * self.random.lognormvariate(0.0, 0.15) + delay + own

    def race(self) -> Race:
        """All stages, as far as the first program gets."""

        def heat(_: Sequence[Candidate], rounds: int) -> list[Race]:
            mine, its = zip(*(self.turn() for _ in range(rounds)), strict=True)
            return [Race(timed(*mine), timed(*its))]

        ((_, found),) = race([CANDIDATE], heat)
        return found


@pytest.mark.parametrize("apart", [1.3, 1 / 1.3])
def test_pairs_decide_under_load(apart: float) -> None:
    """Programs that are 30 % apart: the faster one wins, and the slower one never does."""
    found = [Loaded(seed, apart).race() for seed in range(300)]
    # Medians that are not of pairs would compare different neighbours.
    assert sum(each.won for each in found) >= (290 if apart > 1 else 0)
    assert sum(each.won for each in found) <= (300 if apart > 1 else 0)
    assert not any(each.lost for each in found if apart > 1)


def test_a_stage_that_is_cut_short_sends_nobody_away() -> None:
    assert raced(1.1).goes_on
    assert raced(1.1, 1.2).goes_on
    assert not raced(1.1, 1.2, 1.1).goes_on
    assert raced(1.1, 0.9, 1.1).goes_on
    assert not raced().goes_on


def test_load_decides_nothing_by_itself() -> None:
    """Equal programs win as seldom as on a machine without load, in all stages together."""
    found = [Loaded(seed, 1.0).race() for seed in range(3000)]
    assert sum(each.won for each in found) <= CHANCE * 3000
    assert sum(each.is_undecided for each in found) >= 0.9 * 3000


def test_a_verdict_says_which_figure_decides() -> None:
    assert raced(*[0.5] * 9, 1.5).verdict == ("2.00 by the fastest samples; faster in 9 of 10 pairs, which decide")
    # The median and the fastest samples disagree.
    split = raced(0.5, 1.1, 1.1, 1.1, 1.1, 0.9, 0.9, 0.9, 1.2)
    assert split.is_undecided
    assert split.ratio == pytest.approx(1.1)
    assert split.verdict == ("2.00 by the fastest samples; faster in 4 of 9 pairs: undecided (8 would decide)")
    assert raced(0.5, 0.5, 0.5).verdict.endswith("faster in 3 of 3 pairs: too few to decide")
    assert raced(*[2.0] * 5).lost
    assert raced(*[2.0] * 5).verdict.endswith("faster in 0 of 5 pairs, which decide")
    assert Race(WRONG, timed(1.0)).verdict == "not compared"


def regret(costs: Weather, result: SearchResult) -> float:
    """Times the time of the best program that was timed that the result takes."""
    assert result.best is not None
    return costs.times[result.best.fingerprint] / min(costs.times.values())


@pytest.mark.parametrize("drift", [*(pytest.param(each, marks=pytest.mark.slow) for each in (0.02, 0.1)), 0.25])
def test_drift_costs_next_to_nothing(drift: float) -> None:
    """The best of 120 programs, six searches each: what was found is within 0.2 % of the best that was timed."""
    regrets: list[float] = []
    for seed in range(6):
        costs = Weather(seed, drift, noise=0.01)
        regrets.append(regret(costs, search(start(), costs, Downhill(8), Edges(), Budget(120), seed)))
    assert fmean(regrets) <= 1.002
    assert max(regrets) < 1.02


def test_noise_crowns_few() -> None:
    """All programs are equally fast."""

    class Even(Weather):
        def true_time(self, text: str) -> float:
            return 1.0

    crowned = 0
    for seed in range(8):
        result = find(Even(seed, drift=0.1, noise=0.05), 40)
        crowned += sum(row.is_best for row in result.history[1:])
        # The last match is with the root: what is no faster keeps no place.
        assert result.cost <= result.root.cost
    # A race of three has a winner by chance in one of seven; every second one would have by medians.
    assert crowned < 8 * 40 / 3 / 7


def test_who_is_crowned_was_right_on_inputs_of_its_own_beside_the_root() -> None:
    costs = Weather()
    result = find(costs)
    best = [row.number for row in result.history if row.is_best]
    assert len(best) > 2
    checks = [heat for heat in costs.heats if heat[3] is not None]
    root = start().fingerprint
    assert [against for _, against, *_ in checks] == [None, *[root] * len(best)]
    # The last match is once more that of the best, on inputs that no other match had, with all rounds.
    *earlier, last = checks
    assert earlier[-1][0] == last[0]
    assert last[2] == STAGES[-1]
    assert last[3] not in {inputs for *_, inputs in earlier}
    # What is reported is measured beside the root, and no product.
    progress = result.progress
    assert result.best is not None
    assert progress.is_measured
    assert progress.root / progress.best == pytest.approx(costs.times[root] / costs.times[result.best.fingerprint])


def test_costs_are_multiples_of_the_incumbents_in_the_same_race() -> None:
    """The machine becomes three times slower and faster again between batches: no cost shows it."""

    class Swinging(Weather):
        def sample(self, seconds: float) -> float:
            return seconds * (1.0, 3.0, 0.5, 2.0)[len(self.heats) % 4 if len(self.heats) > 2 else 0]

    steady, swinging = find(Weather()), find(Swinging())
    assert steady.trace == swinging.trace
    assert [row.cost for row in swinging.history] == pytest.approx([row.cost for row in steady.history])
    assert [row.is_best for row in swinging.history] == [row.is_best for row in steady.history]


def test_the_root_is_the_best_where_nothing_is_faster_in_the_last_match() -> None:
    class Moody(Weather):
        """The programs that won did so in an odd hour: they are slower ever after."""

        def heat(self, wanted: TimingRequest, listener: Listener | None = None) -> list[Race]:
            self.is_last = wanted.rounds == STAGES[-1]
            return super().heat(wanted, listener)

        def true_time(self, text: str) -> float:
            return super().true_time(text) if not self.is_last or text == start().text else 9.0

    with Database.in_memory() as database:
        costs = Moody()
        result = find(costs, database=database)
        assert result.best is result.root
        assert result.known is not None
        assert result.known.game.fingerprint == start().fingerprint
        assert [row.number for row in result.history if row.is_best] == [0]
        assert best_in(database) == [start().fingerprint]
        logged = database.connection.rows("SELECT number FROM evaluations WHERE best")
        assert [row["number"] for row in logged] == [0]
        # It is remembered, and a longer search goes on from the winner of the races.
        again = Moody()
        assert facts(find(again, database=database)) == facts(result)
        assert not again.heats


def test_load_changes_no_result() -> None:
    with Database.in_memory() as database:
        busy = find(Weather(load=2.0), 20, database=database)
        assert busy.best is not busy.root
    assert facts(busy) == facts(find(Weather(), 20))


@pytest.mark.parametrize("part", [0, 39])
def test_a_run_goes_on_with_the_races_that_it_had(tmp_path: Path, part: int) -> None:
    whole = Weather(1, 0.25, 0.02)
    with Database(tmp_path / "whole") as database:
        wanted = find(whole, 40, database=database)
        assert facts(find(Weather(1, 0.25, 0.02), 40, database=database)) == facts(wanted)
    with Database(tmp_path / "part") as database:
        find(Weather(1, 0.25, 0.02), part, database=database)
        again = Weather(1, 0.25, 0.02)
        resumed = find(again, 40, database=database)
        # What was timed is not timed again; what is left meets other weather.
        timed = {each for heat in again.heats if heat[3] is None for each in heat[0]}
        logged = {row["hash"] for row in database.connection.rows("SELECT hash FROM programs")}
        assert len(timed) <= 40 - part < len(logged)
        assert facts(find(Weather(1, 0.25, 0.02), 40, database=database)) == facts(resumed)


def test_ctrl_c_in_a_race_keeps_who_left_it(tmp_path: Path) -> None:
    class Interrupted(Weather):
        def heat(self, wanted: TimingRequest, listener: Listener | None = None) -> list[Race]:
            if len(self.heats) > 16 and wanted.rounds == STAGES[-1] - STAGES[1]:
                raise KeyboardInterrupt
            return super().heat(wanted, listener)

    with Database(tmp_path / "a.sqlite") as database:
        result = find(Interrupted(), 40, database=database)
        assert 0 < len(result.history) < 40
        counts = "SELECT (SELECT count(*) FROM measurements) AS known, (SELECT count(*) FROM evaluations) AS logged"
        (row,) = database.connection.rows(counts)
        assert row["known"] > row["logged"] == len(result.history)
        assert facts(find(Weather(), 40, database=database)) == facts(find(Weather(), 40))


def test_all_samples_are_stored(tmp_path: Path) -> None:
    with Database(tmp_path / "a.sqlite") as database:
        costs = Weather(2, 0.1, 0.01)
        find(costs, 20, database=database)
        query = (
            "SELECT json_array_length(detail, '$.samples') AS n, json_array_length(detail, '$.other.samples') AS m"
            " FROM races"
        )
        rows = database.connection.rows(query)
        # Each program of each heat, and the one beside each once more.
        assert sum(row["n"] + (row["m"] or 0) for row in rows) == sum(
            rounds * len(raced) * (1 if against is None else 2) for raced, against, rounds, _ in costs.heats
        )
        assert all(row["m"] in (None, row["n"]) for row in rows)


# Wrong results that are found out later


class Wrong(Weather):
    """A program is too fast, and wrong, which only the last match shows or, with `early`, some programs beside it."""

    def __init__(self, bad: str, *, early: bool) -> None:
        super().__init__()
        self.bad, self.early = bad, early

    def true_time(self, text: str) -> float:
        return 0.1 if fingerprint_of(text) == self.bad else super().true_time(text)

    def outcome(self, candidate: Candidate, inputs: int | None) -> Evaluation | None:
        if candidate.fingerprint != self.bad:
            return None
        raced, against, rounds, _ = self.heats[-1]
        is_seen = self.early and against == self.bad and any(each[0] in "0123" for each in raced)
        return WRONG if is_seen or (inputs is not None and rounds == STAGES[-1]) else None


@pytest.mark.parametrize("early", [True, False])
def test_a_best_that_fails_later_was_none(tmp_path: Path, early: bool) -> None:
    bests = [row.number for row in find(Weather(), 60).history if row.is_best]
    bad = _node(bests[1]).fingerprint

    def go(path: Path, evaluations: int) -> tuple[Wrong, SearchResult]:
        with Database(path) as database:
            costs = Wrong(bad, early=early)
            return costs, find(costs, evaluations, database=database)

    costs, result = go(tmp_path / "whole", 60)
    failed = [row for row in result.history if row.failure == "WrongResult"]
    assert len(failed) == 1 == result.progress.failures["WrongResult"]
    assert not failed[0].is_best
    assert result.best is not None
    if early:
        # The search goes on with the best before it.
        right = {each: seconds for each, seconds in costs.times.items() if each != bad}
        assert right[result.best.fingerprint] == min(right.values())
    else:
        assert result.best.number == bests[0]
    assert result.history[result.best.number].is_best
    with Database(tmp_path / "whole") as database:
        assert best_in(database) == [result.best.fingerprint]
        found = database.memory(Problem.of(start()), costs).find(bad)
        assert found is not None
        assert found.failure == "WrongResult"
    # A run repeats itself also where a best was wrong.
    again, repeated = go(tmp_path / "whole", 60)
    assert not again.heats
    assert facts(repeated) == facts(result)
    go(tmp_path / "cut", failed[0].number + 4)
    _, resumed = go(tmp_path / "cut", 60)
    assert resumed.best is not None
    assert resumed.best.fingerprint == result.best.fingerprint


def _node(number: int) -> Game:
    """The program of that number in the search that `find` makes of 60 programs."""
    strategy = Downhill()
    search(start(), Weather(), strategy, Edges(), Budget(60), 1)
    return next(node.game for node in strategy.told if node.number == number)


def test_nobody_is_the_best_where_all_were_wrong() -> None:
    class Alone(Weather):
        """The root fails as soon as anything is beside it."""

        def outcome(self, candidate: Candidate, inputs: int | None) -> Evaluation | None:
            beside = any(against is not None for _, against, *_ in self.heats)
            return WRONG if beside else None

    result = find(Alone(), 12)
    assert result.best is None
    assert result.cost == inf
    assert result.known is None


# What is known of a problem


def test_the_best_that_is_known_is_that_of_all_searches(tmp_path: Path) -> None:
    """Also where Ctrl-C ends a run that goes on before it has come to what it knew."""

    class Interrupted(Weather):
        left = 3

        def expect(self, candidate: Candidate) -> None:
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt

    with Database(tmp_path / "a.sqlite") as database:
        whole = find(Weather(), 40, database=database)
        assert whole.best is not None
        assert whole.known is not None
        assert whole.known.is_own
        for seed in (1, 2):
            cut = find(Interrupted(), 60 if seed == 2 else 80, seed=seed, database=database)
            assert cut.known is not None
            assert cut.known.game.fingerprint == whole.best.fingerprint
            assert cut.known.cost == whole.cost
        assert not cut.known.is_own
        assert cut.best is not None
        assert cut.best.fingerprint != whole.best.fingerprint


def test_a_rival_is_among_what_is_known(tmp_path: Path) -> None:
    found = find(Weather(), 60)
    assert found.best is not None
    costs = Weather()
    result = search(start(), costs, Downhill(), Edges(), Budget(3), 2, rivals=[found.best.game])
    assert result.known is not None
    assert result.known.game.fingerprint == found.best.fingerprint
    assert not result.known.is_own
    assert len(result.history) == 4
    slow = start()
    slow.apply(slow.moves()[0])
    result = search(start(), Weather(), Downhill(), Edges(), Budget(30), 2, rivals=[slow])
    assert result.known is not None
    assert result.best is not None
    assert result.known.game.fingerprint == result.best.fingerprint


class Minutes(Weather):
    """Each search meets another minute, in which everything takes so many times as long."""

    def __init__(self, factor: float, load: float = 0.0) -> None:
        super().__init__(load=load)
        self.factor = factor

    def sample(self, seconds: float) -> float:
        return super().sample(seconds) * self.factor


class Impatient(Minutes):
    """Ctrl-C comes as soon as the root is known."""

    def expect(self, candidate: Candidate) -> None:
        raise KeyboardInterrupt


def test_nothing_is_concluded_from_times_of_different_minutes(tmp_path: Path) -> None:
    """A search from a worse program, in a minute in which all are faster, takes nobody's place."""
    worse = start()
    while worse.fingerprint == start().fingerprint or Weather().true_time(worse.text) < 1.0:
        worse.apply(worse.moves()[0])
    with Database(tmp_path / "a.sqlite") as database:
        good = find(Minutes(4.0), 40, database=database)
        assert good.best is not None
        costs = Minutes(0.25)
        small = search(worse, costs, Downhill(), Edges(), Budget(2), 5, database=database)
        assert small.best is not None
        assert small.best.fingerprint != good.best.fingerprint
        assert small.known is not None
        assert small.known.game.fingerprint == good.best.fingerprint
        # They were timed in turns, on inputs of their own.
        raced, against, rounds, inputs = costs.heats[-1]
        assert (raced, against, rounds) == ([small.best.fingerprint], good.best.fingerprint, STAGES[-1])
        assert inputs not in {each for *_, rounds, each in costs.heats if rounds < STAGES[-1]}
        assert best_in(database) == [good.best.fingerprint]
        # Who is in a hurry replaces nothing either: neither from elsewhere nor from the same start.
        for each in (search(worse, Impatient(0.1), Downhill(), Edges(), Budget(9), 6, database=database),
                     find(Impatient(0.1), 60, database=database)):  # fmt: skip
            assert each.known is not None
            assert each.known.game.fingerprint == good.best.fingerprint
        assert best_in(database) == [good.best.fingerprint]


def test_what_is_better_in_turns_takes_the_place(tmp_path: Path) -> None:
    """Though its minute is slower by far."""
    with Database(tmp_path / "a.sqlite") as database:
        small = find(Minutes(0.25), 3, seed=3, database=database)
        good = find(Minutes(4.0), 60, database=database)
        assert small.best is not None
        assert good.best is not None
        assert small.best.fingerprint != good.best.fingerprint
        assert good.known is not None
        assert good.known.is_own
        assert best_in(database) == [good.best.fingerprint]


def test_a_file_stays_until_something_was_shown_to_be_faster() -> None:
    rival = start()
    rival.apply(rival.moves()[0])

    for costs, stays in ((Impatient(1.0), True), (Minutes(1.0), False)):
        with Database.in_memory() as database:
            result = search(start(), costs, Downhill(), Edges(), Budget(40), 1, database=database, rivals=[rival])
            assert result.best is not None
            assert result.known is not None
            assert (result.known.game.fingerprint == rival.fingerprint) == stays
            assert best_in(database) == [result.best.fingerprint]


def test_who_loses_to_the_root_is_not_crowned() -> None:
    class Lucky(Weather):
        """Whatever races with the root wins; on fresh inputs it is slower."""

        def heat(self, wanted: TimingRequest, listener: Listener | None = None) -> list[Race]:
            self.is_fresh = wanted.inputs is not None
            return super().heat(wanted, listener)

        def true_time(self, text: str) -> float:
            return 1.0 if text == start().text else 1.2 if self.is_fresh else 0.8

    result = find(Lucky(), 10)
    assert result.best is result.root
    assert [row.number for row in result.history if row.is_best] == [0]


def test_gains_are_measured_and_no_products() -> None:
    """Each best's is one ratio, in turns with the root; also where the machine's speed swings between batches."""

    class Swinging(Weather):
        def sample(self, seconds: float) -> float:
            return seconds * (1.0, 3.0, 0.5, 2.0)[len(self.heats) % 4]

    costs = Swinging()
    result = find(costs, 60)
    root = costs.times[start().fingerprint]
    bests = [row for row in result.history if row.is_best]
    assert len(bests) > 2
    for row in bests:
        own = costs.times[_node(row.number).fingerprint]
        assert result.root.cost / row.best == pytest.approx(root / own)


@pytest.mark.parametrize("always", [True, False])
def test_a_root_that_fails_is_no_measure(always: bool) -> None:
    """Also one that runs beside others: what fails in a race may have more time in a match."""

    class Slow(Weather):
        def outcome(self, candidate: Candidate, inputs: int | None) -> Evaluation | None:
            return WRONG if candidate.fingerprint == start().fingerprint and (always or inputs is None) else None

    with Database.in_memory() as database:
        result = find(Slow(), 20, database=database)
        assert result.best is not None
        assert not result.progress.is_measured
        assert result.cost < inf
        assert best_in(database) == [result.best.fingerprint]


def test_a_new_best_that_was_interrupted_in_its_match_is_remembered(tmp_path: Path) -> None:
    class Interrupted(Weather):
        """Ctrl-C in the first match of a new best."""

        def heat(self, wanted: TimingRequest, listener: Listener | None = None) -> list[Race]:
            if wanted.inputs is not None and wanted.beside is not None:
                raise KeyboardInterrupt
            return super().heat(wanted, listener)

    class Late(Weather):
        """Ctrl-C after many evaluations."""

        def heat(self, wanted: TimingRequest, listener: Listener | None = None) -> list[Race]:
            if len(self.heats) > 40:
                raise KeyboardInterrupt
            return super().heat(wanted, listener)

    with Database(tmp_path / "a.sqlite") as database:
        find(Interrupted(), 90, database=database)
        result = find(Late(), 90, database=database)
        assert result.best is not None
        assert result.best is not result.root
        assert best_in(database) == [result.best.fingerprint]
        assert result.known is not None
        assert result.known.is_own


def test_a_program_from_elsewhere_takes_no_place_by_a_tie() -> None:
    """It stays in its file all the same."""
    with Database.in_memory() as database:
        costs = Weather()
        best = find(costs, 40, database=database).best
        assert best is not None
        rival = next(game for game in _others(best.fingerprint))

        class Even(Weather):
            def sample(self, seconds: float) -> float:
                return 1.0 + self.random.random() / 100

        even = Even()
        result = search(start(), even, Downhill(), Edges(), Budget(1), 3, database=database, rivals=[rival])
        assert result.known is not None
        assert result.known.game.fingerprint == rival.fingerprint
        assert best_in(database) == [best.fingerprint]


def _others(fingerprint: str) -> list[Game]:
    found = [start() for _ in start().moves()]
    for game, move in zip(found, start().moves(), strict=True):
        game.apply(move)
    return [game for game in found if game.fingerprint != fingerprint]


def test_what_others_found_to_be_wrong_is_not_known_as_the_best(tmp_path: Path) -> None:
    with Database(tmp_path / "a.sqlite") as database:
        first = find(Weather(), 40, database=database)
        assert first.best is not None
        bad = first.best.game
        memory = database.memory(Problem.of(start()), Weather())
        memory.keep_race(start().text, bad.text, None, Race(timed(1.0), WRONG))
        for costs in (Impatient(1.0), Weather()):
            result = search(start(), costs, Downhill(), Edges(), Budget(60), 1, database=database, rivals=[bad])
            assert result.known is not None
            assert result.known.game.fingerprint != bad.fingerprint
        assert bad.fingerprint not in best_in(database)


def test_nobody_takes_the_place_of_a_program_that_it_has_not_met() -> None:
    """Another process finds something better while the last race takes place."""
    other, better = _others("")[:2]
    with Database.in_memory() as database:
        find(Weather(), 2, seed=5, database=database)
        memory = database.memory(Problem.of(start()), Weather())

        class Meanwhile(Weather):
            def true_time(self, text: str) -> float:
                return 0.1 if text == better.text else super().true_time(text)

            def heat(self, wanted: TimingRequest, listener: Listener | None = None) -> list[Race]:
                found = super().heat(wanted, listener)
                held = memory.best()
                if wanted.inputs is not None and wanted.rounds == STAGES[-1] and held is not None:
                    memory.keep_incumbent(better.trace, better.text, 0.1, timed=True, over=held.fingerprint)
                return found

        assert other.fingerprint != better.fingerprint
        find(Meanwhile(), 60, database=database)
        assert best_in(database) == [better.fingerprint]
