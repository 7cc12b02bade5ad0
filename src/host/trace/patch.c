/* SPDX-License-Identifier: MIT */
#include "host/trace/patch.h"

#include <string.h>

#include "host/code/x86_64/x86_instructions.h"
#include "safe/base/nops.h"

enum { LONG_SIZE = FATHOM_X86_BRANCH_SIZE, JUMP_SIZE = FATHOM_X86_SHORT_SIZE };

/* Bytes of a stub in the prefix: call of the hook, jump after the slot. */
#define STUB (LONG_SIZE + JUMP_SIZE)

/* Bytes of a change, at most. */
enum { PIECE = 64 };

/* Returns whether the slot is too short for a call, and leads to a stub in the prefix. */
static bool has_stub(const struct fathom_site *site)
{
	return site->size < LONG_SIZE;
}

static uint64_t prefix_of(const struct fathom_site *site)
{
	return site->function - site->prefix_size;
}

bool fathom_patch_stub(const struct fathom_site *site, uint64_t *ret_avma, uint64_t *ret_size)
{
	*ret_avma = prefix_of(site);
	*ret_size = STUB;
	return has_stub(site) && site->prefix_size >= STUB;
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

/* Adds @code in the prefix of @site, and a jump there in its slot of two bytes. */
static enum fathom_patch_refusal by_prefix(const struct fathom_site *site, const uint8_t *code,
					   size_t size, struct fathom_text_plan *plan)
{
	const uint64_t at = prefix_of(site);
	uint8_t jump[JUMP_SIZE];

	if (site->size < JUMP_SIZE || site->prefix_size < size ||
	    !fathom_x86_put_short_jump(site->address, at, jump))
		return FATHOM_PATCH_NO_ROOM;
	return fathom_text_plan_add(plan, at, site->prefix, code, size, 0) &&
			       fathom_text_plan_add(plan, site->address, site->bytes, jump,
						    sizeof jump, 0)
		       ? FATHOM_PATCH_DONE
		       : FATHOM_PATCH_NO_MEMORY;
}

/* A stub in the prefix, which comes back behind the slot. */
static enum fathom_patch_refusal stub_in_prefix(const struct fathom_site *site, uint64_t hook,
						struct fathom_text_plan *plan, uint64_t *ret_return)
{
	const uint64_t at = prefix_of(site);
	uint8_t stub[STUB];

	if (!fathom_x86_put_call(at, hook, stub))
		return FATHOM_PATCH_TOO_FAR;
	if (!fathom_x86_put_short_jump(at + LONG_SIZE, site->address + JUMP_SIZE, stub + LONG_SIZE))
		return FATHOM_PATCH_NO_ROOM;
	*ret_return = at + LONG_SIZE;
	return by_prefix(site, stub, sizeof stub, plan);
}

/* Returns whether NOPs @bytes can be run from behind a call on. */
static bool go_on_behind_call(const uint8_t *bytes, size_t size)
{
	return fathom_nops_size(false, (struct fathom_bytes){ bytes, size }, LONG_SIZE) ==
	       LONG_SIZE;
}

bool fathom_patch_needs_stub(const struct fathom_site *site)
{
	switch (site->content) {
	case FATHOM_SITE_NOPS:
		return has_stub(site) ? !go_on_behind_call(site->prefix, site->prefix_size)
				      : !go_on_behind_call(site->bytes, site->size);
	case FATHOM_SITE_CALL:
		return site->size != LONG_SIZE;
	default:
		return true;
	}
}

enum fathom_patch_refusal fathom_patch_jump(const struct fathom_site *site, uint64_t to,
					    struct fathom_text_plan *plan)
{
	const uint64_t at = has_stub(site) ? prefix_of(site) : site->address;
	uint8_t jump[LONG_SIZE];

	if (!fathom_x86_put_jump(at, to, jump))
		return FATHOM_PATCH_TOO_FAR;
	if (has_stub(site))
		return by_prefix(site, jump, sizeof jump, plan);
	return fathom_text_plan_add(plan, at, site->bytes, jump, sizeof jump, 0)
		       ? FATHOM_PATCH_DONE
		       : FATHOM_PATCH_NO_MEMORY;
}

enum fathom_patch_refusal fathom_patch_site(const struct fathom_site *site, uint64_t hook,
					    struct fathom_text_plan *plan, uint64_t *ret_return)
{
	uint8_t code[PIECE];

	if (has_stub(site))
		return stub_in_prefix(site, hook, plan, ret_return);
	if (!fathom_x86_put_call(site->address, hook, code))
		return FATHOM_PATCH_TOO_FAR;
	memset(code + LONG_SIZE, FATHOM_X86_NOP, sizeof code - LONG_SIZE);
	for (size_t at = 0, n; at < site->size; at += n) {
		n = site->size - at < sizeof code ? site->size - at : sizeof code;
		if (!fathom_text_plan_add(plan, site->address + at, site->bytes + at, code, n, 0))
			return FATHOM_PATCH_NO_MEMORY;
		memset(code, FATHOM_X86_NOP, sizeof code);
	}
	*ret_return = site->address + LONG_SIZE;
	return FATHOM_PATCH_DONE;
}
