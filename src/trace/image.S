/* SPDX-License-Identifier: MIT */
/* struct fathom_trace_image (host/trace/hook_image.h): where in the image things are. */
	.section .text.table, "ax", @progbits
image_table:
	.long fathom_trace_hook_full - image_table
	.long fathom_trace_hook_full_behind - image_table
	.long fathom_trace_hook_full_own - image_table
	.long fathom_trace_hook_full_own_behind - image_table
	.long fathom_trace_hook_sparse - image_table
	.long fathom_trace_hook_sparse_behind - image_table
	.long fathom_trace_hook_sparse_own - image_table
	.long fathom_trace_hook_sparse_own_behind - image_table
	.long fathom_trace_hook_none - image_table
	.long fathom_trace_hook_none_behind - image_table
	.long fathom_trace_hook_none_own - image_table
	.long fathom_trace_hook_none_own_behind - image_table
	.long fathom_trace_hooks_end - image_table
	.long fathom_trace_slow_entry - image_table
	.long fathom_trace_loaded_entry - image_table
	.long fathom_trace_loaded_stub - image_table
	.long fathom_trace_loaded_stub_end - image_table
	.long fathom_trace_call_entry - image_table
	.long fathom_trace_call_made - image_table
	.long fathom_trace_load - image_table
	.long fathom_trace_load_fault - image_table
	.long image_eh_frame - image_table
	.long image_eh_frame_end - image_table
	.section .note.GNU-stack, "", @progbits
