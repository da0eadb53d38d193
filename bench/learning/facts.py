"""50 synthetic facts. Half of the questions use the words of the fact, half use other words."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

LOCKERS = 25
OTHER_WORDS = (  # the fact, and a question without one of its content words
    ("My sister is called {}.", "What name does my sibling have?"),
    ("Our car is a {}.", "Which vehicle do we own?"),
    ("The wedding takes place in {}.", "Where do we marry?"),
    ("I am allergic to {}.", "Which food must I avoid?"),
    ("My doctor is {}.", "Who is the physician that treats me?"),
    ("The rent is {} euros.", "How much do we pay for the flat?"),
    ("Our dog is called {}.", "What name did we give our pet?"),
    ("I was born in {}.", "Which city is my birthplace?"),
    ("My boss is {}.", "Who is my manager at work?"),
    ("The Wi-Fi password is {}.", "What do guests need to get on the internet?"),
    ("The plumber is {}.", "Who repairs our pipes?"),
    ("My favourite drink is {}.", "What beverage do I like most?"),
    ("The flight leaves from {}.", "Where does the plane depart?"),
    ("The server backups are stored on {}.", "Where are copies of our data kept?"),
    ("The invoice must be paid to {}.", "Who gets the money for the bill?"),
    ("I studied {}.", "What subject is my university degree in?"),
    ("The heating costs {} a month.", "How expensive is keeping the house warm?"),
    ("The film is about {}.", "What is the topic of the movie?"),
    ("My shoes are made by {}.", "Which brand do I wear on my feet?"),
    ("The children go to {} school.", "Where do our kids learn?"),
    ("The lawyer handling the contract is {}.", "Which attorney looks after the agreement?"),
    ("My bicycle was made by {}.", "What brand is the bike that I ride?"),
    ("The key is under the {}.", "Where did I hide what opens the door?"),
    ("The new office opens in {}.", "Where is the other workplace that we move to?"),
    ("The cat eats only {}.", "What does our kitten accept as food?"),
)
FILLERS = (
    "How do I boil an egg?",
    "Write a haiku about rain.",
    "What is a prime number?",
    "Explain how tides work.",
    "Give me a synonym of quick.",
    "Sort these: pear, apple, fig.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    text: str
    question: str
    value: str
    pattern: re.Pattern[str]  # how its sentence reads, without its value: what the model understands
    same_words: bool


def facts(seed: int = 1) -> list[Fact]:
    """Return 50 facts with random values, in random order."""
    rng = random.Random(seed)
    made = [
        _fact(f"The code of locker {number} is {{}}.", f"What is the code of locker {number}?", rng, same_words=True)
        for number in rng.sample(range(100, 1000), LOCKERS)
    ]
    made += [_fact(text, question, rng, same_words=False) for text, question in OTHER_WORDS]
    rng.shuffle(made)
    return made


def _fact(text: str, question: str, rng: random.Random, *, same_words: bool) -> Fact:
    value = "".join(rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") for _ in range(4)).capitalize()
    pattern = re.compile(re.escape(text).replace(r"\{\}", r"([A-Z]\w+)"))
    return Fact(text=text.format(value), question=question, value=value, pattern=pattern, same_words=same_words)
