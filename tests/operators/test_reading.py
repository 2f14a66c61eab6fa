"""What is made of answers: ideas, sources, edits, and nonsense."""

from __future__ import annotations

import contextlib
import json
import time

import pytest

from cuda_sandbox.kernel import Kernel
from operators.idea import Category, Idea
from operators.writing import code, ideas, patches
from operators.writing.check import Unreadable, check
from operators.writing.text import clean, shortened, without_paths

ITEMS = [
    {
        "title": "Vector loads",
        "detail": "Read x as float4 in the first loop.",
        "category": "memory access",
    },
    {
        "title": "Two rows a block",
        "detail": "Halve the blocks, so that one wave suffices.",
        "category": "parallelism and occupancy",
    },
]
WHOLE = json.dumps({"analysis": "It waits for memory.", "ideas": ITEMS})
TEXTS = [
    "Vector loads: Read x as float4 in the first loop.",
    "Two rows a block: Halve the blocks, so that one wave suffices.",
]


def texts(answer: str) -> list[str]:
    return [idea.text for idea in ideas.read(answer, "llm", "o3")]


# ---------------------------------------------------------------- ideas


def test_ideas_come_with_category_author_and_model() -> None:
    assert ideas.read(WHOLE, "llm", "o3") == [
        Idea(TEXTS[0], Category.MEMORY, "llm", "o3"),
        Idea(TEXTS[1], Category.PARALLELISM, "llm", "o3"),
    ]


@pytest.mark.parametrize(
    "answer",
    [
        f"Here you are:\n\n```json\n{WHOLE}\n```\nGood luck!",
        f"```\n{WHOLE}",
        f"I think {{x}} matters. {WHOLE} That is all.",
        json.dumps(ITEMS),
        json.dumps({"result": {"ideas": ITEMS}, "ideas": ITEMS}),
        json.dumps(ITEMS[0]) + "\n" + json.dumps(ITEMS[1]),
        WHOLE.replace("}]", "},]"),
        WHOLE.replace('"memory access"', '"Memory Access"'),
        WHOLE.replace("first loop.", "first\nloop."),
    ],
)
def test_json_is_found_wherever_and_however_it_is_wrapped(answer: str) -> None:
    assert texts(answer) == TEXTS


def test_an_answer_that_breaks_off_keeps_its_whole_ideas() -> None:
    assert texts(WHOLE[:-40]) == TEXTS[:1]


def test_a_bad_item_does_not_lose_the_others() -> None:
    bad = [None, 7, {}, {"title": 3}, {"title": " "}, [], {"detail": ["x"]}]
    assert texts(json.dumps({"ideas": [*bad, ITEMS[0], *bad, ITEMS[1]]})) == TEXTS


@pytest.mark.parametrize(
    ("named", "meant"),
    [
        ("memory access", Category.MEMORY),
        ("MEMORY", Category.MEMORY),
        ("Memory access patterns", Category.MEMORY),
        ("latency hiding", Category.ASYNCHRONY),
        ("asynchrony & latency hiding", Category.ASYNCHRONY),
        ("precision", Category.PRECISION),
        ("control-flow and loops", Category.CONTROL),
        ("compute and instruction", Category.COMPUTE),
        ("occupancy", Category.PARALLELISM),
    ],
)
def test_a_category_is_recognised_by_what_it_is_near(named: str, meant: Category) -> None:
    assert ideas.category_of("do something", named) is meant


def test_without_a_category_the_words_decide() -> None:
    assert ideas.category_of("Prefetch the next tile asynchronously") is Category.ASYNCHRONY
    assert ideas.category_of("Use fp16 operands") is Category.PRECISION
    assert ideas.category_of("Do better") is Category.COMPUTE


def test_a_plain_list_of_a_person_is_read_too() -> None:
    answer = (
        "The kernel waits for memory.\n\n"
        "1. **Vector loads**: read x as float4, four at a time\n"
        "2) unroll the inner loop by 8\n\nok\n- x\n"
    )
    found = ideas.read(answer, "ask")
    assert [idea.text for idea in found] == [
        "Vector loads: read x as float4, four at a time",
        "unroll the inner loop by 8",
    ]
    assert found[1].category is Category.CONTROL


def test_ideas_stay_on_one_line_and_within_bounds() -> None:
    long = {"title": "a\nb", "detail": "word " * 1000, "category": "memory access"}
    (text,) = texts(json.dumps({"ideas": [long]}))
    assert "\n" not in text
    assert len(text) <= ideas.LONGEST_IDEA
    assert text.endswith("...")


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "no",
        "{",
        "[" * 5000,
        "{" * 5000,
        '{"ideas": "none"}',
        "<html>502</html>",
        "null",
        "\x00",
    ],
)
def test_nonsense_holds_no_ideas(answer: str) -> None:
    assert texts(answer) == []


def test_a_huge_answer_is_read_in_bounded_time() -> None:
    started = time.perf_counter()
    for junk in (
        "{[" * 500_000,
        '{"a": ' * 200_000,
        "- idea " + "x" * 2_000_000,
        "```\n" * 300_000,
        "<<<<<<< SEARCH\n" * 100_000,
        "<<<<<<< SEARCH\na\n=======\n>>>>>>> REPLACE\n" * 10_000,
        "Idea:" + " *" * 200_000,
        "launch(" * 60_000,
        "\n// " * 100_000,
        " " * 400_000,
    ):
        ideas.read(junk, "llm")
        with contextlib.suppress(code.NoKernel):
            code.read(junk, "cpp", Kernel("int a;\n", "cpp"))
        code.idea_line(junk)
    assert time.perf_counter() - started < 20


# ---------------------------------------------------------------- sources

LAUNCH = 'extern "C" int launch(const float* x, float* out, void* w) {\n    return 0;\n}\n'
PARENT = Kernel(
    "#include <math.h>\n\nstatic float f(float x) {\n    return x;\n}\n\n"
    "static float g(float x) {\n    return x;\n}\n" + LAUNCH,
    "cpp",
    ("-ffast-math",),
)


def source(answer: str) -> str:
    return code.read(answer, "cpp").source


@pytest.mark.parametrize(
    "answer",
    [
        f"```cpp\n{LAUNCH}```",
        f"Let me think.\n\n```cuda\n{LAUNCH}```\nDone.",
        f"```\n{LAUNCH}\n```".replace("\n\n```", "\n```"),
        f"```cpp\n{LAUNCH}",
        LAUNCH,
        LAUNCH.replace("\n", "\r\n"),
        json.dumps({"source": LAUNCH}),
        f"A helper:\n```cpp\nint helper() {{ return 1; }}\n```\nAll of it:\n```cpp\n{LAUNCH}```",
        f"So:\n```cpp\nlaunch(x, out, w);\n```\n```cpp\n{LAUNCH}```\n```sh\ng++ -c x.cpp\n```",
    ],
)
def test_a_source_is_found_in_or_without_fences(answer: str) -> None:
    assert source(answer) == LAUNCH


def test_of_several_versions_the_last_whole_one_counts() -> None:
    better = LAUNCH.replace("return 0;", "return 0;  // better")
    excerpt = "```cpp\nint launch() {}\n```"
    assert source(f"```cpp\n{LAUNCH}```\nNo:\n```cpp\n{better}```\nIn short:\n{excerpt}") == better


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "I cannot help with that.",
        "```cpp\nint helper() { return 1; }\n```",
        'The prototype is extern "C" int launch(const float* x); I would fuse the loops.',
        "x" * 300_000,
        f"```cpp\n{LAUNCH}// {'x' * 250_000}\n```",
    ],
)
def test_an_answer_without_a_kernel_is_none(answer: str) -> None:
    with pytest.raises(code.NoKernel):
        code.read(answer, "cpp")


def test_flags_are_named_in_the_source_and_else_the_parents() -> None:
    assert code.read(LAUNCH, "cpp").flags == ()
    assert code.read(LAUNCH, "cpp", PARENT).flags == ("-ffast-math",)
    named = f"// softmax\n// flags: -O2 -funroll-loops\n{LAUNCH}"
    assert code.read(named, "cpp", PARENT).flags == ("-O2", "-funroll-loops")
    assert code.read(f"// flags:\n{LAUNCH}", "cpp", PARENT).flags == ()
    late = f"{LAUNCH}\n// flags: -O2\n"
    assert code.read(late, "cpp").flags == ()


def test_what_no_file_can_hold_is_taken_out() -> None:
    dirty = json.dumps({"source": LAUNCH.replace("return 0", "return\u0000 0 /* \ud800 */")})
    found = source(dirty.replace("\\u0000", "\\u0000"))
    found.encode()
    assert "\x00" not in found
    assert "return 0" in found


# ---------------------------------------------------------------- edits


def block(search: str, replace: str) -> str:
    return f"<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n"


def edited(*edits: str) -> str:
    return code.exactly("\n".join(edits), "cpp", PARENT).source


def test_edits_replace_lines_of_the_parent_one_after_the_other() -> None:
    found = edited(
        block(
            "static float f(float x) {\n    return x;",
            "static float f(float x) {\n    return 2 * x;",
        ),
        "and then",
        block("    return 2 * x;", "    x *= 2;\n    return x;"),
    )
    assert "static float f(float x) {\n    x *= 2;\n    return x;\n}\n" in found
    assert found.count("return x;") == 2
    kernel = code.read(block("#include <math.h>", ""), "cpp", PARENT)
    assert kernel.source == PARENT.source.replace("#include <math.h>\n", "\n")
    assert kernel.flags == PARENT.flags


def test_edits_may_stand_in_a_code_block() -> None:
    assert "<cmath>" in edited(f"```cpp\n{block('#include <math.h>', '#include <cmath>')}```")


@pytest.mark.parametrize(
    "search",
    [
        "static float f(float x) {  \n    return x;   ",
        "static float f(float x) {\n\treturn x;",
        "  static float f(float x) {\n      return x;",
        "\nstatic float f(float x) {\n    return x;\n",
    ],
)
def test_white_space_may_differ_where_the_place_is_clear(search: str) -> None:
    found = edited(block(search, search.replace("return x", "return -x")))
    assert "return -x;" in found
    assert found.count("return x;") == 1


def test_replaced_lines_take_the_indentation_of_the_source() -> None:
    found = edited(block("return 0;", "if (!x) return 1;\nreturn 0;"))
    assert "    if (!x) return 1;\n    return 0;\n" in found


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        (block("    return x;", "    return 1;"), "SEARCH block 1 is in the kernel 2 times"),
        (block("return y;", "return 1;"), "SEARCH block 1 is not in the kernel: return y;"),
        (block("", "int a;"), "SEARCH block 1 is empty"),
        ("<<<<<<< SEARCH\nreturn 0;\n=======\nreturn 1;\n", "SEARCH block 1 is not whole"),
        (
            block("return 0;", "return 1;") + block("return 0;", "return 2;"),
            "SEARCH block 2 is not",
        ),
    ],
)
def test_edits_that_do_not_fit_say_which_and_why(edit: str, complaint: str) -> None:
    with pytest.raises(patches.PatchFailed, match=complaint):
        edited(edit)


def test_such_edits_become_a_kernel_that_fails_to_compile_and_can_be_mended() -> None:
    answer = "Why */ not:\n" + block('return "y\\";', "return 1;")
    kernel = code.read(answer, "cpp", PARENT)
    first, rest = kernel.source.split("\n", 1)
    assert first.startswith('#error "SEARCH block 1 is not in the kernel: return')
    assert rest.endswith(PARENT.source)
    assert "return 1;" in rest
    assert rest.count("*/") == 1
    assert kernel.flags == PARENT.flags


# ---------------------------------------------------------------- checks before taking in


def test_usable_answers_pass() -> None:
    check("ideas", WHOLE, "cpp", (PARENT,))
    check("port", LAUNCH, "cpp", ())
    check("kernel", block("return 0;", "return 1;"), "cpp", (PARENT,))
    check("crossover", f"Idea: both\n```cpp\n{LAUNCH}```", "cpp", (PARENT, PARENT))


@pytest.mark.parametrize(
    ("purpose", "answer", "parents", "message"),
    [
        ("ideas", "I do not know", (PARENT,), "no ideas found: answer with JSON such as"),
        ("port", "I do not know", (), "complete source file, alone or in one code block$"),
        ("kernel", "int a;", (PARENT,), "search/replace blocks$"),
        ("repair", block("zzz", "y"), (PARENT,), "is not in the kernel: zzz. Correct the block"),
        ("kernel", PARENT.source, (PARENT,), "nothing is changed"),
        ("port", f"```cpp\n{LAUNCH}int cut_o", (), "ends within a code block"),
        (
            "port",
            f"```cpp\n{LAUNCH}int first;\n```\nor\n```cpp\n{LAUNCH}int second;\n```\n",
            (),
            "holds 2 complete kernels",
        ),
    ],
)
def test_unusable_answers_are_refused_with_the_remedy(
    purpose: str, answer: str, parents: tuple[Kernel, ...], message: str
) -> None:
    with pytest.raises(Unreadable, match=message):
        check(purpose, answer, "cpp", parents)


# ---------------------------------------------------------------- text


def test_paths_are_reduced_to_their_names() -> None:
    text = "/srv/eve/x/kernel.cu(3): error: a / b, float*/int /usr/local/cuda/include/cuda_fp16.h:7"
    assert without_paths(text) == "kernel.cu(3): error: a / b, float*/int cuda_fp16.h:7"


def test_text_is_cut_at_a_word() -> None:
    assert shortened("one two  three\nfour", 100) == "one two three four"
    assert shortened("one two three four", 12) == "one two..."
    assert clean("abc", 2) == "ab"


def test_the_names_of_intrinsics_stay_whole_in_an_idea() -> None:
    one = {"title": "**stream**", "detail": "Use _mm256_stream_ps.", "category": "memory access"}
    (idea,) = ideas.read(json.dumps({"ideas": [one]}), "author")
    assert idea.text == "stream: Use _mm256_stream_ps."


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("4096 = 31 * 132 + 4, slot k * 66", "4096 = 31 * 132 + 4, slot k * 66"),
        ("(ky % 4)*3 rows of a*b*c bytes", "(ky % 4)*3 rows of a*b*c bytes"),
        ("load `float4` by one **whole** warp", "load `float4` by one whole warp"),
        ("pass `const float *x` and `float* y`", "pass `const float *x` and `float* y`"),
    ],
)
def test_products_in_an_idea_are_no_markup(written: str, read: str) -> None:
    (idea,) = ideas.read(json.dumps([written]), "author")
    assert idea.text == read


def test_an_idea_keeps_all_that_its_author_needs() -> None:
    detail = " ".join(
        f"Step {n}: the warps of side {n % 2} wait for barrier {n}." for n in range(40)
    )
    (idea,) = ideas.read(json.dumps([{"title": "turns", "detail": detail}]), "author")
    assert idea.text == f"turns: {detail}"
