/* SPDX-License-Identifier: MIT */
/*
 * The exception of a thread: the first of the list caughtExceptions of its struct __cxa_eh_globals,
 * which is what std::current_exception() returns. An exception that no handler takes is in it,
 * too, when std::terminate() runs: the C++ libraries call __cxa_begin_catch() before.
 *
 * struct __cxa_exception (Itanium C++ ABI: Exception Handling, 2.2.1; libstdc++'s unwind-cxx.h,
 * libc++abi's cxa_exception.h) ends with struct _Unwind_Exception, whose first 8 bytes are the
 * class of the exception: "GNUCC++" or "CLNGC++", and 0, or 1 for one that was rethrown by
 * std::rethrow_exception() and refers to another. The object follows. Both libraries have their
 * members at the same distance from the object; libc++abi has two more at the start.
 *
 * The text of what() is read only if the vtable of the object has the library's own function there:
 * that of std::runtime_error and std::logic_error returns a pointer that follows the vtable's, to
 * text after a length, a capacity and a count of references (libstdc++'s string of before C++11;
 * libc++'s refstring.h).
 *
 * Not handled: programs of 32 bits; exceptions of other languages, which C++ only passes on.
 */
#include "host/death/eh_globals.h"
#include "host/death/library_frames.h"
#include "host/death/rtti.h"
#include "host/module/module.h"
#include "host/symbol/dynsym.h"
#include "safe/base/limits.h"

/* Bytes from members to the object, with 64 bits. */
#define TYPE_DISTANCE    112 /* exceptionType; of a dependent exception primaryException */
#define COUNT_DISTANCE   72  /* handlerCount */
#define CLASS_DISTANCE   32
#define GNU_HEADER       112
#define LLVM_HEADER      128
#define LLVM_PRIMARY_OFF 8 /* from the start: primaryException */

/* Classes of exceptions, as numbers of 8 bytes; the last byte is 1 for dependent ones. */
#define GNU_CLASS  UINT64_C(0x474e5543432b2b00) /* "GNUCC++" */
#define LLVM_CLASS UINT64_C(0x434c4e47432b2b00) /* "CLNGC++" */

/* An exception that was found. */
struct exception {
	uint64_t object;
	struct fathom_rtti type;
	const struct fathom_runtime_module *library;
};

/*
 * Finds the object whose header is at @at, which has @size bytes if it is of @class. Returns false
 * if it is not.
 */
static bool find_object(const struct fathom_death_work *w, uint64_t at, uint64_t size,
			uint64_t class, uint64_t *ret)
{
	const uint64_t primary = at + (class == LLVM_CLASS ? LLVM_PRIMARY_OFF : 0);
	uint64_t found;
	uint64_t count;

	if (!fathom_reader_uint(&w->view->memory, at + size - CLASS_DISTANCE, 8, w->layout.swap,
				&found) ||
	    found >> 8 != class >> 8 || (found & 0xff) > 1 ||
	    !fathom_reader_uint(&w->view->memory, at + size - COUNT_DISTANCE, 4, w->layout.swap,
				&count) ||
	    !count)
		return false;
	*ret = at + size;
	return !(found & 0xff) || (fathom_death_word(w, primary, ret) && *ret);
}

/* Reads the exception whose header is at @at; returns false if there is none. */
static bool read_exception(const struct fathom_death_work *w, uint64_t at, struct exception *ret)
{
	uint64_t type;

	return at % 16 == 0 && at < UINT64_MAX - LLVM_HEADER &&
	       (find_object(w, at, GNU_HEADER, GNU_CLASS, &ret->object) ||
		find_object(w, at, LLVM_HEADER, LLVM_CLASS, &ret->object)) &&
	       ret->object % 16 == 0 && fathom_death_word(w, ret->object - TYPE_DISTANCE, &type) &&
	       fathom_rtti_read(w, type, &ret->type);
}

/* Functions what() that return the text of std::runtime_error or std::logic_error. */
static const char *const texts[] = {
	"_ZNKSt13runtime_error4whatEv",          "_ZNKSt11logic_error4whatEv",
	"_ZNKSt12future_error4whatEv",           "_ZNKSt8ios_base7failure4whatEv",
	"_ZNKSt8ios_base7failureB5cxx114whatEv",
};

/* Returns whether the function at @avma is one of those, and of the C++ library @m. */
static bool is_own_what(const struct fathom_runtime_module *m, uint64_t avma)
{
	struct fathom_symbol_hit hit;

	if (!fathom_symbols_scan(&m->module->symbols, avma - m->bias, NULL, &hit) ||
	    hit.start != avma - m->bias)
		return false;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (hit.name.size == strlen(texts[i]) &&
		    memcmp(hit.name.data, texts[i], hit.name.size) == 0)
			return true;
	return false;
}

/* Finds the text at @at, after its length, capacity and count; returns false if it is none. */
static bool check_text(const struct fathom_death_work *w, uint64_t at, uint64_t *ret_size)
{
	const uint8_t word = w->layout.word;
	uint64_t capacity;
	uint64_t count;
	char end;

	return at % word == 0 && at > 3u * word && fathom_death_word(w, at - 3u * word, ret_size) &&
	       fathom_death_word(w, at - 2u * word, &capacity) &&
	       fathom_reader_uint(&w->view->memory, at - word, 4, w->layout.swap, &count) &&
	       (int32_t)count >= -1 && *ret_size <= capacity && capacity < UINT64_MAX / 4 &&
	       *ret_size < UINT64_MAX - at &&
	       fathom_reader_read(&w->view->memory, at + *ret_size, &end, 1) && !end;
}

/* Sets what() of @e if it is proven. */
static fathom_err set_what(const struct fathom_death_work *w, const struct exception *e,
			   struct fathom_death *d)
{
	const uint8_t word = w->layout.word;
	fathom_err err = FATHOM_OK;
	uint64_t function;
	uint64_t vtable;
	uint64_t size;
	uint64_t text;
	uint64_t off;
	bool is_cut;

	/* The third function, after two destructors. */
	if (!fathom_rtti_find_error(w, &e->type, &off) ||
	    !fathom_death_word(w, e->object + off, &vtable) ||
	    !fathom_death_word(w, vtable + 2u * word, &function) ||
	    !is_own_what(e->library, function) ||
	    !fathom_death_word(w, e->object + off + word, &text) || !check_text(w, text, &size))
		return FATHOM_OK;
	size = size < FATHOM_MAX_DEATH_TEXT ? size + 1 : FATHOM_MAX_DEATH_TEXT;
	d->what = fathom_death_text(w, text, (size_t)size, &is_cut, &err);
	d->what_is_cut = d->what && is_cut;
	return err;
}

/* Returns whether module @i is a C++ library, or a program that was linked statically with one. */
static bool is_library(const struct fathom_runtime *r, uint32_t i)
{
	static const char name[] = "__cxa_get_globals";
	const struct fathom_runtime_module *m = &r->modules[i];
	const bool is_dynamic = m->dynsym->number != FATHOM_NONE;
	struct fathom_symbol symbol;
	uint64_t svma;

	if (is_dynamic &&
	    fathom_dynsym_find(m->dynsym, (struct fathom_str){ name, sizeof name - 1 }, &symbol))
		return true;
	/* Hidden in the program's .symtab. */
	return (!is_dynamic || i == r->main_program || r->main_program == FATHOM_NONE) &&
	       fathom_symbols_find(&m->module->symbols, name, &svma);
}

/* Finds the exception of thread @tid in library @i. FATHOM_E_NOT_FOUND: it has none there. */
static fathom_err find_in(struct fathom_death_work *w, uint32_t i, int32_t tid,
			  struct exception *ret, const char **ret_why)
{
	struct fathom_runtime *r = &w->runtime;
	struct fathom_eh_globals g;
	uint64_t caught;
	uint64_t at;
	fathom_err err;

	if (!fathom_eh_globals_find(r, i, &g)) {
		*ret_why = "where the C++ library has its exceptions is not known";
		return FATHOM_E_NOT_FOUND;
	}
	err = fathom_eh_globals_locate(r, &g, w->view->target->pid, tid, &at);
	if (err == FATHOM_E_MEMORY)
		return err;
	if (!err && !at)
		return FATHOM_E_NOT_FOUND;
	if (err || !fathom_death_word(w, at, &caught)) {
		*ret_why = "the thread's own data is not found in memory";
		return FATHOM_E_NOT_FOUND;
	}
	ret->library = &r->modules[i];
	if (!caught || read_exception(w, caught, ret))
		return caught ? FATHOM_OK : FATHOM_E_NOT_FOUND;
	*ret_why = "it is not of C++, or its memory is not there or damaged";
	return FATHOM_E_NOT_FOUND;
}

/* Returns whether the numbers of threads are those that the program itself knows. */
static bool has_own_numbers(const struct fathom_death_work *w)
{
	const struct fathom_target *t = w->view->target;

	return t->pid && (!t->is_live || (t->ops->main_tid && t->ops->main_tid(t) == t->pid));
}

/* Finds the exception of @t in all C++ libraries. */
static fathom_err find_exception(struct fathom_death_work *w, const struct fathom_thread *t,
				 struct exception *ret, const char **ret_why)
{
	fathom_err result = FATHOM_E_NOT_FOUND;

	if (w->layout.word != 8 || !has_own_numbers(w)) {
		*ret_why = "threads of such a process are not looked into";
		return FATHOM_E_NOT_FOUND;
	}
	FATHOM_TRY(fathom_death_runtime(w));
	for (uint32_t i = 0; i < w->runtime.n_modules; i++) {
		struct exception e;
		fathom_err err;

		if (!is_library(&w->runtime, i))
			continue;
		err = find_in(w, i, t->tid, &e, ret_why);
		if (err == FATHOM_E_MEMORY)
			return err;
		if (!err && !result) {
			*ret_why = "two C++ libraries have exceptions of this thread";
			return FATHOM_E_NOT_FOUND;
		}
		if (!err) {
			*ret = e;
			result = FATHOM_OK;
		}
	}
	return result;
}

fathom_err fathom_death_exception(struct fathom_death_work *w, const struct fathom_thread *t,
				  struct fathom_death *d)
{
	const bool is_uncaught = fathom_frames_is_uncaught(w, t);
	const char *why = NULL;
	struct exception e;
	fathom_err err = find_exception(w, t, &e, &why);

	if (err && err != FATHOM_E_NOT_FOUND)
		return err;
	if (err) {
		d->exception_failed =
			is_uncaught && !why ? "the C++ library has none of this thread" : why;
		return FATHOM_OK;
	}
	d->exception = fathom_rtti_name(w, &e.type, &err);
	if (err)
		return err;
	if (!d->exception) {
		d->exception_failed = "its type has no name";
		return FATHOM_OK;
	}
	d->exception_state = is_uncaught                   ? FATHOM_EXCEPTION_UNCAUGHT
			     : fathom_frames_is_handled(t) ? FATHOM_EXCEPTION_CAUGHT
							   : FATHOM_EXCEPTION_CURRENT;
	return set_what(w, &e, d);
}
