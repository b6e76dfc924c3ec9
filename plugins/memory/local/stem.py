"""English word stems: Porter's algorithm, and the irregular forms that it cannot know."""

from __future__ import annotations

import re

_IRREGULAR_FORMS = """
be am are is was were been being;have has had having;do does did done doing;go goes went gone
get gets got gotten;run ran running;buy bought;bring brought;think thought;teach taught;catch caught
fight fought;seek sought;say said;tell told;sell sold;make made;take took taken;give gave given;come came
become became;see saw seen;know knew known;grow grew grown;throw threw thrown;fly flew flown
draw drew drawn;show shown;blow blew blown;write wrote written;ride rode ridden;drive drove driven
rise rose risen;break broke broken;speak spoke spoken;steal stole stolen;choose chose chosen
freeze froze frozen;wake woke woken;wear wore worn;tear tore torn;swim swam swum;sing sang sung
ring rang rung;begin began begun;drink drank drunk;eat ate eaten;fall fell fallen;forget forgot forgotten
forgive forgave forgiven;hide hid hidden;bite bit bitten;keep kept;sleep slept;feel felt;leave left
meet met;lose lost;send sent;spend spent;build built;lend lent;bend bent;mean meant;deal dealt
win won winning;sit sat sitting;hold held;stand stood;understand understood;find found;pay paid;lay laid
lead led;read reading;feed fed;hear heard;shoot shot;stick stuck;strike struck;dig dug;hang hung
shine shone;light lit;dream dreamt;learn learnt;burn burnt;spell spelt;spill spilt;lie lying
die died dying;tie tying;child children;man men;woman women;person people;foot feet;tooth teeth;mouse mice
goose geese;life lives;wife wives;knife knives;leaf leaves;half halves;shelf shelves;wolf wolves
self selves;good better best;bad worse worst;far farther further;mom mum mother mommy;dad father daddy
photo photograph picture pic;kid kids;bike bicycle;tv television;movie film;fridge refrigerator
phone telephone;ad advert advertisement;math maths
"""

IRREGULAR: dict[str, str] = {
    form: forms.split()[0]
    for forms in _IRREGULAR_FORMS.replace("\n", ";").split(";")
    for form in forms.split()
}

_VOWEL = re.compile(r"[aeiou]|(?<=[^aeiou])y")
_MEASURE = re.compile(r"(?:[aeiou]|(?<=[^aeiou])y)+(?:[^aeiouy]|(?<=[aeiou])y|^y)+")
_DOUBLE = re.compile(r"([^aeioulsz])\1$")
_SHORT_END = re.compile(r"[^aeiou][aeiouy][^aeiouwxy]$")

_STEP2 = {
    "ational": "ate",
    "tional": "tion",
    "enci": "ence",
    "anci": "ance",
    "izer": "ize",
    "abli": "able",
    "alli": "al",
    "entli": "ent",
    "eli": "e",
    "ousli": "ous",
    "ization": "ize",
    "ation": "ate",
    "ator": "ate",
    "alism": "al",
    "iveness": "ive",
    "fulness": "ful",
    "ousness": "ous",
    "aliti": "al",
    "iviti": "ive",
    "biliti": "ble",
    "logi": "log",
}
_STEP3 = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
_STEP4 = (
    "ement",
    "ance",
    "ence",
    "able",
    "ible",
    "ment",
    "ant",
    "ent",
    "ism",
    "ate",
    "iti",
    "ous",
    "ive",
    "ize",
    "ion",
    "al",
    "er",
    "ic",
    "ou",
)
_ENDINGS2, _ENDINGS3 = tuple(_STEP2), tuple(_STEP3)


def stem(word: str) -> str:
    """The stem of *word*, which is lower case and ASCII; a word of three letters or fewer is its own."""
    word = IRREGULAR.get(word, word)
    if len(word) < 4:
        return word
    word = _plural(word)
    word = _past(word)
    if word.endswith("y") and _VOWEL.search(word[:-1]):
        word = word[:-1] + "i"
    if word.endswith(_ENDINGS2):
        word = _replace(word, _STEP2)
    if word.endswith(_ENDINGS3):
        word = _replace(word, _STEP3)
    if word.endswith(_STEP4):
        word = _strip(word)
    return _tidy(word) if word.endswith(("e", "ll")) else word


def _measure(part: str) -> int:
    return len(_MEASURE.findall(part))


def _plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us")) else word


def _past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    for suffix in ("ed", "ing"):
        base = word[: -len(suffix)]
        if word.endswith(suffix) and _VOWEL.search(base):
            if base.endswith(("at", "bl", "iz")):
                return base + "e"
            if _DOUBLE.search(base):
                return base[:-1]
            return base + "e" if _measure(base) == 1 and _SHORT_END.search(base) else base
    return word


def _replace(word: str, endings: dict[str, str]) -> str:
    for length in range(7, 2, -1):
        ending = endings.get(word[-length:]) if len(word) > length else None
        if ending is not None:
            return word[:-length] + ending if _measure(word[:-length]) else word
    return word


def _strip(word: str) -> str:
    for suffix in _STEP4:
        if word.endswith(suffix):
            base = word[: -len(suffix)]
            if suffix == "ion" and not base.endswith(("s", "t")):
                return word
            return base if _measure(base) > 1 else word
    return word


def _tidy(word: str) -> str:
    if word.endswith("e"):
        base = word[:-1]
        if _measure(base) > 1 or (_measure(base) == 1 and not _SHORT_END.search(base)):
            word = base
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word
