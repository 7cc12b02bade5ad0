/* SPDX-License-Identifier: MIT */
/*
 * Calls a handler without SA_ONSTACK as the kernel would: on the stack that the signal has
 * interrupted. Nothing of it stays on the alternate stack, where the next signal begins at the top.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_CRASH_HANDLER_FRAME_H
#define FATHOM_CRASH_HANDLER_FRAME_H

#include <signal.h>
#include <stdint.h>

enum fathom_frame_move {
	FATHOM_FRAME_STAYS, /* the handler is to be called where the caller is */
	FATHOM_FRAME_MOVED, /* it will be called when the caller returns to the kernel */
	/* the interrupted stack cannot take the frame: no handler runs there */
	FATHOM_FRAME_NO_ROOM
};

/*
 * Copies the signal frame of a handler, which was given @number, @info and @context, from the
 * alternate stack to the interrupted one, and changes @context so that the kernel goes on in
 * @handler there, with the signals of @mask blocked. FATHOM_FRAME_STAYS if the frame is on the
 * interrupted stack already, if the thread has a shadow stack, or on processors without a file of
 * their own.
 */
enum fathom_frame_move fathom_handler_frame_move(int number, const siginfo_t *info, void *context,
						 uintptr_t handler, uint64_t mask);

#endif
