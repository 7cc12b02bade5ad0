/* SPDX-License-Identifier: MIT */
/*
 * The exception of a thread: the first of the list caughtExceptions of its struct __cxa_eh_globals,
 * which is what std::current_exception() returns. An exception that no handler takes is in it,
 * too, when std::terminate() runs: the C++ libraries call __cxa_begin_catch() before.
 *
 * Not handled: programs of 32 bits; exceptions of other languages, which C++ only passes on.
 */
#include "host/death/eh_globals.h"
#include "host/base/demangle.h"
#include "host/death/library_frames.h"
#include "host/module/module.h"
#include "host/symbol/dynsym.h"
#include "safe/base/limits.h"
#include "safe/cxx/thrown.h"

/* An exception that was found. */
struct exception {
	struct fathom_thrown thrown;
	const struct fathom_runtime_module *library;
};

/* The data of memory: the process, and its C++ library. */
struct place {
	const struct fathom_death_work *w;
	const struct fathom_runtime_module *library;
};

/* Finds a kind of types by the symbol of its vtable. */
static bool find_kind(const struct fathom_cxx_memory *m, uint64_t avma, uint8_t *ret)
{
	const struct fathom_death_work *w = ((const struct place *)m->data)->w;
	struct fathom_symbol_hit hit;
	struct fathom_place place;

	return !fathom_view_locate(w->view, avma, &place) && place.holder && place.holder->module &&
	       fathom_symbols_scan(&place.holder->module->symbols, avma - place.bias, NULL, &hit) &&
	       hit.start == avma - place.bias && fathom_rtti_find_kind(hit.name, ret);
}

/* Returns whether the function at @avma is a what() of the C++ library itself. */
static bool is_own_what(const struct fathom_cxx_memory *m, uint64_t avma)
{
	const struct fathom_runtime_module *library = ((const struct place *)m->data)->library;
	struct fathom_symbol_hit hit;

	if (!fathom_symbols_scan(&library->module->symbols, avma - library->bias, NULL, &hit) ||
	    hit.start != avma - library->bias)
		return false;
	for (size_t i = 0; i < FATHOM_THROWN_WHATS; i++)
		if (str_is(hit.name, fathom_thrown_whats[i]))
			return true;
	return false;
}

static struct fathom_cxx_memory memory_of(const struct place *p)
{
	return (struct fathom_cxx_memory){ .reader = &p->w->view->memory,
					   .word = p->w->layout.word,
					   .swap = p->w->layout.swap,
					   .find_kind = find_kind,
					   .is_what = is_own_what,
					   .data = p };
}

static bool is_mangled_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       c == '_' || c == '.' || c == '$' || (unsigned char)c >= 0x80;
}

/* Reads the mangled name of @type; returns NULL if it is none. */
static char *read_mangled(const struct fathom_death_work *w, const struct fathom_rtti *type,
			  fathom_err *ret_err)
{
	bool is_cut;
	char *name = fathom_death_text(w, type->name, FATHOM_MAX_MANGLED, &is_cut, ret_err);

	/* libstdc++: names with a star are compared by their addresses. */
	if (name && name[0] == '*')
		name++;
	if (!name || is_cut || !name[0])
		return NULL;
	for (const char *c = name; *c; c++)
		if (!is_mangled_char(*c))
			return NULL;
	return name;
}

/* Demangles "_ZTI" and @name, which means "typeinfo for ..."; returns NULL if it cannot be. */
static char *demangle(const struct fathom_death_work *w, const char *name, fathom_err *ret_err)
{
	static const char prefix[] = "typeinfo for ";
	struct fathom_bytes_array mangled = { 0 };
	struct fathom_bytes_array text = { 0 };
	const size_t n = strlen(name);
	const size_t skipped = sizeof prefix - 1;
	fathom_err err = FATHOM_E_MEMORY;
	char *copy = NULL;

	if (fathom_array_room(&mangled, n + 4)) {
		memcpy(mangled.items, "_ZTI", 4);
		memcpy(mangled.items + 4, name, n);
		err = fathom_demangle((struct fathom_str){ mangled.items, (uint32_t)n + 4 }, false,
				      &text);
	}
	if (!err && text.n > skipped && memcmp(text.items, prefix, skipped) == 0) {
		copy = fathom_arena_strdup(
			w->arena,
			(struct fathom_str){ text.items + skipped, (uint32_t)(text.n - skipped) });
		err = copy ? FATHOM_OK : FATHOM_E_MEMORY;
	}
	*ret_err = err == FATHOM_E_MEMORY ? err : FATHOM_OK;
	fathom_array_free(&mangled);
	fathom_array_free(&text);
	return copy;
}

/*
 * Reads the name of @type, demangled unless @w says otherwise, into the arena. Returns NULL if it
 * is no name; *@ret_err is set without memory.
 */
static const char *type_name(const struct fathom_death_work *w, const struct fathom_rtti *type,
			     fathom_err *ret_err)
{
	char *mangled = read_mangled(w, type, ret_err);
	char *name = mangled && !w->no_demangle ? demangle(w, mangled, ret_err) : NULL;

	return name ? name : mangled;
}

/* Sets what() of @e if it is proven. */
static fathom_err set_what(const struct fathom_death_work *w, const struct exception *e,
			   struct fathom_death *d)
{
	const struct place place = { w, e->library };
	const struct fathom_cxx_memory m = memory_of(&place);
	fathom_err err = FATHOM_OK;
	uint64_t size;
	uint64_t text;
	bool is_cut;

	if (!fathom_thrown_text(&m, &e->thrown, &text, &size))
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
	const struct place place = { w, &r->modules[i] };
	const struct fathom_cxx_memory m = memory_of(&place);
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
	if (!caught || fathom_thrown_read(&m, caught, &ret->thrown))
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
	d->exception = type_name(w, &e.thrown.type, &err);
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
