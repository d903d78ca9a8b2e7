/* What of that which is typed comes before the judge. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/mem.h"
#include "sessions/sessions_internal.h"

/* What the judge takes of the processor's time. */
static uint64_t work_ns;
static uint64_t work_ns_per_byte;

/* In the place of the C library's: time is what the judge takes. */
int
clock_gettime(clockid_t clock_id, struct timespec *tp)
{
    (void)clock_id;
    tp->tv_sec = (time_t)(work_ns / 1000000000U);
    tp->tv_nsec = (long)(work_ns % 1000000000U);
    return 0;
}

static bool
ends_with(const char *text, const char *end)
{
    size_t n = strlen(text);
    size_t m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

/* A judge that forbids "touch" where a command may stand, and two lines; and takes odd quotes for
 * no script, nor a here-document without its end. */
enum sy_code
orch_judge_typed(struct orch_call *call, const char *line, bool *ret_is_open, struct sy_error *err)
{
    size_t quotes = 0;
    bool is_start = true;
    bool is_forbidden = false;

    (void)call;
    work_ns += strlen(line) * work_ns_per_byte;
    for (const char *s = line; *s != '\0'; s++) {
        quotes += *s == '"' ? 1 : 0;
        if (is_start && quotes % 2 == 0 && strncmp(s, "touch ", 6) == 0) {
            is_forbidden = true;
        }
        is_start = *s == ';' || *s == '\n' || (is_start && *s == ' ');
    }
    is_forbidden = is_forbidden || strstr(line, "one\ntwo") != NULL;
    *ret_is_open = quotes % 2 == 1 || (strstr(line, "<<") != NULL && !ends_with(line, "\nE"));
    return is_forbidden && !*ret_is_open ? sy_err_set(err, SY_E_DENIED, "not typed: forbidden")
                                         : SY_E_OK;
}

enum sy_code
orch_judge_pieces(struct orch_call *call, const char *text, size_t n, enum dialect_cut cut,
                  bool *ret_is_open, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf pieces = {.max = (size_t)LIMIT_TYPED_LINE * 2 + 2};

    assert_int_equal(dialect_pieces(&pieces, text, n, cut), SY_E_OK);
    return orch_judge_typed(call, buf_view(&pieces), ret_is_open, err);
}

static struct typed_reader
reader(void)
{
    static char somebody; /* the judge here does not look at it */
    struct typed_reader ret = {.call = (void *)&somebody};

    typed_modes(&ret.modes, -1);
    return ret;
}

/* How often it went on later, and how long it may take at once: one text is judged whole. */
static unsigned slices;
static uint64_t most_ns = (LIMIT_TYPED_SLICE_MS + 40) * 1000000ULL;

static enum sy_code
type(struct typed *t, const struct typed_reader *r, const char *text, struct sy_error *err)
{
    struct typed_work w = {.reader = *r};
    enum sy_code rc = SY_E_OK;

    do {
        const uint64_t began_ns = work_ns;

        rc = typed_follow(t, &w, text, strlen(text), err);
        slices += w.is_later ? 1 : 0;
        assert_true(work_ns - began_ns < most_ns);
    } while (rc == SY_E_OK && w.is_later);
    typed_work_fini(&w);
    return rc;
}

static void
expect(bool is_pipe, const struct typed_reader *r, const char *text, enum sy_code rc)
{
    struct typed t;
    struct sy_error err = {0};

    typed_init(&t, is_pipe);
    if (type(&t, r, text, &err) != rc) {
        print_error("'%s': %s\n", text, err.msg);
        fail();
    }
    typed_fini(&t);
}

static void
judges_what_the_end_of_input_submits(void **state)
{
    (void)state;
    struct typed_reader r = reader();

    expect(true, &r, "touch x", SY_E_OK);
    r.is_over = true;
    expect(true, &r, "touch x", SY_E_DENIED);
    expect(true, &r, "touch x\\", SY_E_DENIED);
    expect(true, &r, "echo y", SY_E_OK);
    expect(true, &r, ": \"a\n\"; touch x", SY_E_DENIED);
    expect(true, &r, "cat <<E; touch x", SY_E_DENIED);
    expect(true, &r, "cat <<E\nif true; then touch x", SY_E_DENIED);
}

static void
judges_what_stood_there_before_the_end(void **state)
{
    (void)state;
    struct typed_reader r = reader();
    struct typed t;

    typed_init(&t, true);
    assert_int_equal(type(&t, &r, "touch x", NULL), SY_E_OK);
    r.is_over = true;
    assert_int_equal(type(&t, &r, "", NULL), SY_E_DENIED);
    typed_fini(&t);
}

static void
judges_what_ctrl_d_hands_over_and_goes_on(void **state)
{
    (void)state;
    struct typed_reader r = reader();

    expect(false, &r, "touch x\004\004", SY_E_DENIED);
    expect(false, &r, "to\004uch x\n", SY_E_DENIED);
    expect(false, &r, "to\004\025uch x\n", SY_E_DENIED);
    expect(false, &r, "\004echo touch\004\n", SY_E_OK);
    r.modes.end = 'x';
    r.modes.is_common = false;
    expect(false, &r, "touch yx", SY_E_DENIED);
}

static void
follows_how_the_terminal_is_set(void **state)
{
    (void)state;
    struct typed_reader r = reader();

    r.modes.is_common = false;
    r.modes.kill = 'k';
    expect(false, &r, "\"ktouch x\n", SY_E_DENIED);
    r.modes.lowers = true;
    expect(false, &r, "TOUCH x\n", SY_E_DENIED);
    r.modes.ends_line[0] = 'y';
    expect(false, &r, "touch y", SY_E_DENIED);
}

static void
erases_no_more_than_any_program_does(void **state)
{
    (void)state;
    struct typed_reader r = reader();

    /* The words of terminals, of zsh and of fish. */
    expect(false, &r, "touch x;y\027\n", SY_E_DENIED);
    expect(false, &r, "touch x;y\027\027\027\n", SY_E_OK);
    /* It may come back. */
    expect(false, &r, "touch x\025\031\n", SY_E_DENIED);
    expect(false, &r, "touch x\025\037\n", SY_E_DENIED);
    expect(false, &r, "touch x\025\n\031\n", SY_E_OK);
    expect(false, &r, "touch x\025echo\n", SY_E_OK);
    /* The cursor may stand before all of it. */
    expect(false, &r, "touch x\001\025\n", SY_E_DENIED);
    expect(false, &r, "touch x\001\027\177\n", SY_E_DENIED);
    expect(false, &r, "touch x\033[H\025\n", SY_E_DENIED);
    expect(false, &r, "touch x\001\003echo\n", SY_E_OK);
}

static void
follows_what_the_terminal_keeps_from_an_editor(void **state)
{
    (void)state;
    struct typed_reader r = reader();

    r.modes.is_common = false;
    r.modes.drops_returns = true;
    expect(false, &r, "to\ruch x\n", SY_E_DENIED);
    r.modes.gone[0] = 'z';
    expect(false, &r, "tozuch x\n", SY_E_DENIED);
    r.modes.erase = 'y';
    expect(false, &r, "toayuch x\n", SY_E_DENIED);
    r.modes.word_erase = 'w';
    r.modes.kill = 'k';
    r.modes.next_literal = 'v';
    r.modes.signals[0] = 'i';
    expect(false, &r, "a bwwtouch x\n", SY_E_DENIED);
    expect(false, &r, "\"a bktouch x\n", SY_E_DENIED);
    expect(false, &r, "tovuch x\n", SY_E_DENIED);
    expect(false, &r, "#itouch x\n", SY_E_DENIED);
    r = reader();
    r.modes.is_common = false;
    r.modes.erases_bytes = true;
    expect(false, &r, "t\303\251\177\177ouch x\n", SY_E_DENIED);
    expect(false, &r, "echo x\n", SY_E_OK);
}

static void
follows_what_each_takes_for_a_word(void **state)
{
    (void)state;
    const struct typed_reader r = reader();

    expect(false, &r, ";touch x-y\027\027\n", SY_E_DENIED);
    expect(false, &r, ";touch x y; \027\027\027\n", SY_E_DENIED);
    expect(false, &r, ";touch x-\xC3\xA9\027\027\n", SY_E_DENIED);
    expect(false, &r, ";touch x\027\027\n", SY_E_OK);
    expect(false, &r, "touch\027\027\027\n", SY_E_OK);
}

static void
hides_nothing_behind_the_beginning_of_a_sequence(void **state)
{
    static const char *const heads[] = {"\033",   "\033[",   "\033[;",  "\033[1;", "\033O",
                                        "\033O1", "\033x",   "\0331",   "\03301",  "\033-1",
                                        "\0330z", "\033[A",  "\033OA",  "\033[3~", "\033[z",
                                        "\033;",  "\033[;;", "\033\033"};
    struct typed_reader r = reader();

    (void)state;
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        char text[64];

        (void)snprintf(text, sizeof(text), "%stouch x\n", heads[i]);
        expect(false, &r, text, SY_E_DENIED);
        (void)snprintf(text, sizeof(text), "%secho touch\n", heads[i]);
        expect(false, &r, text, SY_E_OK);
    }
    expect(false, &r, "# \033[;touch x", SY_E_OK);
    /* Alt-A of zsh runs the line; Up, which has that letter too, runs none. */
    expect(false, &r, "touch x\033a", SY_E_DENIED);
    expect(false, &r, "touch x\033A", SY_E_DENIED);
    expect(false, &r, "touch x\033[A\033OA\033[1;5A", SY_E_OK);
    expect(false, &r, "\030#touch x\n", SY_E_DENIED);
    expect(false, &r, "0\007touch x\n", SY_E_DENIED);
    expect(false, &r, "\026\027touch x\n", SY_E_DENIED);
    /* Typed in front of what stands there. */
    expect(false, &r, "!\002touch x\n", SY_E_DENIED);
    expect(false, &r, "y\033[Dtouch x\n", SY_E_DENIED);
    expect(false, &r, "\001x;touch x\n", SY_E_DENIED);
}

static char *
filled(const char *head, char c, size_t n, const char *tail)
{
    struct buf b = {.max = n + 100};

    assert_int_equal(buf_add(&b, head, strlen(head)), SY_E_OK);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(buf_add_char(&b, c), SY_E_OK);
    }
    assert_int_equal(buf_add(&b, tail, strlen(tail)), SY_E_OK);
    return buf_take(&b);
}

static void
refuses_a_line_that_it_can_not_hold(void **state)
{
    (void)state;
    struct typed_reader r = reader();
    struct typed t;
    struct sy_error err = {0};
    char *text = filled(": ", 'a', LIMIT_TYPED_LINE, "; touch x");

    typed_init(&t, false);
    assert_int_equal(type(&t, &r, text, &err), SY_E_OK);
    assert_int_equal(type(&t, &r, "\n", &err), SY_E_DENIED);
    assert_non_null(strstr(err.msg, "more than 65536 bytes"));
    /* Cleared, it is a line as any other. */
    assert_int_equal(type(&t, &r, "\025echo\n", &err), SY_E_OK);
    r.takes_long = true;
    assert_int_equal(type(&t, &r, text, &err), SY_E_OK);
    assert_int_equal(type(&t, &r, "\n", &err), SY_E_OK);
    typed_fini(&t);
    mem_free(text);
}

static void
judges_each_line_of_a_block_that_it_can_not_hold(void **state)
{
    (void)state;
    struct typed_reader r = reader();
    struct typed t;
    char *text = filled("", 'a', LIMIT_TYPED_LINE / 3, "\n");

    typed_init(&t, true);
    assert_int_equal(type(&t, &r, "echo \"\n", NULL), SY_E_OK);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(type(&t, &r, text, NULL), SY_E_OK);
    }
    assert_int_equal(type(&t, &r, "\"; touch x\n", NULL), SY_E_DENIED);
    assert_int_equal(type(&t, &r, "\"; if true; then touch x\n", NULL), SY_E_DENIED);
    assert_int_equal(type(&t, &r, "\"; echo x\n", NULL), SY_E_OK);
    typed_fini(&t);
    mem_free(text);
}

/* Each line reads again what is not whole, and each Ctrl-D. */
static void
works_for_the_judge_no_longer_than_it_may(void **state)
{
    (void)state;
    struct typed_reader r = reader();
    struct typed t;
    struct sy_error err = {0};
    char *text = filled("echo ", 'a', LIMIT_TYPED_LINE / 2, "");
    char *ends = filled("", '\004', 4096, "");

    typed_init(&t, true);
    work_ns = 0;
    work_ns_per_byte = 100;
    assert_int_equal(type(&t, &r, "echo \"\n", NULL), SY_E_OK);
    for (unsigned i = 0; i < 20000; i++) {
        assert_int_equal(type(&t, &r, "a\n", NULL), SY_E_OK);
    }
    assert_true(work_ns < LIMIT_TYPED_BLOCK_MS * 2000000ULL);
    assert_int_equal(type(&t, &r, "\"; touch x\n", NULL), SY_E_DENIED);
    typed_fini(&t);

    typed_init(&t, false);
    assert_int_equal(type(&t, &r, text, NULL), SY_E_OK);
    work_ns = 0;
    assert_int_equal(type(&t, &r, ends, &err), SY_E_DENIED);
    assert_non_null(strstr(err.msg, "more than 5000 ms"));
    assert_true(work_ns < LIMIT_TYPED_MS * 2000000ULL);
    r.takes_long = true;
    assert_int_equal(type(&t, &r, ends, &err), SY_E_OK);
    r.takes_long = false;
    /* Of what was refused nothing stands there. */
    assert_int_equal(type(&t, &r, "\004", NULL), SY_E_OK);
    typed_fini(&t);
    work_ns_per_byte = 0;
    mem_free(text);
    mem_free(ends);
}

/* Nothing but the line that ends it makes a here-document whole. */
static void
reads_a_here_document_once(void **state)
{
    (void)state;
    static const char *const heads[] = {"cat <<E\n", "cat <<-'E' | wc\n", "cat << \"E\">x\n",
                                        "cat <<\\E; ls\n", "cat >x <<E&\n"};
    struct typed_reader r = reader();
    struct typed t;

    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        typed_init(&t, true);
        assert_int_equal(type(&t, &r, heads[i], NULL), SY_E_OK);
        work_ns = 0;
        work_ns_per_byte = 1000;
        for (int line = 0; line < 5000; line++) {
            assert_int_equal(type(&t, &r, "some text\n", NULL), SY_E_OK);
        }
        /* Each line once, and not the block with it. */
        assert_true(work_ns == 5000ULL * strlen("some text") * work_ns_per_byte);
        work_ns_per_byte = 0;
        assert_int_equal(type(&t, &r, "one\ntwo\n", NULL), SY_E_OK);
        assert_int_equal(type(&t, &r, "E\n", NULL), SY_E_DENIED);
        assert_int_equal(type(&t, &r, "\t E \n", NULL), SY_E_OK);
        typed_fini(&t);
    }
}

static void
judges_what_comes_behind_a_here_document(void **state)
{
    (void)state;
    struct typed_reader r = reader();
    struct typed t;

    typed_init(&t, true);
    assert_int_equal(type(&t, &r, "cat <<E\na \"b\nE\n", NULL), SY_E_OK);
    assert_int_equal(type(&t, &r, "c\"\n\nE\nls \"\n", NULL), SY_E_OK);
    assert_int_equal(type(&t, &r, "\"; touch x\n", NULL), SY_E_DENIED);
    typed_fini(&t);
    /* Not the word that it seems, several of them, and none that is plain. */
    expect(true, &r, "cat <<EF\none\ntwo\nE\n", SY_E_DENIED);
    expect(true, &r, "cat <<E <<F\none\ntwo\nE\n", SY_E_DENIED);
    expect(true, &r, "cat <<$E\none\ntwo\nE\n", SY_E_DENIED);
    expect(true, &r, "cat <<'E\none\ntwo\nE\n", SY_E_DENIED);
    expect(true, &r, "cat <<\none\ntwo\nE\n", SY_E_DENIED);
    expect(true, &r, "cat <<E\none\ntwo\nE", SY_E_OK);
}

static void
judges_from_each_place_where_a_write_began(void **state)
{
    (void)state;
    struct typed_reader r = reader();
    struct typed t;

    typed_init(&t, false);
    for (int i = 0; i < 40; i++) {
        assert_int_equal(type(&t, &r, "a", NULL), SY_E_OK);
    }
    assert_int_equal(type(&t, &r, "to", NULL), SY_E_OK);
    assert_int_equal(type(&t, &r, "uch x", NULL), SY_E_OK);
    for (int i = 0; i < 40; i++) {
        assert_int_equal(type(&t, &r, "a", NULL), SY_E_OK);
    }
    assert_int_equal(type(&t, &r, "\n", NULL), SY_E_DENIED);
    /* What is erased begins nowhere. */
    assert_int_equal(type(&t, &r, "\177\177\177\177\025ls", NULL), SY_E_OK);
    assert_int_equal(type(&t, &r, "\n", NULL), SY_E_OK);
    assert_true(typed_is_idle(&t));
    typed_fini(&t);
}

/* Keys that move may be thousands, and each begins something: others are served meanwhile. */
static void
judges_from_many_places_in_slices(void **state)
{
    (void)state;
    struct typed_reader r = reader();
    struct typed t;

    typed_init(&t, true);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(type(&t, &r, "a", NULL), SY_E_OK);
    }
    assert_int_equal(type(&t, &r, ";touch x", NULL), SY_E_OK);
    slices = 0;
    work_ns_per_byte = 1000;
    assert_int_equal(type(&t, &r, "\n", NULL), SY_E_DENIED);
    assert_int_equal(slices, 0); /* as a whole it is refused already */
    typed_fini(&t);
    work_ns_per_byte = 0;
    typed_init(&t, true);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(type(&t, &r, "a", NULL), SY_E_OK);
    }
    assert_int_equal(type(&t, &r, "touch x", NULL), SY_E_OK);
    work_ns_per_byte = 1000;
    assert_int_equal(type(&t, &r, "\n", NULL), SY_E_DENIED);
    assert_true(slices > 10);
    typed_fini(&t);
    /* And no longer than all that is typed at once may take. */
    work_ns_per_byte = 0;
    typed_init(&t, true);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(type(&t, &r, "a", NULL), SY_E_OK);
    }
    work_ns = 0;
    work_ns_per_byte = 20000;
    assert_int_equal(type(&t, &r, "\n", NULL), SY_E_DENIED);
    assert_true(work_ns < LIMIT_TYPED_MS * 1100000ULL);
    work_ns_per_byte = 0;
    typed_fini(&t);
}

static void
parts_no_word_where_quotes_stand_in_it(void **state)
{
    (void)state;
    struct typed_reader r = reader();
    struct typed t;

    typed_init(&t, false);
    most_ns *= 100;
    work_ns_per_byte = 50000000;
    assert_int_equal(type(&t, &r, "echo \"\na\nb\nc\n", NULL), SY_E_OK);
    work_ns_per_byte = 0;
    most_ns /= 100;
    assert_int_equal(type(&t, &r, "t\"\"ouch x \"\n", NULL), SY_E_DENIED);
    assert_int_equal(type(&t, &r, "t'o'uc\\h x \"\n", NULL), SY_E_DENIED);
    assert_int_equal(type(&t, &r, "echo x\n", NULL), SY_E_OK);
    assert_false(typed_is_idle(&t));
    /* At the shell's next prompt all of that is over, but for the line that stands there. */
    assert_int_equal(type(&t, &r, "touch", NULL), SY_E_OK);
    typed_begin_anew(&t);
    assert_int_equal(type(&t, &r, " x\n", NULL), SY_E_DENIED);
    assert_int_equal(type(&t, &r, "\025\r", NULL), SY_E_OK);
    assert_true(typed_is_idle(&t));
    typed_fini(&t);
}

static void
goes_on_later_where_the_judge_takes_long(void **state)
{
    (void)state;
    struct typed_reader r = reader();
    struct typed t;
    struct typed_work w = {.reader = r};

    typed_init(&t, false);
    work_ns_per_byte = 1000000;
    slices = 0;
    assert_int_equal(type(&t, &r, "echo\necho\necho\necho\necho\necho\n", NULL), SY_E_OK);
    assert_in_range(slices, 1, 3);
    /* Each way by itself, and the end. */
    slices = 0;
    assert_int_equal(type(&t, &r, "a\033[D\033[Cb12345678\rtouch x\n", NULL), SY_E_DENIED);
    assert_in_range(slices, 4, 10);
    r.is_over = true;
    slices = 0;
    assert_int_equal(type(&t, &r, "a\033[D\033[Cb12345678", NULL), SY_E_OK);
    assert_in_range(slices, 4, 10);
    assert_int_equal(type(&t, &r, "\025echo\r; touch x", NULL), SY_E_DENIED);
    /* Until it is over nothing stands there. */
    r.is_over = false;
    assert_int_equal(type(&t, &r, "\r", NULL), SY_E_OK);
    assert_int_equal(typed_follow(&t, &w, "echo 45678\necho", 15, NULL), SY_E_OK);
    assert_true(w.is_later);
    assert_true(typed_is_idle(&t));
    assert_int_equal(typed_follow(&t, &w, "echo 45678\necho", 15, NULL), SY_E_OK);
    assert_false(w.is_later);
    assert_int_equal(typed_length(&t), 4);
    typed_work_fini(&w);
    typed_fini(&t);
    work_ns_per_byte = 0;
}

static void
follows_one_way_again_behind_a_line_that_had_several(void **state)
{
    (void)state;
    struct typed_reader r = reader();
    struct typed t;

    typed_init(&t, false);
    assert_int_equal(type(&t, &r, "a\033[D\033[Cb", NULL), SY_E_OK);
    assert_true(t.n > 1);
    assert_int_equal(type(&t, &r, "\r", NULL), SY_E_OK);
    assert_int_equal(t.n, 1);
    assert_int_equal(typed_length(&t), 0);
    assert_true(typed_is_idle(&t));
    assert_int_equal(type(&t, &r, "echo \"", NULL), SY_E_OK);
    assert_false(typed_is_idle(&t));
    assert_int_equal(type(&t, &r, "\r", NULL), SY_E_OK);
    assert_false(typed_is_idle(&t));
    assert_int_equal(type(&t, &r, "\"\r", NULL), SY_E_OK);
    assert_true(typed_is_idle(&t));
    typed_fini(&t);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(judges_what_the_end_of_input_submits),
        cmocka_unit_test(judges_what_stood_there_before_the_end),
        cmocka_unit_test(judges_what_ctrl_d_hands_over_and_goes_on),
        cmocka_unit_test(follows_how_the_terminal_is_set),
        cmocka_unit_test(erases_no_more_than_any_program_does),
        cmocka_unit_test(follows_what_the_terminal_keeps_from_an_editor),
        cmocka_unit_test(follows_what_each_takes_for_a_word),
        cmocka_unit_test(hides_nothing_behind_the_beginning_of_a_sequence),
        cmocka_unit_test(refuses_a_line_that_it_can_not_hold),
        cmocka_unit_test(works_for_the_judge_no_longer_than_it_may),
        cmocka_unit_test(judges_each_line_of_a_block_that_it_can_not_hold),
        cmocka_unit_test(reads_a_here_document_once),
        cmocka_unit_test(judges_what_comes_behind_a_here_document),
        cmocka_unit_test(judges_from_each_place_where_a_write_began),
        cmocka_unit_test(judges_from_many_places_in_slices),
        cmocka_unit_test(parts_no_word_where_quotes_stand_in_it),
        cmocka_unit_test(goes_on_later_where_the_judge_takes_long),
        cmocka_unit_test(follows_one_way_again_behind_a_line_that_had_several),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
