"""Random words drawn by many forked workers and by many threads at once: how many of them come twice.

Words have 64 bits, so that among the quarter of a million that are drawn two are equal by chance once in 10**9 runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence

import numpy as np

from optrand.errors import InvalidInput
from optrand.sampling.entropy import SystemEntropy, Words
from optrand.sampling.keyed import KEY_BYTES, KeyedEntropy, RecordStreams

__all__ = ["forked_blocks", "threaded_blocks"]

WORDS = 4096
KEY = bytes(range(KEY_BYTES))


def repeated(words: Words) -> int:
    """How many words came before.

    Examples
    --------
    >>> repeated(np.array([1, 2, 1], dtype=np.uint64))
    1
    """
    return int(words.size - np.unique(words).size)


def forked_blocks(workers: int) -> tuple[int, str]:
    """Words that forked workers share, of the system and of a keyed function of records; and what was drawn."""
    # Forked from a process without threads, by itself.
    script = [sys.executable, "-m", "benchmarks.shared_blocks", str(workers)]
    told = subprocess.run(script, capture_output=True, check=True).stdout
    kinds = np.frombuffer(told, dtype=np.uint64).reshape(workers, 2 * WORDS + 1)
    system, keyed, refused = kinds[:, :WORDS], kinds[:, WORDS:-1], int(kinds[:, -1].sum())
    wrong = repeated(system.ravel()) + repeated(keyed.ravel()) + (workers - refused)
    return wrong, f"{system.size + keyed.size:,} words; {refused} refused to go on with a counter of their parent"


def threaded_blocks(threads: int) -> tuple[int, str]:
    """Words that threads share, of the system and of one keyed stream; and what was drawn."""
    keyed, system = KeyedEntropy(KEY), SystemEntropy()
    drawn: list[list[Words]] = [[] for _ in range(threads)]
    together = threading.Barrier(threads)

    def draw(place: int) -> None:
        together.wait()
        for _ in range(16):
            drawn[place] += [keyed.words(WORDS // 16), system.words(WORDS // 16)]

    running = [threading.Thread(target=draw, args=(place,)) for place in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    of_the_key = np.concatenate([words for each in drawn for words in each[::2]])
    of_the_system = np.concatenate([words for each in drawn for words in each[1::2]])
    # Together they are the stream as one thread draws it: nothing is lost, either.
    other = not np.array_equal(np.sort(of_the_key), np.sort(KeyedEntropy(KEY).words(of_the_key.size)))
    wrong = repeated(of_the_key) + repeated(of_the_system) + other
    return wrong, f"{of_the_key.size + of_the_system.size:,} words, and no word of the keyed stream lost"


def main(arguments: Sequence[str]) -> int:
    """Write the words of forked workers, each with whether it was refused the counter of its parent."""
    workers = int(arguments[0])
    system, counter, streams = SystemEntropy(), KeyedEntropy(KEY), RecordStreams(KEY)
    # As after some drawing: a buffer, if there is one, is full.
    system.words(3), counter.words(3)
    for place in range(workers):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            ids = np.zeros((WORDS, 2), dtype=np.uint64)
            ids[:, 0] = np.arange(place * WORDS, (place + 1) * WORDS)
            try:
                counter.words(1)
                refused = 0
            except InvalidInput:
                refused = 1
            words = [system.words(WORDS), streams.first_words(ids), np.array([refused], dtype=np.uint64)]
            with os.fdopen(writing, "wb") as stream:
                stream.write(np.concatenate(words).astype(np.uint64).tobytes())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as stream:
            sys.stdout.buffer.write(stream.read())
        os.waitpid(child, 0)
    sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
