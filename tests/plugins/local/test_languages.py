"""What was said is found again in every language that people write in."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hermes.plugins.memory.local.provider import LocalMemoryProvider

Later = Callable[..., LocalMemoryProvider]

NOISE = (
    "The weather was fine at the weekend and we had coffee.",
    "今天天气很好，我们一起喝咖啡。",
    "Am Wochenende war das Wetter schön.",
    "昨日は天気がよかったです。",
)

SAMPLES = [
    ("English inflection", "Melanie was painting sunrises by the lake.", "Did she paint a sunrise?"),
    ("English irregular verb", "I ran the charity race in June.", "When did I run the race?"),
    ("English irregular plural", "Both children went to camp.", "Which child goes to camp?"),
    ("possessive", "Caroline's necklace came from her grandma.", "necklace of caroline"),
    ("Chinese name of two characters", "我的同事王伟住在上海浦东", "王伟"),
    ("Chinese question", "桌面后端秒退根因:watchdog单层", "桌面后端为什么秒退？"),
    ("Latin inside Chinese", "桌面后端秒退根因:watchdog单层", "watchdog"),
    ("one Chinese character inside a word", "我们家养了一只橘猫", "猫"),
    ("Japanese", "来月、京都の旅館に泊まる予定です", "京都の旅館はどこですか"),
    ("Japanese katakana", "新しいサーバーを導入した", "サーバー"),
    ("Korean with endings", "민수는 서울에서 개발자로 일한다", "서울에 사는 개발자"),
    ("Korean name", "어제 지훈이를 만났다", "지훈"),
    ("German compound by its beginning", "Die Donaudampfschifffahrtsgesellschaft zahlt im Mai.", "Donau"),
    (
        "German compound, stored inflected",
        "Unsere Krankenversicherungsnummern liegen im Safe.",
        "Krankenversicherung",
    ),
    ("German umlauts", "Der Kühlschrank steht in der Küche.", "kuhlschrank"),
    ("Arabic", "اجتماعنا القادم في القاهرة يوم الاثنين", "القاهرة"),
    ("Arabic with vowel signs", "هذا كِتَابٌ قديم", "كتاب"),
    ("Hebrew", "הפגישה נקבעה בירושלים ביום שני", "בירושלים"),
    ("Hindi", "मेरी बहन दिल्ली में रहती है", "दिल्ली"),
    ("Thai inside a sentence", "พรุ่งนี้เราจะไปเชียงใหม่ด้วยกัน", "เชียงใหม่"),
    ("Russian", "Мы живём в Новосибирске", "новосибирске"),
    ("Greek accents", "Μένω στην Αθήνα", "αθηνα"),
    ("French accents and elision", "Nous dînons à l'hôtel", "hotel"),
    ("host name", "the broken host is pve-01 in rack 4", "pve-01"),
    ("snake_case", "set max_open_files to 4096", "max_open_files"),
    ("part of snake_case", "set max_open_files to 4096", "open files"),
    ("camelCase by its parts", "call getUserProfile before login", "user profile"),
    ("path", "edit /etc/nginx/sites-enabled/blog.conf", "who edits /etc/nginx/sites-enabled/blog.conf"),
    ("file of a path", "edit /etc/nginx/sites-enabled/blog.conf", "blog.conf"),
    ("version", "we pinned libfoo to v2.21.3", "v2.21.3"),
    ("error code", "it fails with ERR_CONN_RESET (0x80070057)", "0x80070057"),
    ("C++", "the parser is in C++ now", "C++"),
    ("mail address", "write to ops@example.org", "ops@example.org"),
    ("emoji", "the launch went well 🚀 today", "🚀"),
    ("flag", "holiday in 🇩🇪 next year", "🇩🇪"),
    ("full-width letters", "コードはＡＢＣ１２３です", "ABC123"),
]


@pytest.mark.parametrize(("said", "asked"), [s[1:] for s in SAMPLES], ids=[s[0] for s in SAMPLES])
def test_found_again(later: Later, said: str, asked: str) -> None:
    """The text is the first thing found, among others, by a search and unasked."""
    provider = later(*NOISE, said)
    found = provider.search_records(asked)
    assert found
    assert found[0]["text"] == said
    assert said[:20] in provider.prefetch(asked)


@pytest.mark.parametrize(
    "asked",
    [
        "pve-01",
        "memory:safe",
        'say "hi',
        "(x",
        "v2.21",
        "*",
        "",
        " ",
        "AND",
        "NEAR(",
        "a OR",
        "^",
        "{}",
        "-",
        "pve-01 NOT",
        'col:"',
        "\x00",
        "\ud800",
        "§1",
        "% _",
        "'; DROP TABLE messages; --",
        "?" * 5000,
    ],
)
def test_no_question_breaks_the_search(later: Later, asked: str) -> None:
    """Signs of a query language are letters like any other: no error, whatever is asked."""
    provider = later("host pve-01")
    provider.prefetch(asked)
    found = provider.search_records(asked)
    assert found is not None
    assert bool(found) == ("pve-01" in asked)


def test_one_rare_word_in_a_long_question(later: Later) -> None:
    """Forty ordinary words around a telling one do not hide what it names."""
    ordinary = [f"We talked about project plan number {i}, the team and the next meeting." for i in range(60)]
    provider = later(*ordinary, "zanzibar is the code name of the migration")
    question = (
        "Can you please help me to find out what we talked about some time ago with the team in a meeting, I"
        " think it was about the plan of the next project and somebody said the word"
        " zanzibar but I do not remember why"
    )
    assert "zanzibar is the code name" in provider.prefetch(question).split("\n")[1]
