/* SPDX-License-Identifier: MIT */
#include "host/trace/instrument_calls.h"

#include <string.h>

#include "host/code/x86_64/x86_stub.h"
#include "host/trace/got_slots.h"

enum { CALL_SIZE = FATHOM_X86_BRANCH_SIZE };

bool fathom_instrument_calls_make(struct fathom_loader *l, struct fathom_traced *p, size_t n,
				  uint64_t low, uint64_t high, struct fathom_instrument_calls *ret)
{
	*ret = (struct fathom_instrument_calls){ .left = 0 };
	ret->stub = fathom_program_stubs_near(p, n, low, high);
	if (!ret->stub ||
	    !fathom_hooks_make(l, p, ret->stub, ret->stub + n * FATHOM_STUB_SIZE, &ret->hooks))
		return false;
	ret->left = n;
	return true;
}

bool fathom_instrument_call_is_jump(const struct fathom_site *site)
{
	return site->bytes[0] == FATHOM_X86_JUMP || fathom_x86_is_jump_by_word(site->bytes);
}

enum fathom_patch_refusal fathom_instrument_calls_patch(struct fathom_instrument_calls *own,
							const struct fathom_tracee *tracee,
							const struct fathom_site *site,
							enum fathom_hook_place place,
							struct fathom_text_plan *plan,
							uint64_t *ret_return)
{
	const uint64_t hook = own->hooks.at[place];
	const bool is_jump = fathom_instrument_call_is_jump(site);
	const size_t skip = site->size - CALL_SIZE;
	uint8_t stub[FATHOM_STUB_SIZE] = { 0 };
	uint8_t call[CALL_SIZE + 1] = { FATHOM_X86_ADDRESS_SIZE };

	if (!own->left || site->size < CALL_SIZE || site->size > CALL_SIZE + 1)
		return FATHOM_PATCH_NO_ROOM;
	if (place == FATHOM_HOOK_AT_OWN_CALL && site->frame == FATHOM_SITE_NO_FRAME)
		return FATHOM_PATCH_NO_FRAME;
	if (!fathom_x86_put_call_stub(own->stub, hook, site->address, site->bytes, site->size,
				      stub) ||
	    !(is_jump ? fathom_x86_put_jump : fathom_x86_put_call)(site->address + skip, own->stub,
								   call + skip) ||
	    !fathom_tracee_write(tracee, own->stub, stub, sizeof stub))
		return FATHOM_PATCH_TOO_FAR;
	if (!fathom_text_plan_add(plan, site->address, site->bytes, call, site->size, 0))
		return FATHOM_PATCH_NO_MEMORY;
	*ret_return = own->stub + FATHOM_SLOT_RETURN;
	own->stub += FATHOM_STUB_SIZE;
	own->left--;
	return FATHOM_PATCH_DONE;
}
