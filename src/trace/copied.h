/* SPDX-License-Identifier: MIT */
/* The runtime as it is put into programs by somebody else (x86-64), as bytes. */
#ifndef FATHOM_TRACE_COPIED_H
#define FATHOM_TRACE_COPIED_H

#include "trace/recorder.h"

/*
 * The hooks: with the clock read at each event, at one in 64, and never; for places at which the
 * stack is as at the function's entry, after a prologue that has set the frame pointer, and for
 * calls that the program makes itself with a function and where it returns to as arguments,
 * anywhere and where the frame pointer is set; and for calls of the profiler at the entry. They are
 * copied, with the words before each (FATHOM_TRACE_WORDS bytes), and are called by a site's stub;
 * each ends where the words of the next begin. Who copies them fills the words in: the address of
 * struct fathom_trace_process, that of fathom_trace_slow_entry(), and what to subtract from where
 * the stub's call returns to, so that the lowest 32 bits are the site's number.
 */
#define FATHOM_TRACE_WORDS 32
extern const unsigned char fathom_trace_hook_full[];
extern const unsigned char fathom_trace_hook_full_behind[];
extern const unsigned char fathom_trace_hook_full_own[];
extern const unsigned char fathom_trace_hook_full_own_behind[];
extern const unsigned char fathom_trace_hook_full_at_call[];
extern const unsigned char fathom_trace_hook_sparse[];
extern const unsigned char fathom_trace_hook_sparse_behind[];
extern const unsigned char fathom_trace_hook_sparse_own[];
extern const unsigned char fathom_trace_hook_sparse_own_behind[];
extern const unsigned char fathom_trace_hook_sparse_at_call[];
extern const unsigned char fathom_trace_hook_none[];
extern const unsigned char fathom_trace_hook_none_behind[];
extern const unsigned char fathom_trace_hook_none_own[];
extern const unsigned char fathom_trace_hook_none_own_behind[];
extern const unsigned char fathom_trace_hook_none_at_call[];
extern const unsigned char fathom_trace_hooks_end[];

/*
 * The stub that the dynamic linker calls when something was loaded or unloaded (its
 * _dl_debug_state() leads here). It is copied like a hook; its words are the process and
 * fathom_trace_loaded_entry().
 */
extern const unsigned char fathom_trace_loaded_stub[];
extern const unsigned char fathom_trace_loaded_stub_end[];

/* Saves what a C function may change, and calls fathom_trace_slow(). */
void fathom_trace_slow_entry(void);
/* Likewise for fathom_trace_loaded(). */
void fathom_trace_loaded_entry(void);

#endif
