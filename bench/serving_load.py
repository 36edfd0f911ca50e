"""Load on a server: 64 clients whose requests arrive at random, prompts of 50 to 1,500 tokens, answers of 16 to 256."""
import asyncio, dataclasses, random, statistics, time

CLIENTS = 64


@dataclasses.dataclass
class Request:
    at: float  # seconds after the beginning
    prompt: list
    tokens: int


def drawn(seed, count, rate, vocab, longest=(1500, 256)):
    """Requests whose arrivals are a Poisson process of `rate` a second; no rate: all at once."""
    draw, at, out = random.Random(seed), 0.0, []
    for _ in range(count):
        at += draw.expovariate(rate) if rate else 0
        prompt = [draw.randrange(259, vocab) for _ in range(draw.randint(50, longest[0]))]
        out.append(Request(at, prompt, draw.randint(16, longest[1])))
    return out


@dataclasses.dataclass
class Seen:
    """Of one run: seconds all in all, tokens of answers a second, and what clients waited."""
    seconds: float
    rate: float
    first: float  # median time to the first token, from the arrival on
    gap: float    # 99th percentile of the time between two tokens


def run(side, requests):
    async def client(request, began, free):
        await asyncio.sleep(max(0, began + request.at - time.monotonic()))
        async with free:  # an arrival with no client left waits, and its time counts
            return await side.ask(request.prompt, request.tokens, asked=began + request.at)

    async def all_of():
        free, began = asyncio.Semaphore(CLIENTS), time.monotonic()
        answers = await asyncio.gather(*(client(r, began, free) for r in requests))
        return time.monotonic() - began, answers

    seconds, answers = asyncio.run(all_of())
    gaps = sorted(gap for answer in answers for gap in answer.gaps())
    return Seen(seconds, sum(len(a.ids) for a in answers) / seconds, statistics.median(a.first for a in answers),
                gaps[min(len(gaps) - 1, int(0.99 * len(gaps)))])


def rate_together(answers):
    """Tokens a second while all of these answers are being made."""
    begin, end = max(a.times[0] for a in answers), min(a.times[-1] for a in answers)
    if end <= begin:
        raise RuntimeError(f"the first of {len(answers)} answers ended before the last one began: ask for more tokens than "
                           f"{min(len(a.ids) for a in answers)}")
    return sum(begin < t <= end for a in answers for t in a.times) / (end - begin)


def rate_of_all(answers):
    """Tokens a second from the first request to the last token."""
    return sum(len(a.ids) for a in answers) / (max(a.times[-1] for a in answers) - min(a.asked for a in answers))
