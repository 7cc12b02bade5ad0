/* SPDX-License-Identifier: MIT */
#include "host/trace/patch.h"

#include <string.h>

/* x86-64 */
enum { CALL = 0xe8, CALL_SIZE = 5, JUMP_SHORT = 0xeb, JUMP_SIZE = 2, ADDR32 = 0x67, NOP = 0x90 };

/* Bytes of a stub in the prefix: call of the hook, jump behind the slot. */
#define STUB (CALL_SIZE + JUMP_SIZE)

#define LONGEST_SLOT 16

/* Writes a call at @avma of @to into @bytes; returns false if it is too far. */
static bool put_call(uint8_t *bytes, uint64_t avma, uint64_t to)
{
	const int64_t distance = (int64_t)(to - (avma + CALL_SIZE));
	const int32_t offset = (int32_t)distance;

	if (offset != distance)
		return false;
	bytes[0] = CALL;
	memcpy(bytes + 1, &offset, sizeof offset);
	return true;
}

/* Writes a short jump at @avma to @to into @bytes; returns false if it is too far. */
static bool put_jump(uint8_t *bytes, uint64_t avma, uint64_t to)
{
	const int64_t distance = (int64_t)(to - (avma + JUMP_SIZE));

	if (distance < INT8_MIN || distance > INT8_MAX)
		return false;
	bytes[0] = JUMP_SHORT;
	bytes[1] = (uint8_t)distance;
	return true;
}

/* Returns whether the program still has the bytes of the file. */
static bool is_unchanged(const struct fathom_tracee *t, const struct fathom_site *site)
{
	uint8_t now[LONGEST_SLOT];

	return fathom_tracee_read(t, site->address, now, site->size) &&
	       !memcmp(now, site->bytes, site->size);
}

/* A stub in the prefix, and a slot of two bytes that leads to it. */
static enum fathom_patch_refusal by_prefix(const struct fathom_tracee *t,
					   const struct fathom_site *site, uint64_t hook,
					   uint64_t *ret_return)
{
	const uint64_t at = site->function - site->prefix_size;
	uint8_t stub[STUB];
	uint8_t slot[JUMP_SIZE];

	if (!put_jump(slot, site->address, at) ||
	    !put_jump(stub + CALL_SIZE, at + CALL_SIZE, site->address + JUMP_SIZE))
		return FATHOM_PATCH_NO_ROOM;
	if (!put_call(stub, at, hook))
		return FATHOM_PATCH_TOO_FAR;
	*ret_return = at + CALL_SIZE;
	return fathom_tracee_write(t, at, stub, sizeof stub) &&
			       fathom_tracee_write(t, site->address, slot, sizeof slot)
		       ? FATHOM_PATCH_DONE
		       : FATHOM_PATCH_UNWRITABLE;
}

enum fathom_patch_refusal fathom_patch_on(const struct fathom_tracee *t,
					  const struct fathom_site *site, uint64_t hook,
					  uint64_t *ret_return)
{
	uint8_t slot[LONGEST_SLOT];

	if (site->size > sizeof slot || site->content == FATHOM_SITE_SLED)
		return FATHOM_PATCH_NO_ROOM;
	if (!is_unchanged(t, site))
		return FATHOM_PATCH_CHANGED;
	if (site->size < CALL_SIZE)
		return site->size >= JUMP_SIZE && site->prefix_size >= STUB
			       ? by_prefix(t, site, hook, ret_return)
			       : FATHOM_PATCH_NO_ROOM;
	memset(slot, NOP, sizeof slot);
	if (!put_call(slot, site->address, hook))
		return FATHOM_PATCH_TOO_FAR;
	*ret_return = site->address + CALL_SIZE;
	return fathom_tracee_write(t, site->address, slot, site->size) ? FATHOM_PATCH_DONE
								       : FATHOM_PATCH_UNWRITABLE;
}

bool fathom_patch_off(const struct fathom_tracee *t, const struct fathom_site *site)
{
	/* First the slot: then the stub is not entered any more. */
	return fathom_tracee_write(t, site->address, site->bytes, site->size) &&
	       (site->size >= CALL_SIZE ||
		fathom_tracee_write(t, site->function - site->prefix_size, site->prefix,
				    site->prefix_size));
}
