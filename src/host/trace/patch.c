/* SPDX-License-Identifier: MIT */
#include "host/trace/patch.h"

#include <stdbool.h>
#include <string.h>

/* x86-64 */
enum { CALL = 0xe8, JUMP = 0xe9, LONG_SIZE = 5, JUMP_SHORT = 0xeb, JUMP_SIZE = 2, RET = 0xc3 };
enum { NOP = 0x90 };

/* Bytes of a stub in the prefix: call of the hook, jump behind the slot. */
#define STUB (LONG_SIZE + JUMP_SIZE)

/* An XRay sled at a return: its first byte is the return itself (LLVM, XRay). */
#define SLED_RETURN_SIZE (LONG_SIZE + 1)

/* Writes a call or jump at @avma to @to into @bytes; returns false if it is too far. */
static bool put_long(uint8_t opcode, uint64_t avma, uint64_t to, uint8_t *bytes)
{
	const int64_t distance = (int64_t)(to - (avma + LONG_SIZE));
	const int32_t offset = (int32_t)distance;

	if (offset != distance)
		return false;
	bytes[0] = opcode;
	memcpy(bytes + 1, &offset, sizeof offset);
	return true;
}

bool fathom_patch_jump(uint64_t avma, uint64_t to, uint8_t bytes[5])
{
	return put_long(JUMP, avma, to, bytes);
}

bool fathom_patch_call(uint64_t avma, uint64_t to, uint8_t bytes[5])
{
	return put_long(CALL, avma, to, bytes);
}

/* Writes a short jump at @avma to @to into @bytes; returns false if it is too far. */
static bool put_short(uint64_t avma, uint64_t to, uint8_t *bytes)
{
	const int64_t distance = (int64_t)(to - (avma + JUMP_SIZE));

	if (distance < INT8_MIN || distance > INT8_MAX)
		return false;
	bytes[0] = JUMP_SHORT;
	bytes[1] = (uint8_t)distance;
	return true;
}

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
	    !put_short(site->address, at, jump) ||
	    !put_short(at + LONG_SIZE, site->address + JUMP_SIZE, stub + LONG_SIZE))
		return FATHOM_PATCH_NO_ROOM;
	if (memcmp(bytes, site->prefix, site->prefix_size) != 0 ||
	    memcmp(slot, site->bytes, site->size) != 0)
		return FATHOM_PATCH_CHANGED;
	if (!put_long(CALL, at, hook, stub))
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
	if (!put_long(CALL, site->address, hook, call))
		return FATHOM_PATCH_TOO_FAR;
	memset(bytes, NOP, site->size);
	memcpy(bytes, call, sizeof call);
	if (is_return)
		bytes[LONG_SIZE] = RET;
	*ret_return = site->address + LONG_SIZE;
	return FATHOM_PATCH_DONE;
}
