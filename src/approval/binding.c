#include <stdint.h>
#include <string.h>

#include <sodium/crypto_hash_sha256.h>

#include "approval/binding.h"
#include "sandbox/sandbox.h"

_Static_assert(BINDING_SIZE == crypto_hash_sha256_BYTES, "digests are SHA-256");

/* The forms of what is hashed: to be changed with what stands in them. */
#define DIGEST_FORM "shellyard approval 2"
#define KEY_FORM    "shellyard approval key 2"
#define FILE_FORM   "shellyard approval file 1"
#define POLICY_FORM "shellyard approval policy 1"

static void
add(crypto_hash_sha256_state *h, const void *bytes, size_t n)
{
    unsigned char len[8];

    for (size_t i = 0; i < sizeof(len); i++) {
        len[i] = (unsigned char)((uint64_t)n >> (8 * i));
    }
    (void)crypto_hash_sha256_update(h, len, sizeof(len));
    (void)crypto_hash_sha256_update(h, bytes, n);
}

static void
add_text(crypto_hash_sha256_state *h, const char *text)
{
    add(h, text != NULL ? text : "", text != NULL ? strlen(text) : 0);
}

static void
add_list(crypto_hash_sha256_state *h, char *const *list)
{
    unsigned char n[4] = {0};
    uint32_t count = 0;

    for (; list != NULL && list[count] != NULL; count++) {
    }
    for (size_t i = 0; i < sizeof(n); i++) {
        n[i] = (unsigned char)(count >> (8 * i));
    }
    add(h, n, sizeof(n));
    for (uint32_t i = 0; i < count; i++) {
        add_text(h, list[i]);
    }
}

static void
add_flag(crypto_hash_sha256_state *h, bool flag)
{
    const unsigned char byte = flag ? 1 : 0;

    add(h, &byte, 1);
}

static void
add_policy(crypto_hash_sha256_state *h, const struct sandbox_policy *p)
{
    add_text(h, sandbox_mode_name(p->mode));
    add_text(h, p->cwd);
    add_list(h, strv_view(&p->writable_roots));
    add_list(h, strv_view(&p->network_allow));
    add_list(h, strv_view(&p->deny_read));
    add_list(h, strv_view(&p->allow_read));
    add_list(h, strv_view(&p->deny_homes));
    add_list(h, strv_view(&p->own_dirs));
    add_flag(h, p->denies_system);
    add_flag(h, p->closes_devices);
    add_flag(h, p->runs_as_self);
    add_flag(h, p->has_network);
    add_flag(h, p->excludes_tmpdir);
    add_flag(h, p->excludes_slash_tmp);
    add_flag(h, p->protects);
}

static void
add_same(crypto_hash_sha256_state *h, const char *form, const struct question *q)
{
    (void)crypto_hash_sha256_init(h);
    add_text(h, form);
    add_text(h, q->tool);
    add_list(h, q->argv);
    add_text(h, q->cwd);
    add_flag(h, q->leaves_sandbox);
    add_text(h, q->input);
}

/* What would become possible, as it is shown: the words of the request may lead elsewhere by then.
 */
static void
add_access(crypto_hash_sha256_state *h, const struct question *q)
{
    if (q->access != NULL) {
        add_text(h, q->access);
    }
}

void
binding_digest(unsigned char ret[BINDING_SIZE], const struct question *q)
{
    crypto_hash_sha256_state h;

    add_same(&h, DIGEST_FORM, q);
    add_list(&h, q->env);
    add_policy(&h, q->sandbox);
    add_access(&h, q);
    (void)crypto_hash_sha256_final(&h, ret);
}

void
binding_policy(char ret[BINDING_HEX], const struct sandbox_policy *p)
{
    static const char digits[] = "0123456789abcdef";
    crypto_hash_sha256_state h;
    unsigned char sum[BINDING_SIZE];

    (void)crypto_hash_sha256_init(&h);
    add_text(&h, POLICY_FORM);
    add_policy(&h, p);
    (void)crypto_hash_sha256_final(&h, sum);
    for (size_t i = 0; i < BINDING_SIZE; i++) {
        ret[2 * i] = digits[sum[i] >> 4];
        ret[2 * i + 1] = digits[sum[i] & 15];
    }
    ret[BINDING_HEX - 1] = '\0';
}

size_t
binding_keys(const struct question *q)
{
    return q->keys != NULL && q->keys->n > 0 ? q->keys->n : 1;
}

void
binding_key(unsigned char ret[BINDING_SIZE], const struct question *q, size_t i)
{
    crypto_hash_sha256_state h;

    if (q->keys != NULL && q->keys->n > 0) {
        (void)crypto_hash_sha256_init(&h);
        add_text(&h, FILE_FORM);
        add_text(&h, q->keys->v[i]);
        add_flag(&h, q->leaves_sandbox);
        add_access(&h, q);
    } else {
        add_same(&h, KEY_FORM, q);
        add_list(&h, q->env);
    }
    (void)crypto_hash_sha256_final(&h, ret);
}
