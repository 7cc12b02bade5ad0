/* SPDX-License-Identifier: MIT */
#include "host/trace/patch.h"

#include <stdbool.h>
#include <string.h>

#include "host/code/x86_64/x86_instructions.h"

enum { LONG_SIZE = FATHOM_X86_BRANCH_SIZE, JUMP_SIZE = FATHOM_X86_SHORT_SIZE };

/* Bytes of a stub in the prefix: call of the hook, jump behind the slot. */
#define STUB (LONG_SIZE + JUMP_SIZE)

/* An XRay sled at a return: its first byte is the return itself (LLVM, XRay). */
#define SLED_RETURN_SIZE (LONG_SIZE + 1)

/* Returns whether the slot is too short for a call, and leads to a stub in the prefix. */
static bool has_stub(const struct fathom_site *site)
{
	return site->size < LONG_SIZE;
}

uint64_t fathom_patch_range(const struct fathom_site *site, uint64_t *ret_end)
{
	*ret_end = site->address + site->size;
	return has_stub(site) ? site->function - site->prefix_size : site->address;
}

/* A stub in the prefix, and a slot of two bytes that leads to it. */
static enum fathom_patch_refusal by_prefix(const struct fathom_site *site, uint64_t hook,
					   uint8_t *bytes, uint64_t *ret_return)
{
	const uint64_t at = site->function - site->prefix_size;
	uint8_t *slot = bytes + (site->address - at);
	uint8_t stub[STUB];
	uint8_t jump[JUMP_SIZE];

	if (site->size < JUMP_SIZE || site->prefix_size < STUB ||
	    !fathom_x86_put_short_jump(site->address, at, jump) ||
	    !fathom_x86_put_short_jump(at + LONG_SIZE, site->address + JUMP_SIZE, stub + LONG_SIZE))
		return FATHOM_PATCH_NO_ROOM;
	if (memcmp(bytes, site->prefix, site->prefix_size) != 0 ||
	    memcmp(slot, site->bytes, site->size) != 0)
		return FATHOM_PATCH_CHANGED;
	if (!fathom_x86_put_call(at, hook, stub))
		return FATHOM_PATCH_TOO_FAR;
	memcpy(bytes, stub, sizeof stub);
	memcpy(slot, jump, sizeof jump);
	*ret_return = at + LONG_SIZE;
	return FATHOM_PATCH_DONE;
}

/* Copies @size bytes; returns whether @to was something else. */
static bool put(uint8_t *to, const uint8_t *from, size_t size)
{
	const bool is_new = memcmp(to, from, size) != 0;

	memcpy(to, from, size);
	return is_new;
}

bool fathom_patch_heal(const struct fathom_site *site, uint8_t *bytes)
{
	bool was_changed = false;

	if (has_stub(site)) {
		was_changed = put(bytes, site->prefix, site->prefix_size);
		bytes += site->address - (site->function - site->prefix_size);
	}
	return put(bytes, site->bytes, site->size) || was_changed;
}

enum fathom_patch_refusal fathom_patch_site(const struct fathom_site *site, uint64_t hook,
					    uint8_t *bytes, uint64_t *ret_return)
{
	const bool is_return =
		site->content == FATHOM_SITE_SLED && site->place == FATHOM_SITE_RETURN;
	uint8_t call[LONG_SIZE];

	if (has_stub(site))
		return by_prefix(site, hook, bytes, ret_return);
	if (is_return && site->size < SLED_RETURN_SIZE)
		return FATHOM_PATCH_NO_ROOM;
	if (memcmp(bytes, site->bytes, site->size) != 0)
		return FATHOM_PATCH_CHANGED;
	if (!fathom_x86_put_call(site->address, hook, call))
		return FATHOM_PATCH_TOO_FAR;
	memset(bytes, FATHOM_X86_NOP, site->size);
	memcpy(bytes, call, sizeof call);
	if (is_return)
		bytes[LONG_SIZE] = FATHOM_X86_RET;
	*ret_return = site->address + LONG_SIZE;
	return FATHOM_PATCH_DONE;
}
