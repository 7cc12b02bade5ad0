/* SPDX-License-Identifier: MIT */
/*
 * Where Ruby's loops are on the C stack. Each call of rb_vm_exec() has a struct rb_vm_tag as a
 * variable, to which exceptions jump; rb_protect(), rb_ensure() and others have one, too. Those of
 * an execution context are a chain. A tag has what setjmp() has saved of its function: its stack
 * pointer, below which is the return address of the call that it makes now, and a place in it.
 *
 * Which of them are of the loop is told by their code, without a name: instructions of Ruby are
 * addresses in one C function (direct threaded code), and only rb_vm_exec() calls that one.
 *
 * __builtin_setjmp() has 5 words; jmp_buf of x86-64 has 25, in which glibc XORs addresses with the
 * thread's pointer guard, and rotates them (sysdeps/unix/sysv/linux/x86_64/pointer_guard.h).
 */
#include <stdlib.h>

#include "host/interpreters/ruby.h"

/* Of struct rb_vm_tag: bytes before the jmp_buf; of the thread's control block: its guard. */
enum { TAG_BUFFER = 16, GUARD = 0x30, ROTATED = 17 };

/* The most tags; bytes of the frame of a function, of a function's code. */
enum { MOST_TAGS = 1 << 17, MOST_FRAME = 1 << 16, MOST_CODE = 1 << 16 };

/* Functions that are tried as the loop; what a call instruction begins with, and its size. */
enum { MOST_LOOPS = 16, CALL = 0xe8, CALL_SIZE = 5 };

/*
 * The forms of a tag: as __builtin_setjmp() fills it, without and with a shadow stack in mind
 * (-fcf-protection), as musl's or glibc's setjmp() does.
 */
static const struct fathom_ruby_tags forms[] = {
	{ .previous = 56, .pc = 24, .sp = 32 },
	{ .previous = 56, .pc = 24, .sp = 40 },
	{ .previous = 216, .pc = 72, .sp = 64 },
	{ .previous = 216, .pc = 72, .sp = 64, .is_guarded = true },
};

/* One tag. */
struct tag {
	uint64_t previous;
	uint64_t sp; /* of its function */
	uint64_t pc; /* in it */
};

static uint64_t unguard(const struct fathom_ruby_tags *form, uint64_t word)
{
	return form->is_guarded ? (word >> ROTATED | word << (64 - ROTATED)) ^ form->guard : word;
}

/* Reads the tag at @at; false if what it has saved is not of a frame that holds it. */
static bool read_tag(const struct fathom_runtime_found *f, const struct fathom_ruby_tags *form,
		     struct fathom_runtime_page *page, uint64_t at, struct tag *ret)
{
	const uint8_t *bytes = fathom_runtime_part(f, page, at, form->previous + 8u);

	if (!bytes || at % 8)
		return false;
	ret->previous = load_u64(bytes + form->previous, f->swap);
	ret->sp = unguard(form, load_u64(bytes + form->sp, f->swap));
	ret->pc = unguard(form, load_u64(bytes + form->pc, f->swap));
	return ret->sp <= at && at - ret->sp < MOST_FRAME && ret->sp % 8 == 0 &&
	       (!f->module || fathom_object_is_mapped(f->module->main, ret->pc - f->bias));
}

/* Reads the pointer guard of @thread: it is that of all threads. */
static bool read_guard(const struct fathom_runtime_found *f, uint64_t thread, uint64_t *ret)
{
	const struct fathom_ruby *r = f->own;
	const struct fathom_ruby_offsets *o = r->offsets;
	uint64_t block;

	if (o->thread_own && !fathom_ruby_word(f, thread + o->thread_own, &thread))
		return false;
	return fathom_ruby_word(f, thread + o->pthread, &block) &&
	       fathom_ruby_word(f, block + GUARD, ret);
}

/* Finds the form of tags by that at @at; false if it has none of them. */
static bool find_form(struct fathom_runtime_found *f, struct fathom_runtime_page *page,
		      uint64_t thread, uint64_t at)
{
	struct fathom_ruby *r = f->own;
	struct tag tag;

	for (size_t i = 0; i < sizeof forms / sizeof *forms && !r->tags.previous; i++) {
		struct fathom_ruby_tags form = forms[i];

		if ((!form.is_guarded || read_guard(f, thread, &form.guard)) &&
		    read_tag(f, &form, page, at, &tag))
			r->tags = form;
	}
	return r->tags.previous != 0;
}

/* Finds the bounds of the function at @avma, as svmas. */
static bool find_function(const struct fathom_runtime_found *f, uint64_t avma,
			  struct fathom_symbol_hit *ret)
{
	return fathom_symbols_fde(&f->module->symbols, avma - f->bias, ret);
}

/* Returns whether the function at @avma has an instruction that calls the one at @loop. */
static bool calls(const struct fathom_runtime_found *f, uint64_t avma, uint64_t loop)
{
	struct fathom_symbol_hit function;
	uint8_t *code;
	uint64_t n = 0;
	bool is = false;

	if (!find_function(f, avma, &function) || function.size > MOST_CODE)
		return false;
	/* Where the compiler has made both one function, its frame holds the tag. */
	if (function.start == loop)
		return true;
	code = malloc((size_t)function.size + 1);
	if (code)
		n = fathom_object_read(f->module->main, function.start, code, function.size);
	for (uint64_t i = 0; i + CALL_SIZE <= n && !is; i++)
		is = code[i] == CALL &&
		     function.start + i + CALL_SIZE +
				     (uint64_t)(int32_t)load_u32(code + i + 1, false) ==
			     loop;
	free(code);
	return is;
}

/* Returns whether @tag is of the function that calls the loop at @loop. */
static bool is_of_loop(struct fathom_runtime_found *f, struct fathom_runtime_page *page,
		       const struct tag *tag, uint64_t loop)
{
	struct fathom_ruby *r = f->own;
	const uint8_t *bytes;
	bool is;

	for (uint32_t i = 0; i < r->n_sites; i++)
		if (r->sites[i] == tag->pc)
			return r->site_is_loop[i];
	/* No Ruby has so many. */
	if (r->n_sites == FATHOM_RUBY_SITES)
		return false;
	/* Where exceptions jump to may be in a part of the function that is apart. */
	bytes = fathom_runtime_part(f, page, tag->sp - 8, 8);
	is = calls(f, tag->pc, loop) || (bytes && calls(f, load_u64(bytes, f->swap) - 1, loop));
	r->sites[r->n_sites] = tag->pc;
	r->site_is_loop[r->n_sites++] = is;
	return is;
}

/* Reads the tags from @at on: appends those of the loop at @loop, and sets *@ret_last. */
static bool read_chain(struct fathom_runtime_found *f, uint64_t at, uint64_t end, uint64_t loop,
		       struct fathom_u64_array *ret, uint64_t *ret_last)
{
	struct fathom_ruby *r = f->own;
	struct fathom_runtime_page page = { 0 };
	struct fathom_runtime_page calls_page = { 0 };
	uint64_t low = 0;
	struct tag tag;

	*ret_last = 0;
	/* Outer ones are at higher addresses. */
	for (int i = 0;
	     i < MOST_TAGS && at > low && at < end && read_tag(f, &r->tags, &page, at, &tag); i++) {
		if ((!f->module || is_of_loop(f, &calls_page, &tag, loop)) &&
		    !fathom_array_push(ret, at))
			return false;
		*ret_last = at;
		low = at;
		at = tag.previous;
	}
	return true;
}

/* Finds the function in which the instructions of the code at @code are; 0: none. */
static uint64_t find_loop(const struct fathom_runtime_found *f, uint64_t code)
{
	struct fathom_symbol_hit function;
	uint64_t at;

	if (!fathom_ruby_word(f, code + CODE_BODY, &at) ||
	    !fathom_ruby_word(f, at + BODY_CODE, &at) || !fathom_ruby_word(f, at, &at) ||
	    !fathom_object_is_mapped(f->module->main, at - f->bias) ||
	    !find_function(f, at, &function))
		return 0;
	return function.start;
}

fathom_err fathom_ruby_read_tags(struct fathom_runtime_found *f, uint64_t thread, uint64_t tag,
				 uint64_t end, const struct fathom_script_frame *codes,
				 size_t n_codes, struct fathom_u64_array *ret)
{
	struct fathom_ruby *r = f->own;
	struct fathom_runtime_page page = { 0 };
	uint64_t last = 0;
	uint64_t loop = r->loop;

	if (!r->tags.previous && !find_form(f, &page, thread, tag))
		return FATHOM_OK;
	for (size_t i = 0; i < (f->module && !r->loop ? n_codes : 1) && i < MOST_LOOPS; i++) {
		if (f->module && !r->loop) {
			loop = find_loop(f, codes[i].code);
			r->n_sites = 0;
			if (!loop)
				continue;
		}
		if (!read_chain(f, tag, end, loop, ret, &last))
			return FATHOM_E_MEMORY;
		if (ret->n) {
			r->loop = loop;
			break;
		}
	}
	return !last || fathom_array_push(ret, last) ? FATHOM_OK : FATHOM_E_MEMORY;
}
