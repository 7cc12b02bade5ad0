/* SPDX-License-Identifier: MIT */
/*
 * Frames of LLVM's own crashes (llvm/lib/Support/Signals.cpp), as clang and others print them:
 *
 *	 #3 0x00007fdc799cb83f (/lib/x86_64-linux-gnu/libLLVM-14.so.1+0xdcb83f)
 *	 #4 0x00007fdc799cb83f llvm::sys::RunSignalHandlers() (/lib/libLLVM-14.so.1+0xdcb83f)
 *
 * The number after the module is the stated address: of backtrace(3), so a return address.
 */
#include "host/filter/formats.h"

bool fathom_log_read_llvm(struct fathom_log_scan *s, struct fathom_log_line line)
{
	struct fathom_log_number n = { .kind = FATHOM_LOG_RETURN, .base = FATHOM_LOG_STATED };
	struct fathom_log_frame frame;

	/* 16 digits. */
	if (!fathom_log_take_frame(&line, &frame) || line.at - frame.pc_at != 18 ||
	    !fathom_line_take(&line, " ") || !fathom_log_take_place(&line, "+0x", &n))
		return false;
	n.live = frame.pc;
	n.frame = frame.number + 1;
	fathom_log_add(s, &n);
	return true;
}
