/* SPDX-License-Identifier: MIT */
#include "host/self_trace/capture_method.h"

const struct fathom_capture_row fathom_capture_rows[] = {
	{ &fathom_capture_by_ptrace, FATHOM_SYSCALL_BY_PTRACE, FATHOM_CAPTURED_ALL },
	{ &fathom_capture_by_dispatch, FATHOM_SYSCALL_BY_DISPATCH, FATHOM_CAPTURED_SYSCALLS },
	{ &fathom_capture_by_rewriting, FATHOM_SYSCALL_BY_REWRITING, FATHOM_CAPTURED_ALL },
	{ 0 },
};
