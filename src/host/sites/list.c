/* SPDX-License-Identifier: MIT */
/* fathom_trace_sites(): the sites of all modules of a target. */
#include <stdlib.h>

#include "fathom/symbolize.h"
#include "host/base/demangle.h"
#include "host/base/option_struct.h"
#include "host/base/progress.h"
#include "host/symbolize/answers.h"
#include "host/module/rule_table.h"
#include "host/space/target.h"
#include "host/sites/list.h"
#include "host/sites/sites.h"

struct fathom_sites {
	FATHOM_ARRAY_OF(struct fathom_site);
	struct {
		FATHOM_ARRAY_OF(struct fathom_site_module);
	} modules;
	struct {
		FATHOM_ARRAY_OF(struct fathom_call_slot);
	} slots;
	struct {
		FATHOM_ARRAY_OF(const struct fathom_unwind_table *);
	} rules;                   /* of each module */
	struct fathom_arena arena; /* bytes, paths and names of slots */
	struct fathom_answers *answers;
};

/* A list being made. */
struct listing {
	struct fathom_sites *to;
	struct fathom_view *view;
	const struct fathom_sites_choice *choice;
	uint32_t flags; /* FATHOM_SITES_ */
	enum fathom_lists_slots slots;
	fathom_err err;
};

static fathom_err read_options(const struct fathom_sites_options *options,
			       struct fathom_sites_options *ret)
{
	const uint32_t known = FATHOM_SITES_NAMES | FATHOM_SITES_NO_DEMANGLE | FATHOM_SITES_CALLS;

	*ret = (struct fathom_sites_options){ .size = sizeof *ret };
	if (options && (!FATHOM_OPTIONS_READ(options, ret, known) || ret->reserved1))
		return FATHOM_E_ARGUMENT;
	return FATHOM_OK;
}

/* Returns whether the process has other bytes at @avma than @bytes. Files cannot differ. */
static bool is_changed(const struct listing *l, uint64_t avma, const uint8_t *bytes, size_t size)
{
	uint8_t now[256];

	for (size_t off = 0; off < size && !l->view->target->stated; off += sizeof now) {
		const size_t n = size - off < sizeof now ? size - off : sizeof now;

		if (fathom_view_read(l->view, avma + off, now, n) != n ||
		    memcmp(now, bytes + off, n) != 0)
			return true;
	}
	return false;
}

/* Copies the @size bytes at @svma of @o; NULL without memory. */
static const uint8_t *copy_bytes(struct listing *l, const struct fathom_object *o, uint64_t svma,
				 uint16_t size)
{
	uint8_t *bytes = fathom_arena_alloc(&l->to->arena, size ? size : 1);

	if (bytes && fathom_object_read(o, svma, bytes, size) < size)
		memset(bytes, 0, size);
	return bytes;
}

/* Adds site @s of module @m, which is module @number. FATHOM_E_MEMORY. */
static fathom_err add_site(struct listing *l, const struct fathom_module_at *m, uint32_t number,
			   const struct fathom_raw_site *s)
{
	const struct fathom_object *o = m->module->main;
	struct fathom_site site = {
		.address = s->svma + m->bias,
		.function = s->function + m->bias,
		.module_address = fathom_object_stated(o, s->svma),
		.bytes = copy_bytes(l, o, s->svma, s->size),
		.prefix = copy_bytes(l, o, s->function - s->prefix, s->prefix),
		.module = number,
		.size = s->size,
		.prefix_size = s->prefix,
		.frame = s->frame,
		.kind = s->kind,
		.place = s->place,
		.content = s->content,
	};

	if (!site.bytes || !site.prefix)
		return FATHOM_E_MEMORY;
	if (s->is_behind)
		site.flags |= FATHOM_SITE_BEHIND_PROLOGUE;
	if (s->is_bare)
		site.flags |= FATHOM_SITE_BARE;
	if (is_changed(l, site.address, site.bytes, site.size) ||
	    is_changed(l, site.function - s->prefix, site.prefix, s->prefix))
		site.flags |= FATHOM_SITE_CHANGED;
	return fathom_array_push(l->to, site) ? FATHOM_OK : FATHOM_E_MEMORY;
}

/* Returns the demangled form of @name, or itself; NULL without memory. */
static const char *demangled(struct listing *l, const char *name)
{
	const struct fathom_str linked = { name, (uint32_t)strlen(name) };
	struct fathom_bytes_array text = { .n = 0 };
	const char *copy = name;

	if ((l->flags & FATHOM_SITES_NAMES) && !(l->flags & FATHOM_SITES_NO_DEMANGLE) &&
	    !fathom_demangle(linked, false, &text))
		copy = fathom_arena_strdup(&l->to->arena,
					   (struct fathom_str){ text.items, (uint32_t)text.n });
	fathom_array_free(&text);
	return copy;
}

/* Adds the slots of @m, which is module @number. FATHOM_E_MEMORY. */
static fathom_err add_slots(struct listing *l, const struct fathom_module_at *m, uint32_t number,
			    const struct fathom_raw_got_slots *slots)
{
	const bool is_file = l->view->target->stated != NULL;

	for (size_t i = 0; i < slots->n; i++) {
		const struct fathom_raw_got_slot *s = &slots->items[i];
		struct fathom_call_slot slot = {
			.address = s->svma + m->bias,
			.module_address = fathom_object_stated(m->module->main, s->svma),
			.relocation = s->relocation + m->bias,
			.operand = s->operand ? s->operand + m->bias : 0,
			.module = number,
			.flags = s->flags,
			.refusal = s->refusal,
		};

		if (!is_file && !fathom_view_holds(l->view, m->module, m->bias, slot.address))
			continue;
		slot.linkage_name = fathom_arena_strdup(
			&l->to->arena, (struct fathom_str){ s->name, (uint32_t)strlen(s->name) });
		slot.symbol = slot.linkage_name ? demangled(l, slot.linkage_name) : NULL;
		if (!slot.symbol || !fathom_array_push(&l->to->slots, slot))
			return FATHOM_E_MEMORY;
	}
	return FATHOM_OK;
}

/* Adds the sites that are loaded at @m's bias: of some modules only some pages are. */
static fathom_err add_sites(struct listing *l, const struct fathom_module_at *m,
			    const struct fathom_module_sites *sites)
{
	const bool is_file = l->view->target->stated != NULL;
	struct fathom_site_module module = {
		.bias = m->bias,
		.first = l->to->n,
		.machine = m->module->main->image.machine,
		.n_functions = sites->n_functions,
	};

	memcpy(module.n_refused, sites->n_refused, sizeof module.n_refused);
	module.path = fathom_arena_strdup(
		&l->to->arena, (struct fathom_str){ m->name, (uint32_t)strlen(m->name) });
	if (!module.path)
		return FATHOM_E_MEMORY;
	for (size_t i = 0; i < sites->n; i++) {
		const struct fathom_raw_site *s = &sites->items[i];

		if (!is_file && !fathom_view_holds(l->view, m->module, m->bias, s->svma + m->bias))
			continue;
		FATHOM_TRY(add_site(l, m, (uint32_t)l->to->modules.n, s));
		module.n_kind[s->kind]++;
	}
	module.count = l->to->n - module.first;
	module.first_slot = l->to->slots.n;
	if (l->slots == FATHOM_LISTS_SLOTS)
		FATHOM_TRY(add_slots(l, m, (uint32_t)l->to->modules.n, &sites->slots));
	module.slots = l->to->slots.n - module.first_slot;
	return fathom_array_push(&l->to->rules, sites->rules) &&
			       fathom_array_push(&l->to->modules, module)
		       ? FATHOM_OK
		       : FATHOM_E_MEMORY;
}

static bool is_same_file(const struct fathom_file_id *a, const struct fathom_file_id *b)
{
	return a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

void fathom_sites_memo_deinit(struct fathom_sites_memo *memo)
{
	for (size_t i = 0; i < memo->n; i++)
		fathom_module_sites_deinit(&memo->items[i].sites);
	fathom_array_free(memo);
}

/* Returns the sites of @file in the memo; NULL: it has none. */
static struct fathom_module_sites *recall(struct fathom_sites_memo *memo,
					  const struct fathom_file_id *file)
{
	for (size_t i = 0; memo && file->inode && i < memo->n; i++)
		if (is_same_file(&memo->items[i].file, file))
			return &memo->items[i].sites;
	return NULL;
}

/* Finds the slots of @m, whose sites are known, where they are wanted. */
static fathom_err find_slots(struct listing *l, struct fathom_module *m,
			     struct fathom_module_sites *sites)
{
	if (l->slots == FATHOM_LISTS_SLOTS_WITHOUT_SITES)
		l->slots = sites->n ? FATHOM_LISTS_NO_SLOTS : FATHOM_LISTS_SLOTS;
	if (l->slots != FATHOM_LISTS_SLOTS || sites->has_slots)
		return FATHOM_OK;
	FATHOM_TRY(fathom_raw_got_slots_find(m, &sites->slots));
	sites->has_slots = true;
	return FATHOM_OK;
}

/* Makes the unwind rules of @m; without them it is a little less that is known. */
static void find_rules(struct fathom_module *m, struct fathom_module_sites *sites)
{
	if (!sites->rules && fathom_rule_table_make(m, &sites->rules))
		sites->rules = NULL;
}

static fathom_err add_new(struct listing *l, const struct fathom_module_at *m)
{
	struct fathom_sites_memo *memo = l->choice->memo;
	struct fathom_sites_of_file fresh = { .file = m->module->main->file->id };
	struct fathom_module_sites *known = recall(memo, &fresh.file);
	const bool is_kept = memo && fresh.file.inode && fathom_array_room(memo, 1);
	fathom_err err;

	if (known) {
		FATHOM_TRY(find_slots(l, m->module, known));
		return add_sites(l, m, known);
	}
	FATHOM_TRY(fathom_module_sites_find(m->module, &fresh.sites));
	err = find_slots(l, m->module, &fresh.sites);
	if (!err && l->choice->with_rules && fresh.sites.n && is_kept)
		find_rules(m->module, &fresh.sites);
	if (!err)
		err = add_sites(l, m, &fresh.sites);
	if (!err && is_kept)
		(void)fathom_array_push(memo, fresh);
	else
		fathom_module_sites_deinit(&fresh.sites);
	return err;
}

static bool add_module(const struct fathom_module_at *m, void *data)
{
	struct listing *l = data;

	if (!l->choice->wants || l->choice->wants(l->choice->data, m))
		l->err = add_new(l, m);
	return !l->err;
}

/* Names the functions of all sites as one batch. */
static fathom_err name_sites(struct listing *l, struct fathom_errinfo *reterr)
{
	struct fathom_sites *to = l->to;
	struct fathom_batch_options o = { .flags = l->choice->with_lines ? 0 : FATHOM_NAMES_ONLY };
	uint64_t *addresses = malloc((to->n + 1) * sizeof *addresses);
	fathom_err err;

	if (!addresses)
		return fathom_fail_memory(reterr);
	if (l->flags & FATHOM_SITES_NO_DEMANGLE)
		o.flags |= FATHOM_NO_DEMANGLE;
	for (size_t i = 0; i < to->n; i++)
		addresses[i] = to->items[i].function;
	err = fathom_view_answer(l->view, &o, addresses, to->n, &to->answers, reterr);
	free(addresses);
	for (size_t i = 0; !err && i < to->n; i++)
		to->items[i].answer = fathom_answers_get(to->answers, i);
	return err;
}

static fathom_err list(struct listing *l, struct fathom_errinfo *reterr)
{
	const fathom_err err = fathom_view_modules(l->view, add_module, l);

	if (l->err == FATHOM_E_LIMIT)
		return fathom_fail(reterr, l->err, "", 0,
				   "a module has more sites, or longer names, than any real one");
	if (l->err)
		return fathom_fail(reterr, l->err, "", 0, fathom_err_name(l->err));
	if (err)
		return fathom_view_fail(l->view, err, reterr);
	return l->flags & FATHOM_SITES_NAMES ? name_sites(l, reterr) : FATHOM_OK;
}

static fathom_err run(struct fathom_target *target, struct listing *l,
		      struct fathom_errinfo *reterr)
{
	struct fathom_call call;
	fathom_err err;

	fathom_call_begin(&call, target->session);
	err = fathom_view_begin(target, FATHOM_VIEW_PLACES, &l->view, reterr);
	if (!err)
		err = list(l, reterr);
	fathom_view_end(l->view);
	return fathom_call_end(&call, fathom_target_end_call(target, err, reterr), reterr);
}

fathom_err fathom_sites_list(struct fathom_target *target,
			     const struct fathom_sites_options *options,
			     const struct fathom_sites_choice *choice,
			     struct fathom_sites **ret_sites, struct fathom_errinfo *reterr)
{
	struct listing l = { .choice = choice, .slots = choice->slots };
	struct fathom_sites_options o;
	fathom_err err;

	if (read_options(options, &o))
		return fathom_fail_options(reterr);
	l.to = calloc(1, sizeof *l.to);
	if (!l.to || !fathom_array_room(l.to, 1)) {
		fathom_sites_free(l.to);
		return fathom_fail_memory(reterr);
	}
	l.flags = o.flags;
	if (o.flags & FATHOM_SITES_CALLS)
		l.slots = FATHOM_LISTS_SLOTS;
	err = run(target, &l, reterr);
	if (err)
		fathom_sites_free(l.to);
	else
		*ret_sites = l.to;
	return err;
}

fathom_err fathom_trace_sites(struct fathom_target *target,
			      const struct fathom_sites_options *options,
			      struct fathom_sites **ret_sites, struct fathom_errinfo *reterr)
{
	const struct fathom_sites_choice all = { .wants = NULL };

	if (target->ops->names) {
		(void)fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
				  "only the kernel may use the sites of the running kernel");
		fathom_errinfo_set_file(reterr, "kernel");
		return FATHOM_E_UNSUPPORTED;
	}
	return fathom_sites_list(target, options, &all, ret_sites, reterr);
}

void fathom_sites_free(struct fathom_sites *sites)
{
	if (!sites)
		return;
	fathom_array_free(sites);
	fathom_array_free(&sites->modules);
	fathom_array_free(&sites->slots);
	fathom_array_free(&sites->rules);
	fathom_arena_deinit(&sites->arena);
	fathom_answers_free(sites->answers);
	free(sites);
}

size_t fathom_sites_count(const struct fathom_sites *sites)
{
	return sites->n;
}

const struct fathom_site *fathom_sites_get(const struct fathom_sites *sites, size_t i)
{
	return &sites->items[i];
}

size_t fathom_sites_module_count(const struct fathom_sites *sites)
{
	return sites->modules.n;
}

const struct fathom_site_module *fathom_sites_module_get(const struct fathom_sites *sites, size_t i)
{
	return &sites->modules.items[i];
}

const struct fathom_unwind_table *fathom_sites_rules(const struct fathom_sites *sites, size_t i)
{
	return sites->rules.items[i];
}

size_t fathom_sites_slot_count(const struct fathom_sites *sites)
{
	return sites->slots.n;
}

const struct fathom_call_slot *fathom_sites_slot_get(const struct fathom_sites *sites, size_t i)
{
	return &sites->slots.items[i];
}

/* Returns word @i of @n. */
static const char *word_of(const char *const *words, size_t n, unsigned i)
{
	return i < n ? words[i] : "";
}

const char *fathom_site_kind_name(enum fathom_site_kind kind)
{
	static const char *const words[] = { "",           "patchable",  "mcount-loc", "return-loc",
					     "xray",       "fentry",     "mcount",     "nop",
					     "mcount-nop", "cyg-profile" };

	return word_of(words, sizeof words / sizeof *words, kind);
}

const char *fathom_site_place_name(enum fathom_site_place place)
{
	static const char *const words[] = { "entry", "return", "tail-call" };

	return word_of(words, sizeof words / sizeof *words, place);
}

const char *fathom_site_refusal_name(enum fathom_site_refusal refusal)
{
	static const char *const words[] = { "",        "not-code", "other-code", "no-function",
					     "no-slot", "overlap",  "ambiguous",  "no-decoder" };

	return word_of(words, sizeof words / sizeof *words, refusal);
}

const char *fathom_slot_refusal_name(enum fathom_slot_refusal refusal)
{
	static const char *const words[] = { "", "pointer", "weak", "not-called" };

	return word_of(words, sizeof words / sizeof *words, refusal);
}

const char *fathom_trace_type_name(enum fathom_trace_type type)
{
	static const char *const words[] = { "",       "call",    "return",       "signal",
					     "start",  "exit",    "lost",         "note",
					     "caller", "syscall", "syscall-entry" };

	return word_of(words, sizeof words / sizeof *words, type);
}

const char *fathom_syscall_method_name(enum fathom_syscall_method method)
{
	static const char *const words[] = { "", "ptrace", "rewrite", "dispatch" };

	return word_of(words, sizeof words / sizeof *words, method);
}
