"""Times that a question names: dates, months, "last week", "letzten Dienstag", "上个月", "先週", "el mes pasado"."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import partial

_MONTHS = (
    "january|jan|januar|enero|janvier 1 february|feb|februar|febrero|février|fevrier 2 "
    "march|mar|märz|maerz|marzo|mars 3 april|apr|abril|avril 4 may|mai|mayo 5 june|jun|juni|junio|juin 6 "
    "july|jul|juli|julio|juillet 7 august|aug|agosto|août|aout 8 september|sept|sep|septiembre|septembre 9 "
    "october|oct|oktober|okt|octubre|octobre 10 november|nov|noviembre|novembre 11 "
    "december|dec|dezember|dez|diciembre|décembre|decembre 12"
)
MONTH_OF = {
    name: int(number)
    for names, number in zip(_MONTHS.split()[::2], _MONTHS.split()[1::2], strict=True)
    for name in names.split("|")
}
_WEEKDAYS = (
    "monday|montag|lunes|lundi|周一|星期一|礼拜一|月曜日|월요일 "
    "tuesday|dienstag|martes|mardi|周二|星期二|礼拜二|火曜日|화요일 "
    "wednesday|mittwoch|miércoles|miercoles|mercredi|周三|星期三|礼拜三|水曜日|수요일 "
    "thursday|donnerstag|jueves|jeudi|周四|星期四|礼拜四|木曜日|목요일 "
    "friday|freitag|viernes|vendredi|周五|星期五|礼拜五|金曜日|금요일 "
    "saturday|samstag|sonnabend|sábado|sabado|samedi|周六|星期六|礼拜六|土曜日|토요일 "
    "sunday|sonntag|domingo|dimanche|周日|星期日|星期天|周天|礼拜天|日曜日|일요일"
)
WEEKDAY_OF = {name: day for day, names in enumerate(_WEEKDAYS.split()) for name in names.split("|")}
_LONG_MONTH = "|".join(sorted((m for m in MONTH_OF if len(m) > 3), key=len, reverse=True))
_MONTH = "|".join(sorted(MONTH_OF, key=len, reverse=True))
_DAY = "|".join(sorted(WEEKDAY_OF, key=len, reverse=True))
_UNITS = {
    "day": "day|tag|天|日|일|día|dia|jour",
    "week": "week|woche|个?星期|周|礼拜|週|주|semana|semaine",
    "month": "month|monat|个?月|か月|ヶ月|カ月|ヵ月|개월|달|mes|mois",
    "year": "year|jahr|年|년|해|año|ano|année|annee|an",
    "weekend": "weekend|wochenende|周末|週末|주말|fin de semana",
    "night": "night|nacht|晚上|晩|밤|noche|nuit",
}
_KIND = tuple((re.compile(words, re.IGNORECASE), kind) for kind, words in list(_UNITS.items())[::-1])
_LAST = r"(?:last|past|previous|letzte[nrsm]?|vergangene[nrsm]?|vorige[nrsm]?)"
_SPAN = rf"{_DAY}|weekend|wochenende|week|woche|month|monat|year|jahr|night|nacht"
_UNIT = r"(?:day|week|month|year|tage?n?|wochen?|monate?n?|jahre?n?|天|个?星期|周|个?月|年)"
_COUNTED = (
    "a an one einem einer einen un una une 一 1 two zwei dos deux 两 二 2 three drei tres trois 三 3 "
    "four vier cuatro quatre 四 4 five fünf cinco cinq 五 5 six sechs seis 六 6 seven sieben siete sept 七 7 "
    "eight acht ocho huit 八 8 nine neun nueve neuf 九 9 ten zehn diez dix 十 10"
)


def _numbers() -> dict[str, int]:
    found: dict[str, int] = {}
    names: list[str] = []
    for part in _COUNTED.split():
        if part.isascii() and part.isdigit():
            found |= dict.fromkeys(names, int(part))
            names = []
        else:
            names.append(part)
    return found


_NUMBERS = _numbers()
_NUMBER = r"\d{1,3}|" + "|".join(sorted(_NUMBERS, key=len, reverse=True))


@dataclass(slots=True)
class Dated:
    """The spans of time (Unix seconds, end excluded) and the days of any year that a text names.

    *rest* is the text without the words of relative times, which nobody said when it happened.
    """

    rest: str
    spans: list[tuple[float, float]] = field(default_factory=list)
    recurring: list[tuple[int, int]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    def matches(self, time: float) -> bool:
        """True if *time* is in a span, or on one of the days or months of any year."""
        if any(start <= time < end for start, end in self.spans):
            return True
        if not self.recurring:
            return False
        day = datetime.fromtimestamp(time)
        return any(day.month == month and dom in (0, day.day) for month, dom in self.recurring)


_Read = Callable[[re.Match[str], date], Iterator[tuple[date, date] | tuple[int, int]]]


def find(asked: str, now: float) -> Dated:
    """The times that *asked* names, as seen from *now*, in local time."""
    try:
        today = datetime.fromtimestamp(now).date()
    except (OverflowError, OSError, ValueError):
        return Dated(asked)
    dated = Dated(asked)
    if not _may_name_a_time(asked):
        return dated
    for pattern, read, relative in _PATTERNS:
        take = partial(_take, read=read, relative=relative, today=today, dated=dated)
        dated.rest = pattern.sub(take, dated.rest)
    dated.rest = " ".join([dated.rest, *dated.words])
    return dated


def _take(match: re.Match[str], *, read: _Read, relative: bool, today: date, dated: Dated) -> str:
    """Note what *match* means; the text that stands in its place."""
    try:
        for first, second in read(match, today):
            if isinstance(first, date) and isinstance(second, date):
                dated.spans.append((_seconds(first), _seconds(second)))
            elif isinstance(first, int) and isinstance(second, int):
                dated.recurring.append((first, second))
    except (ValueError, OverflowError, OSError):  # the 31st of February is no date
        return match.group()
    if not relative:  # a date that is written out may be in the stored text too: its words stay
        dated.words.extend(_LETTERS.findall(match.group()) if match.group().isascii() else [])
    return " "


def _seconds(day: date) -> float:
    return datetime(day.year, day.month, day.day).timestamp()


def _one_day(day: date) -> Iterator[tuple[date, date]]:
    yield day, day + timedelta(days=1)


def _month(year: int, month: int) -> tuple[date, date]:
    return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)


def _iso(match: re.Match[str], _: date) -> Iterator[tuple[date, date]]:
    yield from _one_day(date(int(match["y"]), int(match["m"]), int(match["d"])))


def _named(match: re.Match[str], _: date) -> Iterator[tuple[date, date] | tuple[int, int]]:
    """A day and a month, a month, with or without a year."""
    parts = match.groupdict()
    name = parts.get("month") or parts.get("m") or ""
    month = MONTH_OF.get(name.lower()) or int(name)
    day = int(parts["d"]) if parts.get("d") else 0
    if not 1 <= month <= 12 or not 0 <= day <= 31:
        raise ValueError(name)
    if not parts.get("y"):
        date(2024, month, day or 1)  # a leap year has every day that there is
        yield month, day
    elif day:
        yield from _one_day(date(int(parts["y"]), month, day))
    else:
        yield _month(int(parts["y"]), month)


def _year(match: re.Match[str], _: date) -> Iterator[tuple[date, date]]:
    yield date(int(match["y"]), 1, 1), date(int(match["y"]) + 1, 1, 1)


_BACK = {
    1: "yesterday gestern 昨天 昨日 어제 ayer hier anoche",
    2: "vorgestern 前天 一昨日 おととい 그저께 anteayer avant-hier",
}
_DAYS_BACK = {name: days for days, names in _BACK.items() for name in names.split()}


def _near(match: re.Match[str], today: date) -> Iterator[tuple[date, date]]:
    said = match.group().lower()
    yield from _one_day(today - timedelta(days=2 if " " in said else _DAYS_BACK.get(said, 0)))


def _kind(what: str) -> str:
    """Which unit of time *what* is a word for."""
    return next(kind for pattern, kind in _KIND if pattern.match(what))


def _last(match: re.Match[str], today: date) -> Iterator[tuple[date, date]]:
    what = match["what"].lower()
    monday = today - timedelta(days=today.weekday())
    if what in WEEKDAY_OF:
        yield from _one_day(today - timedelta(days=(today.weekday() - WEEKDAY_OF[what] - 1) % 7 + 1))
        return
    kind = _kind(what)
    if kind == "weekend":
        yield monday - timedelta(days=2), monday
    elif kind == "week":
        yield monday - timedelta(days=7), monday
    elif kind == "month":
        yield _month(today.year - (today.month == 1), (today.month - 2) % 12 + 1)
    elif kind == "year":
        yield date(today.year - 1, 1, 1), date(today.year, 1, 1)
    elif kind == "night":
        yield from _one_day(today - timedelta(days=1))


def _day_of_last_week(match: re.Match[str], today: date) -> Iterator[tuple[date, date]]:
    monday = today - timedelta(days=today.weekday() + 7)
    yield from _one_day(monday + timedelta(days=WEEKDAY_OF[match["what"].lower()]))


def _this(match: re.Match[str], today: date) -> Iterator[tuple[date, date]]:
    kind, end = _kind(match["what"]), today + timedelta(days=1)
    if kind == "week":
        yield today - timedelta(days=today.weekday()), end
    elif kind == "month":
        yield today.replace(day=1), end
    else:
        yield date(today.year, 1, 1), end


def _ago(match: re.Match[str], today: date) -> Iterator[tuple[date, date]]:
    number, kind = match["n"].lower(), _kind(match["unit"])
    count = _NUMBERS.get(number) or int(number)
    if kind == "day":
        yield from _one_day(today - timedelta(days=count))
    elif kind == "week":
        middle = today - timedelta(days=7 * count)
        yield middle - timedelta(days=3), middle + timedelta(days=4)
    elif kind == "month":
        months = today.year * 12 + today.month - 1 - count
        yield _month(months // 12, months % 12 + 1)
    else:
        yield date(today.year - count, 1, 1), date(today.year - count + 1, 1, 1)


_Y = r"(?P<y>(?:19|20)\d\d)"
_FLAGS = re.IGNORECASE
_DIGIT, _WORD = re.compile(r"\d"), re.compile("[a-z]+")
_LETTERS = re.compile(r"[^\W\d_]{3,}")
_OF = r"(?:(?:of|de|del)\s+)?"
_MONTH_DAY = rf"(?P<month>{_MONTH})\.?\s+(?P<d>\d\d?)(?:st|nd|rd|th)?\b(?!:)(?:,?\s+{_Y}\b)?"
_DAY_MONTH = rf"(?P<d>\d\d?)(?:st|nd|rd|th|er|\.)?\s+{_OF}(?P<month>{_MONTH})\b,?(?:\s+{_OF}{_Y}\b)?"
_IN = "in|during|since|of|im|seit|anfang|ende|mitte|early|late|mid|en|desde|depuis|durante|pendant"
_NEAR = (
    r"\bthe day before yesterday\b|\b(?:yesterday|today|gestern|vorgestern|heute)\b|昨天|前天|今天"
    r"|一昨日|おととい|昨日|今日|그저께|어제|오늘|\b(?:anteayer|ayer|hoy|anoche|avant-hier|hier|aujourd'hui)\b"
)
_LAST_AFTER = r"semana|mes|año|ano|noche|fin de semana|semaine|mois|année|annee|an|nuit|week-end"
_THIS = r"\b(?:this|diese[nrsm]?)\s+(?P<what>week|month|year|woche|monat|jahr)\b"


def _rule(pattern: str, read: _Read, *, relative: bool = False) -> tuple[re.Pattern[str], _Read, bool]:
    return re.compile(pattern, _FLAGS), read, relative


_PATTERNS = (  # what one takes, those below do not see
    _rule(rf"\b{_Y}[-/.](?P<m>\d\d?)[-/.](?P<d>\d\d?)\b", _iso),
    _rule(rf"{_Y}\s*年\s*(?P<m>\d\d?)\s*月(?:\s*(?P<d>\d\d?)\s*[日号號])?", _named),
    _rule(r"(?P<m>\d\d?)\s*月\s*(?P<d>\d\d?)\s*[日号號]", _named),
    _rule(r"(?<![\d个])(?P<m>1[0-2]|0?[1-9])\s*月(?!\s*\d)", _named),
    _rule(r"\b(?P<d>\d\d?)\.\s?(?P<m>\d\d?)\.\s?(?P<y>(?:19|20)\d\d)\b", _named),
    _rule(rf"\b{_DAY_MONTH}", _named),
    _rule(rf"\b{_MONTH_DAY}", _named),
    _rule(rf"\b(?P<month>{_MONTH}),?\s+{_OF}{_Y}\b", _named),
    _rule(rf"\b(?:{_IN})\s+(?P<month>{_LONG_MONTH}|may|mai|juni|juli)\b", _named),
    _rule(r"(?P<m>1[0-2]|[1-9])\s*월(?:\s*(?P<d>\d\d?)\s*일)?", _named),
    _rule(rf"\b(?:in|during|year|jahr)\s+{_Y}\b", _year),
    _rule(rf"{_Y}\s*年", _year),
    _rule(_NEAR, _near, relative=True),
    _rule(rf"\b{_LAST}\s+(?P<what>{_SPAN})\b", _last, relative=True),
    _rule(rf"上一?个?(?P<what>{_DAY}|周末|周|星期|礼拜|月|年)", _last, relative=True),
    _rule(rf"(?:先|지난\s?)(?:週|주)の?\s?(?P<what>{_DAY})", _day_of_last_week, relative=True),
    _rule(r"[先去昨](?P<what>週末|週|月|年|晩)", _last, relative=True),
    _rule(rf"지난\s?(?P<what>{_DAY}|주말|주|달|해|밤)", _last, relative=True),
    _rule(r"작(?P<what>년)", _last, relative=True),
    _rule(
        rf"\b(?:el |la |le |l'|l’)?(?P<what>{_DAY}|{_LAST_AFTER})\s+(?:pasad[oa]|dernier|dernière|derniere|passée?)\b",
        _last,
        relative=True,
    ),
    _rule(_THIS, _this, relative=True),
    _rule(r"(?:这个?|本)(?P<what>周|星期|月)", _this, relative=True),
    _rule(r"(?:今|이번\s?)(?P<what>週|月|年|주|달|해)", _this, relative=True),
    _rule(r"\b(?:est[ae]|cette|ce)\s+(?P<what>semana|mes|año|semaine|mois|année)\b", _this, relative=True),
    _rule(rf"\b(?P<n>{_NUMBER})\s+(?P<unit>{_UNIT})s?\s+(?:ago|before|earlier)\b", _ago, relative=True),
    _rule(rf"\bvor\s+(?P<n>{_NUMBER})\s+(?P<unit>{_UNIT})\b", _ago, relative=True),
    _rule(rf"(?P<n>{_NUMBER})\s*(?P<unit>天|个?星期|周|个月|年)(?:之?前)", _ago, relative=True),
    _rule(rf"(?P<n>{_NUMBER})\s*(?P<unit>日|週間?|[かヶカヵ]月|年)前", _ago, relative=True),
    _rule(r"(?P<n>\d{1,3})\s*(?P<unit>일|주|개월|달|년)\s*전", _ago, relative=True),
    _rule(rf"\bhace\s+(?P<n>{_NUMBER})\s+(?P<unit>d[ií]a|semana|mes|año)(?:e?s)?\b", _ago, relative=True),
    _rule(rf"\bil y a\s+(?P<n>{_NUMBER})\s+(?P<unit>jour|semaine|mois|année|an)s?\b", _ago, relative=True),
)
_RELATIVE = """
last past previous ago before earlier this today heute hoy aujourd vor hace il pasado pasada dernier derniere
passe esta este cette ce avant letzte letzten letzter letztes letztem vergangene vergangenen vergangener
vergangenes vergangenem vorige vorigen voriger voriges vorigem diese diesen dieser dieses diesem
"""
_TIME_WORDS = frozenset({*MONTH_OF, *WEEKDAY_OF, *_DAYS_BACK, *_RELATIVE.split()})


def _may_name_a_time(asked: str) -> bool:
    """False where it is plain at once that none of the patterns fits."""
    if not asked.isascii() or _DIGIT.search(asked):
        return True
    return not _TIME_WORDS.isdisjoint(_WORD.findall(asked.lower()))
