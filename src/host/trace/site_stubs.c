/* SPDX-License-Identifier: MIT */
#include "host/trace/site_stubs.h"

#include <string.h>

#include "host/code/x86_64/x86_stub.h"
#include "host/trace/got_slots.h"

enum { CALL_SIZE = FATHOM_X86_BRANCH_SIZE };

bool fathom_site_stubs_make(struct fathom_loader *l, struct fathom_traced *p, size_t n,
			    uint64_t low, uint64_t high, struct fathom_site_stubs *ret)
{
	*ret = (struct fathom_site_stubs){ .left = 0 };
	ret->stub = fathom_program_stubs_near(p, n, low, high);
	if (!ret->stub ||
	    !fathom_hooks_make(l, p, ret->stub, ret->stub + n * FATHOM_STUB_SIZE, &ret->hooks))
		return false;
	ret->left = n;
	return true;
}

bool fathom_site_stubs_is_jump(const struct fathom_site *site)
{
	return site->bytes[0] == FATHOM_X86_JUMP || fathom_x86_is_jump_by_word(site->bytes);
}

/* Makes the next stub and the changes for @site, which calls something of the program. */
static enum fathom_patch_refusal around_call(const struct fathom_site_stubs *own,
					     const struct fathom_site *site, uint64_t hook,
					     struct fathom_text_plan *plan,
					     uint8_t stub[FATHOM_STUB_SIZE])
{
	const bool is_jump = fathom_site_stubs_is_jump(site);
	const size_t skip = site->size - CALL_SIZE;
	uint8_t call[CALL_SIZE + 1] = { FATHOM_X86_ADDRESS_SIZE };

	if (site->size < CALL_SIZE || site->size > CALL_SIZE + 1)
		return FATHOM_PATCH_NO_ROOM;
	if (!fathom_x86_put_call_stub(own->stub, hook, site->address, site->bytes, site->size,
				      stub) ||
	    !(is_jump ? fathom_x86_put_jump : fathom_x86_put_call)(site->address + skip, own->stub,
								   call + skip))
		return FATHOM_PATCH_TOO_FAR;
	return fathom_text_plan_add(plan, site->address, site->bytes, call, site->size, 0)
		       ? FATHOM_PATCH_DONE
		       : FATHOM_PATCH_NO_MEMORY;
}

/* Makes the next stub and the changes for @site, at which nothing is called. */
static enum fathom_patch_refusal in_place(const struct fathom_site_stubs *own,
					  const struct fathom_site *site, uint64_t hook,
					  struct fathom_text_plan *plan,
					  uint8_t stub[FATHOM_STUB_SIZE])
{
	/* The first byte of an XRay sled at a return is the return itself. */
	const bool is_return =
		site->content == FATHOM_SITE_SLED && site->place == FATHOM_SITE_RETURN;

	if (!fathom_x86_put_site_stub(own->stub, hook, is_return ? 0 : site->address + site->size,
				      stub))
		return FATHOM_PATCH_TOO_FAR;
	return fathom_patch_jump(site, own->stub, plan);
}

enum fathom_patch_refusal fathom_site_stubs_patch(struct fathom_site_stubs *own,
						  const struct fathom_tracee *tracee,
						  const struct fathom_site *site,
						  enum fathom_hook_place place,
						  struct fathom_text_plan *plan,
						  uint64_t *ret_return)
{
	const bool is_call =
		site->kind == FATHOM_SITE_CYG_PROFILE || site->content == FATHOM_SITE_CALL;
	const size_t first = plan->n;
	uint8_t stub[FATHOM_STUB_SIZE] = { 0 };
	enum fathom_patch_refusal why;

	if (!own->left)
		return FATHOM_PATCH_NO_ROOM;
	if (place == FATHOM_HOOK_AT_OWN_CALL && site->frame == FATHOM_SITE_NO_FRAME)
		return FATHOM_PATCH_NO_FRAME;
	why = (is_call ? around_call : in_place)(own, site, own->hooks.at[place], plan, stub);
	if (why == FATHOM_PATCH_DONE &&
	    !fathom_tracee_write(tracee, own->stub, stub, sizeof stub)) {
		fathom_text_plan_cut(plan, first);
		why = FATHOM_PATCH_TOO_FAR;
	}
	if (why != FATHOM_PATCH_DONE)
		return why;
	*ret_return = own->stub + FATHOM_SLOT_RETURN;
	own->stub += FATHOM_STUB_SIZE;
	own->left--;
	return FATHOM_PATCH_DONE;
}
