#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fault.h"
#include "terminal/key.h"

static const struct key_modes plain;
static const struct key_modes application = {.app_cursor = true, .app_keypad = true};
static const struct key_modes other = {.other_keys = true};

/* Two keys of one row send the same. */
struct row {
    const char *names;
    const char *bytes;
};

static void
check_name(const char *name, const char *bytes, size_t n, const struct key_modes *modes)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 64};
    struct sy_error err = {0};

    if (key_encode(&out, name, modes, &err) != SY_E_OK) {
        fail_msg("%s: %s", name, err.msg);
    }
    if (out.len != n || memcmp(buf_view(&out), bytes, n) != 0) {
        fail_msg("%s sends another thing", name);
    }
}

static void
check_rows(const struct row *rows, size_t count, const struct key_modes *modes)
{
    for (size_t i = 0; i < count; i++) {
        char name[64];

        for (const char *s = rows[i].names; *s != '\0';) {
            size_t n = strcspn(s, " ");

            memcpy(name, s, n);
            name[n] = '\0';
            check_name(name, rows[i].bytes, strlen(rows[i].bytes), modes);
            s += n + (s[n] == ' ' ? 1 : 0);
        }
    }
}

#define ROWS(r) (r), sizeof(r) / sizeof((r)[0])

static void
knows_the_names_of_tmux_and_their_aliases(void **state)
{
    static const struct row rows[] = {
        {"Enter Return enter CR <CR> KPEnter",   "\r"      },
        {"Tab ^I C-i",                           "\t"      },
        {"BTab BackTab S-Tab Shift+Tab <S-Tab>", "\x1b[Z"  },
        {"Escape Esc esc <Esc> ^[ C-[ C-3",      "\x1b"    },
        {"Space Spacebar",                       " "       },
        {"BSpace Backspace BS <BS> C-?",         "\x7f"    },
        {"Delete DC Del <Del>",                  "\x1b[3~" },
        {"Insert IC Ins",                        "\x1b[2~" },
        {"PageUp PPage PgUp page_up",            "\x1b[5~" },
        {"PageDown NPage PgDn",                  "\x1b[6~" },
        {"Up ArrowUp up <Up>",                   "\x1b[A"  },
        {"Down ArrowDown",                       "\x1b[B"  },
        {"Right ArrowRight",                     "\x1b[C"  },
        {"Left ArrowLeft",                       "\x1b[D"  },
        {"Home",                                 "\x1b[H"  },
        {"End",                                  "\x1b[F"  },
        {"F1",                                   "\x1bOP"  },
        {"F4",                                   "\x1bOS"  },
        {"F5",                                   "\x1b[15~"},
        {"F6",                                   "\x1b[17~"},
        {"F10",                                  "\x1b[21~"},
        {"F11",                                  "\x1b[23~"},
        {"F12 f12",                              "\x1b[24~"},
        {"KP5",                                  "5"       },
        {"KP+",                                  "+"       },
        {"a",                                    "a"       },
        {"A S-a S-A",                            "A"       },
        {"- Minus",                              "-"       },
        {"+ Plus",                               "+"       },
        {"^",                                    "^"       },
        {"< <lt>",                               "<"       },
        {"\xC3\xA9",                             "\xC3\xA9"},
    };

    (void)state;
    check_rows(ROWS(rows), &plain);
}

static void
encodes_modifiers_as_xterm_does(void **state)
{
    static const struct row rows[] = {
        {"C-c ^c ^C Ctrl+C ctrl-c <C-c> Control-c", "\x03"      },
        {"C-a",                                     "\x01"      },
        {"C-z",                                     "\x1a"      },
        {"C-\\ C-4",                                "\x1c"      },
        {"C-] C-5",                                 "\x1d"      },
        {"C-^ C-6",                                 "\x1e"      },
        {"C-_ C-/ C-- C-7",                         "\x1f"      },
        {"C-8",                                     "\x7f"      },
        {"M-a Alt+a meta-a <A-a> opt+a",            "\033a"     },
        {"M-A M-S-a",                               "\033A"     },
        {"C-M-a M-C-a Ctrl+Alt+a",                  "\x1b\x01"  },
        {"M-Enter",                                 "\x1b\r"    },
        {"M-Escape",                                "\x1b\x1b"  },
        {"M-BSpace",                                "\x1b\x7f"  },
        {"S-Up",                                    "\x1b[1;2A" },
        {"M-Up",                                    "\x1b[1;3A" },
        {"C-Up Ctrl+ArrowUp <C-Up>",                "\x1b[1;5A" },
        {"C-M-S-Left",                              "\x1b[1;8D" },
        {"C-Home",                                  "\x1b[1;5H" },
        {"S-F1",                                    "\x1b[1;2P" },
        {"C-F5",                                    "\x1b[15;5~"},
        {"S-Delete",                                "\x1b[3;2~" },
        {"C-PageUp C-PPage",                        "\x1b[5;5~" },
    };

    (void)state;
    check_rows(ROWS(rows), &plain);
    check_name("C-Space", "", 1, &plain);
    check_name("C-@", "", 1, &plain);
    check_name("^2", "", 1, &plain);
}

static void
follows_what_the_program_asked_for(void **state)
{
    static const struct row app[] = {
        {"Up",      "\x1bOA"   },
        {"Home",    "\x1bOH"   },
        {"End",     "\x1bOF"   },
        {"C-Up",    "\x1b[1;5A"},
        {"KP5",     "\x1bOu"   },
        {"KPEnter", "\x1bOM"   },
        {"BTab",    "\x1b[Z"   },
        {"F1",      "\x1bOP"   },
    };
    static const struct row others[] = {
        {"C-Enter", "\x1b[27;5;13~"},
        {"S-Enter", "\x1b[27;2;13~"},
        {"C-S-c",   "\x1b[27;6;99~"},
        {"C-Tab",   "\x1b[27;5;9~" },
        {"C-1",     "\x1b[27;5;49~"},
        {"C-c",     "\x03"         },
    };

    (void)state;
    check_rows(ROWS(app), &application);
    check_rows(ROWS(others), &other);
}

static void
names_the_nearest_of_an_unknown_key_and_types_nothing(void **state)
{
    static const struct {
        const char *name;
        const char *words;
    } rows[] = {
        {"Entr",         "did you mean 'Enter'"                  },
        {"enterr",       "did you mean 'Enter'"                  },
        {"C-Entr",       "did you mean 'Enter'"                  },
        {"PageUpp",      "did you mean 'PageUp'"                 },
        {"F13",          "did you mean 'F1"                      },
        {"hello",        "keys are Enter"                        },
        {"echo hi",      "keys are Enter"                        },
        {"",             "keys are Enter"                        },
        {"C-",           "no key 'C-': a modifier stands"        },
        {"C-M-",         "no key 'M-': a modifier stands"        },
        {"Ctrl",         "no key 'Ctrl': a modifier stands"      },
        {"Cmd-c",        "no key 'Cmd-c'; did you mean 'C-c'?"   },
        {"Super+x",      "did you mean 'M-x'?"                   },
        {"kp_enter",     "did you mean 'KPEnter'?"               },
        {"KP_Enter",     "did you mean 'KPEnter'?"               },
        {"NumpadEnter",  "did you mean 'KPEnter'?"               },
        {"Num5",         "did you mean 'KP5'?"                   },
        {"kp_5",         "did you mean 'KP5'?"                   },
        {"Num",          "keys are Enter"                        },
        {"\x1b[A",       "no key '?[A'"                          },
        {"\n",           "no key '\\n'; did you mean 'Enter'?"   },
        {"\r\n",         "no key '\\r\\n'; did you mean 'Enter'?"},
        {"\t",           "no key '\\t'; did you mean 'Tab'?"     },
        {"\x1b",         "no key '\\x1b'; did you mean 'Escape'?"},
        {"C-\x7f",       "no key '\\x7f'; did you mean 'BSpace'?"},
        {"\xE2\x80\x8B", "no key"                                },
        {"\xff",         "no key"                                },
        {"C-S-c",        "another key"                           },
        {"C-Enter",      "another key"                           },
        {"S-1",          "name the character itself"             },
        {"C-1",          "it has no code"                        },
        {"C-\xC3\xA9",   "it has no code"                        },
        {"C-KP1",        "no modifier"                           },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SY_AUTO(buf_fini) struct buf out = {.max = 64};
        struct sy_error err = {0};

        assert_int_equal(key_encode(&out, rows[i].name, &plain, &err), SY_E_ARG);
        if (strstr(err.msg, rows[i].words) == NULL) {
            fail_msg("%s: %s", rows[i].name, err.msg);
        }
        assert_int_equal(out.len, 0);
    }
}

static void
check_paste(const char *text, const char *bytes, bool is_bracketed)
{
    struct key_modes modes = {.bracketed_paste = is_bracketed};
    SY_AUTO(buf_fini) struct buf out = {.max = 256};

    assert_int_equal(key_paste(&out, text, strlen(text), &modes), SY_E_OK);
    assert_string_equal(buf_view(&out), bytes);
}

static void
a_pasted_text_stays_in_its_brackets(void **state)
{
    (void)state;
    check_paste("a\nb\r\nc", "a\rb\rc", false);
    check_paste("a\nb", "\x1b[200~a\nb\x1b[201~", true);
    check_paste("", "\x1b[200~\x1b[201~", true);
    check_paste("a\x1b[201~rm\n", "\x1b[200~arm\n\x1b[201~", true);
    check_paste("\x1b[2\x1b[201~01~x", "\x1b[200~x\x1b[201~", true);
    check_paste("\x1b[\x1b[201~201~\x1b[201~x", "\x1b[200~x\x1b[201~", true);
}

static void
adds_all_or_nothing(void **state)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 4};
    struct key_modes modes = {.bracketed_paste = true};
    struct sy_error err = {0};

    (void)state;
    assert_int_equal(buf_add_str(&out, "ab"), SY_E_OK);
    assert_int_equal(key_encode(&out, "Up", &plain, &err), SY_E_LIMIT);
    assert_int_equal(key_paste(&out, "xyz", 3, &plain), SY_E_LIMIT);
    assert_int_equal(key_paste(&out, "x", 1, &modes), SY_E_LIMIT);
    assert_string_equal(buf_view(&out), "ab");
}

static enum sy_code
body(void *arg)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 256};
    struct key_modes modes = {.bracketed_paste = true};
    enum sy_code rc = key_encode(&out, "C-M-a", &plain, NULL);

    (void)arg;
    return rc != SY_E_OK ? rc : key_paste(&out, "some text to paste", 18, &modes);
}

static void
survives_each_failed_allocation(void **state)
{
    (void)state;
    fault_run(body, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_the_names_of_tmux_and_their_aliases),
        cmocka_unit_test(encodes_modifiers_as_xterm_does),
        cmocka_unit_test(follows_what_the_program_asked_for),
        cmocka_unit_test(names_the_nearest_of_an_unknown_key_and_types_nothing),
        cmocka_unit_test(a_pasted_text_stays_in_its_brackets),
        cmocka_unit_test(adds_all_or_nothing),
        cmocka_unit_test(survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
