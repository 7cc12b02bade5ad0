/* SPDX-License-Identifier: MIT */
/* Types that the parts which read Ruby share. */
#ifndef FATHOM_INTERPRETERS_RUBY_H
#define FATHOM_INTERPRETERS_RUBY_H

#include "host/interpreters/provider.h"

/*
 * Where members of Ruby's structs are, in bytes (vm_core.h, iseq.h, ractor_core.h, internal/class.h
 * of each version). What no version has changed is a constant below.
 */
struct fathom_ruby_offsets {
	uint8_t major;
	uint8_t minor;
	uint16_t main_thread;  /* of rb_vm_t */
	uint16_t list;         /* the head of the list of ractors; without them, of threads */
	uint16_t ractor_node;  /* of rb_ractor_t; 0: there are none */
	uint16_t ractor_list;  /* the head of its list of threads */
	uint16_t thread_vm;    /* of rb_thread_t */
	uint16_t thread_ec;    /* the execution context of its fiber */
	uint16_t thread_own;   /* of a struct with the next two; 0: they are members */
	uint16_t pthread;      /* its pthread_t */
	uint16_t native_id;    /* 0: it has none */
	uint16_t ec_thread;    /* of rb_execution_context_t */
	uint16_t ec_start;     /* where its C stack begins */
	uint16_t frame_size;   /* of rb_control_frame_t */
	uint16_t frame_return; /* where YJIT's code returns to; 0: there is no YJIT */
	uint16_t lines;        /* insns_info of struct rb_iseq_constant_body */
	uint16_t line_size;    /* of struct iseq_insn_info_entry */
	uint16_t text;         /* of RString, where short ones are; 16: their size is a flag */
	uint16_t class_path;   /* of RClass and its rb_classext_t; 0: labels have no class */
	uint16_t class_of;     /* of that of a singleton class: whose it is */
	uint16_t class_bits;   /* the byte whose lowest bit says that its path is for ever */
};

/* Of all versions: types of objects, in their flags. */
enum {
	RUBY_CLASS = 2,
	RUBY_MODULE = 3,
	RUBY_STRING = 5,
	RUBY_ARRAY = 7,
	RUBY_DATA = 0xc,
	RUBY_SYMBOL = 0x14,
	RUBY_INTERNAL = 0x1a,
	RUBY_TYPE = 0x1f,
	RUBY_EMBEDDED =
		1 << 13, /* of an array; of a string that it is not; of a class: singleton */
	RUBY_INTERNAL_SHIFT = 12,
	RUBY_SVAR = 2, /* of internal ones: special variables, a method, code */
	RUBY_METHOD = 6,
	RUBY_CODE = 7,
};

/* Of rb_iseq_t and its body, rb_method_entry_t, its definition, RSymbol. */
enum {
	CODE_BODY = 16,
	BODY_TYPE = 0,
	BODY_SIZE = 4,
	BODY_CODE = 8,
	BODY_PATH = 64,
	BODY_LABEL = 80,
	METHOD_DEFINITION = 16,
	METHOD_OWNER = 32,
	DEFINITION_ID = 32,
	SYMBOL_ID = 32,
};

/* Kinds of code (enum iseq_type). */
enum {
	CODE_TOP,
	CODE_METHOD,
	CODE_BLOCK,
	CODE_CLASS,
	CODE_RESCUE,
	CODE_ENSURE,
	CODE_EVAL,
	CODE_MAIN,
	CODE_PLAIN,
};

/* Places that call setjmp() whose function is known. */
enum { FATHOM_RUBY_SITES = 128 };

/* How a struct rb_vm_tag is made: as __builtin_setjmp() or as setjmp() fills it. */
struct fathom_ruby_tags {
	uint16_t previous; /* the offset of the tag before; 0: not known yet */
	uint16_t pc;       /* of what is set by a jump */
	uint16_t sp;
	bool is_guarded; /* pc and sp are rotated, and XORed with @guard */
	uint64_t guard;
};

/* One Ruby. */
struct fathom_ruby {
	const struct fathom_ruby_offsets *offsets;
	uint64_t thread_class;             /* avma of rb_cThread */
	uint64_t vm;                       /* avma of the rb_vm_t */
	struct fathom_keyed_array threads; /* rb_thread_t by the start of its C stack */
	bool has_ids;                      /* one was right: they are of this PID namespace */
	struct fathom_ruby_tags tags;
	uint64_t loop; /* svma of the function that has the instructions; 0: not known yet */
	uint64_t sites[FATHOM_RUBY_SITES];
	bool site_is_loop[FATHOM_RUBY_SITES];
	uint32_t n_sites;
	bool has_looked; /* for names: if they are anywhere, then at @names */
	uint64_t names;  /* avma of the array of names by numbers */
	struct fathom_runtime_page pages[FATHOM_RUNTIME_PAGES];
};

/* Finds the row of version @major.@minor that its structures agree with; else sets f->why. */
void fathom_ruby_find_offsets(struct fathom_runtime_found *f, uint32_t major, uint32_t minor);

/* Finds the array of all names; false if there is none that can be it. */
bool fathom_ruby_find_names(struct fathom_runtime_found *f, uint64_t *ret);

/* Returns whether the object at @thread is a thread of the VM. */
bool fathom_ruby_is_thread(const struct fathom_runtime_found *f, uint64_t thread);

/*
 * Appends the addresses of the tags that loops have on the C stack, the innermost first, and then
 * that of the outermost tag of all. @thread: whose they are, @tag: the innermost, @end: where the
 * stack begins, @codes: frames by which the loop is found. FATHOM_E_MEMORY.
 */
fathom_err fathom_ruby_read_tags(struct fathom_runtime_found *f, uint64_t thread, uint64_t tag,
				 uint64_t end, const struct fathom_script_frame *codes,
				 size_t n_codes, struct fathom_u64_array *ret);

/* Returns a number that depends on where the code or method at @code has its names. */
uint64_t fathom_ruby_mark(const struct fathom_runtime_found *f, uint64_t code);

/* Returns the type of the internal object at @object, or -1. */
int fathom_ruby_internal(const struct fathom_runtime_found *f, uint64_t object);

/* As fathom_interpreters_name(). */
fathom_err fathom_ruby_name(struct fathom_runtime_found *f, const struct fathom_script_frame *frame,
			    struct fathom_arena *arena, struct fathom_script_name *ret);

/* Finds the number of the line of instruction word @position, from 1; 0: it has none. */
uint32_t fathom_ruby_rank(const struct fathom_runtime_found *f, uint64_t index, uint32_t position);

/* Reads an unsigned number of @size bytes, 4 or 8, of the pages that were read in this call. */
bool fathom_ruby_number(const struct fathom_runtime_found *f, uint64_t avma, uint8_t size,
			uint64_t *ret);

/* Forgets these pages: what follows is of another moment. */
void fathom_ruby_refresh(struct fathom_runtime_found *f);

static inline bool fathom_ruby_word(const struct fathom_runtime_found *f, uint64_t avma,
				    uint64_t *ret)
{
	return fathom_ruby_number(f, avma, 8, ret);
}

/* Returns whether the object at @object is of @type; *@ret_flags: its flags. */
static inline bool fathom_ruby_is(const struct fathom_runtime_found *f, uint64_t object,
				  unsigned type, uint64_t *ret_flags)
{
	return object && object % 8 == 0 && fathom_ruby_word(f, object, ret_flags) &&
	       (*ret_flags & RUBY_TYPE) == type;
}

#endif
