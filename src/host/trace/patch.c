/* SPDX-License-Identifier: MIT */
#include "host/trace/patch.h"

#include <string.h>

#include "host/code/x86_64/x86_instructions.h"

enum { LONG_SIZE = FATHOM_X86_BRANCH_SIZE, JUMP_SIZE = FATHOM_X86_SHORT_SIZE };

/* Bytes of a stub in the prefix: call of the hook, jump after the slot. */
#define STUB (LONG_SIZE + JUMP_SIZE)

/* Bytes of a change, at most. */
enum { PIECE = 64 };

/* An XRay sled at a return: its first byte is the return itself (LLVM, XRay). */
#define SLED_RETURN_SIZE (LONG_SIZE + 1)

/* Returns whether the slot is too short for a call, and leads to a stub in the prefix. */
static bool has_stub(const struct fathom_site *site)
{
	return site->size < LONG_SIZE;
}

static uint64_t prefix_of(const struct fathom_site *site)
{
	return site->function - site->prefix_size;
}

bool fathom_patch_is_clean(const struct fathom_site *site, struct fathom_text_memory *m)
{
	return fathom_text_holds(m, site->address, site->bytes, site->size) &&
	       (!has_stub(site) ||
		fathom_text_holds(m, prefix_of(site), site->prefix, site->prefix_size));
}

/* Writes @bytes unless they are there; returns whether they were not. */
static bool heal(struct fathom_text_memory *m, uint64_t avma, const uint8_t *bytes, size_t size)
{
	return !fathom_text_holds(m, avma, bytes, size) && m->write(m, avma, bytes, size);
}

bool fathom_patch_heal(const struct fathom_site *site, struct fathom_text_memory *m)
{
	const bool was_changed =
		has_stub(site) && heal(m, prefix_of(site), site->prefix, site->prefix_size);

	return heal(m, site->address, site->bytes, site->size) || was_changed;
}

/* A stub in the prefix, and a slot of two bytes that leads to it. */
static enum fathom_patch_refusal by_prefix(const struct fathom_site *site, uint64_t hook,
					   struct fathom_text_plan *plan, uint64_t *ret_return)
{
	const uint64_t at = prefix_of(site);
	uint8_t stub[STUB];
	uint8_t jump[JUMP_SIZE];

	if (site->size < JUMP_SIZE || site->prefix_size < STUB ||
	    !fathom_x86_put_short_jump(site->address, at, jump) ||
	    !fathom_x86_put_short_jump(at + LONG_SIZE, site->address + JUMP_SIZE, stub + LONG_SIZE))
		return FATHOM_PATCH_NO_ROOM;
	if (!fathom_x86_put_call(at, hook, stub))
		return FATHOM_PATCH_TOO_FAR;
	*ret_return = at + LONG_SIZE;
	return fathom_text_plan_add(plan, at, site->prefix, stub, sizeof stub, 0) &&
			       fathom_text_plan_add(plan, site->address, site->bytes, jump,
						    sizeof jump, 0)
		       ? FATHOM_PATCH_DONE
		       : FATHOM_PATCH_NO_MEMORY;
}

enum fathom_patch_refusal fathom_patch_site(const struct fathom_site *site, uint64_t hook,
					    struct fathom_text_plan *plan, uint64_t *ret_return)
{
	const bool is_return =
		site->content == FATHOM_SITE_SLED && site->place == FATHOM_SITE_RETURN;
	uint8_t code[PIECE];

	if (has_stub(site))
		return by_prefix(site, hook, plan, ret_return);
	if (is_return && site->size < SLED_RETURN_SIZE)
		return FATHOM_PATCH_NO_ROOM;
	if (!fathom_x86_put_call(site->address, hook, code))
		return FATHOM_PATCH_TOO_FAR;
	memset(code + LONG_SIZE, FATHOM_X86_NOP, sizeof code - LONG_SIZE);
	if (is_return)
		code[LONG_SIZE] = FATHOM_X86_RET;
	for (size_t at = 0, n; at < site->size; at += n) {
		n = site->size - at < sizeof code ? site->size - at : sizeof code;
		if (!fathom_text_plan_add(plan, site->address + at, site->bytes + at, code, n, 0))
			return FATHOM_PATCH_NO_MEMORY;
		memset(code, FATHOM_X86_NOP, sizeof code);
	}
	*ret_return = site->address + LONG_SIZE;
	return FATHOM_PATCH_DONE;
}
