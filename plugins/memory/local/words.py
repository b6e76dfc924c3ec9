"""Words that say little: left out of a question, kept in what is stored."""

from __future__ import annotations

import re

_ENGLISH = """
a an the and or but if then else of in on at to for from by with about as into over after before is are
was were be been being am do does did done have has had having i you he she it we they me him her us them
my your his its our their mine yours this that these those what which who whom whose when where why how
not no nor so than too very can could will would shall should may might must just there here also any some
s t d ll m re ve let please remember tell know
"""
_GERMAN = """
der die das den dem des ein eine einer eines einem einen und oder aber wenn dann als wie in im an am auf
aus bei mit nach von vom zu zum zur für über unter vor ist sind war waren sei bin bist habe hast hat haben
hatte hatten wird werden wurde ich du er sie es wir ihr mich dich ihn uns euch mir dir ihm ihnen mein
meine meinen meiner meinem dein deine deinen deiner sein seine ihre unser dieser diese dieses was welche
welcher welches wer wen wem wo wann warum wieso nicht kein keine auch noch nur schon sehr man mal bitte
denn doch da so
"""
_ENGLISH_TOO = "die war man was in an am so des den hat hast bin mal"
"""German function words that are English words as well: they do not show that a text is German."""

ENGLISH = frozenset(_ENGLISH.split())
GERMAN = frozenset(_GERMAN.split())
_ONLY_GERMAN = GERMAN - set(_ENGLISH_TOO.split())
_WORD = re.compile(r"[^\W\d_]+")

# Longest first. A single character is listed only where it is hardly ever part of a word of two.
_CHINESE = re.compile(
    "为什么|什么时候|是什么|什么样|怎么样|你还记得|还记得|记得|什么|怎么|哪些|哪个|哪里|哪儿|多少|是否|有没有|可不可以|能不能"
    "|曾经|之前|以前|当时|时候|我们|你们|他们|她们|我的|你的|他的|她的|它的|这个|那个|这些|那些|一个|一下|告诉|请问|关于"
    "|吗|呢|吧|啊|呀|的|了|是|我|你|他|她|它|和|在|过|给|对"
)
_JAPANESE = re.compile(
    "について|ください|でしたか|ましたか|ですか|でした|ました|します|です|ます|なに|何を|とは|のは"
)

ASKS_WHEN = re.compile(
    r"\b(?:when|what (?:date|day|month|year|time)|which (?:date|day|month|year)|how long|since when"
    r"|wann|seit wann|wie lange)\b|什么时候|何时|哪天|哪一天|几号|几月|多久|いつ|언제"
)
_TELLS_WHEN = """
yesterdai todai tonight tomorrow ago last next week weekend month year dai morn mondai tuesdai wednesdai
thursdai fridai saturdai sundai januari februari march april june juli august septemb octob novemb decemb
sinc recent gestern heut morgen letzt woch monat jahr
昨天 今天 明天
上周 下周 上个 下个 昨日 今日 明日 어제 오늘 내일
"""
TELLS_WHEN = frozenset(_TELLS_WHEN.split())
"""Terms, as they are stored, that say when something was or will be."""


def without_stop_words(asked: str) -> str:
    """*asked* without function words: English ones, German ones where it is German, Chinese, Japanese."""
    low = [word.lower() for word in _WORD.findall(asked)]
    german = sum(word in _ONLY_GERMAN for word in low) > sum(word in ENGLISH for word in low)
    stop = GERMAN if german else ENGLISH
    asked = _WORD.sub(lambda word: " " if word.group().lower() in stop else word.group(), asked)
    return asked if asked.isascii() else _CHINESE.sub(" ", _JAPANESE.sub(" ", asked))
