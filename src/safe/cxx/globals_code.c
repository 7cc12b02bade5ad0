/* SPDX-License-Identifier: MIT */
#include "safe/cxx/globals_code.h"

#include <stddef.h>
#include <string.h>

#include "safe/base/bytes.h"

/* Code being compared. */
struct code {
	const uint8_t *bytes;
	size_t at;
	uint64_t avma; /* of bytes */
};

/* Passes the @n bytes @pattern if they come next. */
static bool pass(struct code *c, const char *pattern, size_t n)
{
	if (FATHOM_GLOBALS_CODE - c->at < n || memcmp(c->bytes + c->at, pattern, n) != 0)
		return false;
	c->at += n;
	return true;
}

#define PASS(c, pattern) pass((c), (pattern), sizeof(pattern) - 1)

/* Takes a signed number of 4 bytes. */
static bool take_i32(struct code *c, int64_t *ret)
{
	if (FATHOM_GLOBALS_CODE - c->at < 4)
		return false;
	*ret = (int32_t)load_u32(c->bytes + c->at, false);
	c->at += 4;
	return true;
}

/* Takes a displacement of 4 bytes from the end of it; returns the address. */
static bool take_relative(struct code *c, uint64_t *ret)
{
	int64_t distance;

	if (!take_i32(c, &distance))
		return false;
	*ret = c->avma + c->at + (uint64_t)distance;
	return true;
}

/* Takes the number that is added to rax; none is 0. */
static bool take_added(struct code *c, int64_t *ret)
{
	*ret = 0;
	if (PASS(c, "\x48\x05") || PASS(c, "\x48\x8d\x80")) /* add; lea disp(%rax), %rax */
		return take_i32(c, ret);
	if (PASS(c, "\x48\x83\xc0") || PASS(c, "\x48\x8d\x40")) { /* the same with a byte */
		if (c->at == FATHOM_GLOBALS_CODE)
			return false;
		*ret = (int8_t)c->bytes[c->at++];
	}
	return true;
}

/* Takes the call of __tls_get_addr(), the GOT pair of which is at *@ret. */
static bool take_general(struct code *c, uint64_t *ret)
{
	uint64_t callee;

	(void)PASS(c, "\x66");
	if (!PASS(c, "\x48\x8d\x3d") || !take_relative(c, ret))
		return false;
	return (PASS(c, "\xe8") || PASS(c, "\x66\x66\x48\xe8") || PASS(c, "\xff\x15") ||
		PASS(c, "\x66\x48\xff\x15")) &&
	       take_relative(c, &callee);
}

/* Takes the start of the thread's control block. */
static bool take_fs(struct code *c)
{
	(void)(PASS(c, "\x66\x66\x66") || PASS(c, "\x66\x66"));
	return PASS(c, "\x64\x48\x8b\x04\x25\0\0\0\0");
}

/* Passes what a function begins with. */
static void pass_prologue(struct code *c)
{
	(void)PASS(c, "\xf3\x0f\x1e\xfa"); /* endbr64 */
	(void)(PASS(c, "\x48\x83\xec\x08") || PASS(c, "\x50") || PASS(c, "\x55\x48\x89\xe5"));
}

/* Passes what a function ends with, up to the return. */
static bool pass_epilogue(struct code *c)
{
	(void)(PASS(c, "\x48\x83\xc4\x08") || PASS(c, "\x59") || PASS(c, "\x5d"));
	return PASS(c, "\xc3");
}

bool fathom_globals_by_tls(const uint8_t code[FATHOM_GLOBALS_CODE], uint64_t avma,
			   struct fathom_globals_tls *ret)
{
	struct code c = { .bytes = code, .avma = avma };
	size_t body;

	pass_prologue(&c);
	body = c.at;
	if (!take_general(&c, &ret->pair)) {
		ret->pair = 0;
		c.at = body;
		if (!take_fs(&c))
			return false;
	}
	/* Compilers may restore the stack pointer before or after the addition. */
	(void)PASS(&c, "\x48\x83\xc4\x08");
	return take_added(&c, &ret->added) && pass_epilogue(&c);
}

bool fathom_globals_by_key(const uint8_t code[FATHOM_GLOBALS_CODE], uint64_t avma,
			   uint64_t *ret_key, uint64_t *ret_stub)
{
	struct code c = { .bytes = code, .avma = avma };
	uint64_t unused;

	(void)PASS(&c, "\xf3\x0f\x1e\xfa");
	/* push %rax; lea once, %rdi; lea function, %rsi; call pthread_once; test; jne; mov key */
	if (!PASS(&c, "\x50") || !PASS(&c, "\x48\x8d\x3d") || !take_relative(&c, &unused) ||
	    !PASS(&c, "\x48\x8d\x35") || !take_relative(&c, &unused) || !PASS(&c, "\xe8") ||
	    !take_relative(&c, &unused) || !PASS(&c, "\x85\xc0\x75"))
		return false;
	c.at++;
	return PASS(&c, "\x8b\x3d") && take_relative(&c, ret_key) && PASS(&c, "\x58\xe9") &&
	       take_relative(&c, ret_stub);
}

bool fathom_globals_stub(const uint8_t code[FATHOM_GLOBALS_CODE], uint64_t avma, uint64_t *ret_slot)
{
	struct code c = { .bytes = code, .avma = avma };

	(void)PASS(&c, "\xf3\x0f\x1e\xfa");
	(void)PASS(&c, "\xf2");
	return PASS(&c, "\xff\x25") && take_relative(&c, ret_slot);
}
