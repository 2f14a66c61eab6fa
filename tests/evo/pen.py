"""What a loopback model answers in whole runs: ideas and kernels, by the product's own prompts.

An answer depends on the prompt alone, as far as it goes: a real model's does not, and the runs must
not need it.
"""

from __future__ import annotations

import hashlib
import json
import random
import re

from tests.loopback import Asked, Said

CATEGORIES = (
    "memory access",
    "asynchrony and latency hiding",
    "data type and precision",
    "compute and instructions",
    "parallelism and occupancy",
    "control flow and loops",
)
WORDS = [
    *("tile", "vector", "shuffle", "prefetch", "unroll", "register", "cache", "stream", "block"),
    *("warp", "fuse", "pack", "align", "split", "merge", "hoist", "swizzle", "stage", "chunk"),
    *("batch", "lane", "broadcast", "scatter", "gather", "reorder", "skew"),
]


def write(asked: Asked) -> Said:
    """Ideas where a schema is given, else a kernel, whole or as edits; some of them bad."""
    chance = random.Random(asked.text)
    thought = chance.randrange(400)
    if "ideas" in (asked.schema or {}).get("properties", {}):
        return Said(ideas(asked.text, chance), reasoning=thought)
    if chance.random() < 0.05:
        return Said("What a lovely question! Shall we talk about the weather?", reasoning=thought)
    return Said(kernel(asked.text, chance), reasoning=thought)


def ideas(text: str, chance: random.Random) -> str:
    count = int((re.search(r"\b(\d+) (?:\w+ )?ideas?\b", text) or [0, 3])[1])
    return json.dumps(
        {"analysis": "it waits for memory", "ideas": [idea(chance) for _ in range(count)]}
    )


def idea(chance: random.Random) -> dict[str, str]:
    title = " ".join(chance.sample(WORDS, 5))
    return {
        "title": title,
        "detail": " ".join(chance.choices(WORDS, k=12)),
        "category": chance.choice(CATEGORIES),
    }


def kernel(text: str, chance: random.Random) -> str:
    """A source of its own, or edits of the first kernel in the prompt; a crossing says its idea."""
    number = int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)
    opening = f"Idea: join {' '.join(chance.sample(WORDS, 4))}\n\n" if "`Idea: ...`" in text else ""
    if "<<<<<<< SEARCH" in text and "int more" in text and chance.random() < 0.5:
        old = (re.findall(r"^int more = \d+;$", text, re.M) or ["int nothing = 0;"])[0]
        edit = f"<<<<<<< SEARCH\n{old}\n=======\nint more = {number};\n>>>>>>> REPLACE"
        return f"{opening}Only this changes:\n\n{edit}\n"
    tile = "#define TILE 64  // tune: 8 16 32 64 128"
    lines = "\n".join(f"int step_{n} = {n};" for n in range(chance.randrange(12)))
    source = f'{tile}\n{lines}\nint more = {number};\nextern "C" int launch() {{ return 0; }}'
    return f"{opening}Here it is:\n\n```cpp\n{source}\n```\n"
