/* SPDX-License-Identifier: MIT */
#include "host/trace/own_calls.h"

#include <string.h>

#include "host/trace/slots.h"

/* x86-64: call rel32, with a prefix that says nothing; call, jump by a word at rel32 */
enum {
	CALL = 0xe8,
	JUMP = 0xe9,
	CALL_SIZE = 5,
	PREFIX = 0x67,
	BY_WORD = 0xff,
	CALLS = 0x15,
	JUMPS = 0x25
};

/* Bytes of a jump by a word. */
#define JUMP_BY_WORD_SIZE 6

bool fathom_own_calls_make(struct fathom_loader *l, struct fathom_traced *p, size_t n, uint64_t low,
			   uint64_t high, struct fathom_own_calls *ret)
{
	*ret = (struct fathom_own_calls){ .left = 0 };
	ret->stub = fathom_program_stubs_near(p, n, low, high);
	if (!ret->stub ||
	    !fathom_hooks_make(l, p, ret->stub, ret->stub + n * FATHOM_STUB_SIZE, &ret->hooks))
		return false;
	ret->left = n;
	return true;
}

bool fathom_own_call_is_jump(const struct fathom_site *site)
{
	return site->bytes[0] == JUMP || (site->bytes[0] == BY_WORD && site->bytes[1] == JUMPS);
}

/* Puts a jump at @avma to where @call, of @size bytes at @site, leads. */
static bool put_jump(uint64_t avma, uint64_t site, const uint8_t *call, size_t size, uint8_t *to)
{
	const bool is_by_word = call[0] == BY_WORD && (call[1] == CALLS || call[1] == JUMPS) &&
				size == JUMP_BY_WORD_SIZE;
	int32_t offset;
	int64_t distance;

	memcpy(&offset, call + size - sizeof offset, sizeof offset);
	if (!is_by_word)
		return fathom_patch_jump(avma, site + size + (uint64_t)(int64_t)offset, to);
	distance = (int64_t)(site + size + (uint64_t)(int64_t)offset - (avma + JUMP_BY_WORD_SIZE));
	offset = (int32_t)distance;
	to[0] = BY_WORD;
	to[1] = JUMPS;
	memcpy(to + 2, &offset, sizeof offset);
	return offset == distance;
}

enum fathom_patch_refusal fathom_own_calls_patch(struct fathom_own_calls *own,
						 const struct fathom_tracee *tracee,
						 const struct fathom_site *site,
						 enum fathom_hook_place place, uint8_t *bytes,
						 uint64_t *ret_return)
{
	const uint64_t hook = own->hooks.at[place];
	const bool is_jump = fathom_own_call_is_jump(site);
	const size_t skip = site->size - CALL_SIZE;
	uint8_t stub[FATHOM_STUB_SIZE] = { 0 };
	uint8_t call[CALL_SIZE];

	if (!own->left || site->size < CALL_SIZE || site->size > CALL_SIZE + 1)
		return FATHOM_PATCH_NO_ROOM;
	if (place == FATHOM_HOOK_AT_OWN_CALL && site->frame == FATHOM_SITE_NO_FRAME)
		return FATHOM_PATCH_NO_FRAME;
	if (memcmp(bytes, site->bytes, site->size) != 0)
		return FATHOM_PATCH_CHANGED;
	if (!fathom_patch_call(own->stub, hook, stub) ||
	    !put_jump(own->stub + FATHOM_SLOT_RETURN, site->address, bytes, site->size,
		      stub + FATHOM_SLOT_RETURN) ||
	    !(is_jump ? fathom_patch_jump : fathom_patch_call)(site->address + skip, own->stub,
							       call) ||
	    !fathom_tracee_write(tracee, own->stub, stub, sizeof stub))
		return FATHOM_PATCH_TOO_FAR;
	memset(bytes, PREFIX, skip);
	memcpy(bytes + skip, call, sizeof call);
	*ret_return = own->stub + FATHOM_SLOT_RETURN;
	own->stub += FATHOM_STUB_SIZE;
	own->left--;
	return FATHOM_PATCH_DONE;
}
