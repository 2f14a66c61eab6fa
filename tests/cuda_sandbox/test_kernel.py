from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuda_sandbox.kernel import Kernel, Tunable
from cuda_sandbox.tokens import Kind, canonical, tokens

SOURCE = """\
#define TILE 64  // tune: 32 64 128
constexpr int UNROLL = 4; // tune: 1, 2, 4
static constexpr float SLOPE = -1.5f;  // tune: -1.5f 0.25f
const char* text = "// tune: 1 2";
#define MODE fast  // tune: fast slow
#define DEPTH 3  // tune me later
"""


def digest(source: str, **changes: object) -> str:
    return Kernel(source, "cpp").digest()


def test_tunables_are_numeric_constants_with_a_tune_comment() -> None:
    assert Kernel(SOURCE, "cpp").tunables() == (
        Tunable("TILE", "64", ("32", "64", "128")),
        Tunable("UNROLL", "4", ("1", "2", "4")),
        Tunable("SLOPE", "-1.5f", ("-1.5f", "0.25f")),
    )


def test_a_current_value_outside_of_its_list_is_a_choice_too() -> None:
    assert Kernel("#define A 7 // tune: 1 2", "cpp").tunables()[0].choices == ("7", "1", "2")


def test_a_name_declared_twice_cannot_be_tuned() -> None:
    twice = "#if X\n#define A 1 // tune: 1 2\n#else\n#define A 2 // tune: 1 2\n#endif\n"
    assert Kernel(twice, "cpp").tunables() == ()


def test_tuned_changes_the_values_and_nothing_else() -> None:
    tuned = Kernel(SOURCE, "cpp").tuned({"TILE": 128, "SLOPE": "0.25f"})
    expected = SOURCE.replace("TILE 64", "TILE 128").replace("= -1.5f", "= 0.25f")
    assert tuned.source == expected


def test_tuned_names_the_tunables_there_are() -> None:
    with pytest.raises(ValueError, match=r"no tunable is called 'TILES'.*TILE, UNROLL, SLOPE"):
        Kernel(SOURCE, "cpp").tuned({"TILES": 1})


def test_tuned_lists_the_choices() -> None:
    with pytest.raises(ValueError, match="TILE cannot be 48; its choices are: 32, 64, 128"):
        Kernel(SOURCE, "cpp").tuned({"TILE": 48})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("int a; // x\nint b;", "int a;\n\n  int /* y */ b;"),
        ("int a = 1 ;", "int a=1;"),
        ("#define A 1 // note\nint b;", "#  define A 1\nint b;"),
        ("#define LONG a + \\\n  b\n", "#define LONG a + b\n"),
        ("int a; // tune: 1  2", "int a; //tune: 1,2"),
        ('auto s = R"(a)";', 'auto  s=R"(a)" ;'),
    ],
)
def test_layout_and_comments_make_no_new_kernel(one: str, other: str) -> None:
    assert digest(one) == digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("#define A (x)\n", "#define A(x)\n"),
        ("a + +b", "a ++b"),
        ("int a;", "inta;"),
        ('"// x"', '"// y"'),
        ("'a'", "'b'"),
        ('R"(/* a */)"', 'R"(/* b */)"'),
        ('R"x(a)")x"', 'R"x(a)"")x"'),
        ("int a; // tune: 1 2", "int a; // tune: 1 3"),
        ("#define A\nint b;", "#define A int b;"),
        ("#include <a//b.h>\n", "#include <a//c.h>\n"),
        ("x = 1'000;", "x = 1'001;"),
    ],
)
def test_what_means_something_else_is_another_kernel(one: str, other: str) -> None:
    assert digest(one) != digest(other)


def test_language_flags_and_header_are_part_of_the_digest() -> None:
    kernel = Kernel("int a;", "cpp")
    others = [Kernel("int a;", "cuda"), Kernel("int a;", "cpp", ("-O2",))]
    digests = {kernel.digest(), kernel.digest("// header"), *(k.digest() for k in others)}
    assert len(digests) == 4


@given(st.text(alphabet="ab1\"'/*\\\n#R()<>:= ", max_size=40))
def test_tokens_join_to_the_source(source: str) -> None:
    assert "".join(token.text for token in tokens(source)) == source


@given(st.lists(st.sampled_from(["a", "1.5e-3f", '"x"', "'c'", "<<", "(", "::", "return"])))
def test_a_comment_between_tokens_is_like_a_blank(words: list[str]) -> None:
    assert canonical(" ".join(words)) == canonical("/* // */".join(words)) == words


def test_a_comment_sign_in_a_string_is_no_comment() -> None:
    kinds = [token.kind for token in tokens('"/* no */" // yes')]
    assert kinds == [Kind.STRING, Kind.SPACE, Kind.COMMENT]
