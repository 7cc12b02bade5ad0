/* SPDX-License-Identifier: MIT */
#include "cli/trace_print.h"

#include <elf.h>
#include <string.h>

#include "cli/common.h"
#include "cli/json.h"

static const char *content_name(const struct fathom_site *s)
{
	static const char *const names[] = { "nops", "call", "sled" };

	return s->content < sizeof names / sizeof *names ? names[s->content] : "";
}

/* Returns the compiler's flag for sites on @machine; NULL: there are none. */
static const char *flag_for(uint32_t machine)
{
	switch (machine) {
	case EM_X86_64:
		return "-fpatchable-function-entry=18,16";
	case EM_AARCH64:
		return "-fpatchable-function-entry=7,6";
	default:
		return NULL;
	}
}

static void print_text(struct out *o, const char *s)
{
	out_text(o, s, strlen(s));
}

/* Prints the name of module @i after what is of it, if there are several. */
static void print_module(struct out *o, const struct fathom_sites *sites, uint32_t i)
{
	if (fathom_sites_module_count(sites) > 1) {
		out_str(o, " (");
		print_text(o, last_part(fathom_sites_module_get(sites, i)->path));
		out_char(o, ')');
	}
	out_char(o, '\n');
}

void trace_print_text(struct out *o, const struct fathom_sites *sites, const struct fathom_site *s)
{
	out_hex(o, s->address);
	out_char(o, ' ');
	print_text(o, s->answer->symbol ? s->answer->symbol : "??");
	out_char(o, ' ');
	out_str(o, fathom_site_kind_name((enum fathom_site_kind)s->kind));
	out_char(o, ' ');
	out_dec(o, s->size);
	if (s->prefix_size) {
		out_str(o, " prefix ");
		out_dec(o, s->prefix_size);
	}
	if (s->place != FATHOM_SITE_ENTRY) {
		out_char(o, ' ');
		out_str(o, fathom_site_place_name((enum fathom_site_place)s->place));
	}
	if (s->flags & FATHOM_SITE_BEHIND_PROLOGUE)
		out_str(o, " behind-prologue");
	if (s->flags & FATHOM_SITE_CHANGED)
		out_str(o, " changed");
	print_module(o, sites, s->module);
}

static void json_bool(struct out *o, const char *key, bool value)
{
	json_key(o, key);
	out_str(o, value ? "true" : "false");
}

static void json_number(struct out *o, const char *key, uint64_t value)
{
	json_key(o, key);
	out_dec(o, value);
}

static void json_bytes(struct out *o, const char *key, const uint8_t *bytes, size_t n)
{
	json_key(o, key);
	out_char(o, '"');
	out_hex_bytes(o, bytes, n, "");
	out_char(o, '"');
}

/* Prints where the site is. */
static void json_place(struct out *o, const struct fathom_sites *sites, const struct fathom_site *s)
{
	json_address(o, "address", s->address);
	out_char(o, ',');
	json_string(o, "module", fathom_sites_module_get(sites, s->module)->path);
	out_char(o, ',');
	json_address(o, "module_address", s->module_address);
	out_char(o, ',');
	json_text(o, "function", s->answer->symbol, s->answer->symbol_size);
	out_char(o, ',');
	json_text(o, "linkage_name", s->answer->linkage_name, s->answer->linkage_size);
	out_char(o, ',');
	json_address(o, "function_address", s->function);
	out_char(o, ',');
}

void trace_print_json(struct out *o, const char *query, const struct fathom_sites *sites,
		      const struct fathom_site *s)
{
	out_str(o, "{\"type\":\"site\",");
	json_string(o, "query", query);
	out_char(o, ',');
	json_place(o, sites, s);
	json_string(o, "kind", fathom_site_kind_name((enum fathom_site_kind)s->kind));
	out_char(o, ',');
	json_string(o, "place", fathom_site_place_name((enum fathom_site_place)s->place));
	out_char(o, ',');
	json_string(o, "content", content_name(s));
	out_char(o, ',');
	json_number(o, "size", s->size);
	out_char(o, ',');
	json_number(o, "prefix_size", s->prefix_size);
	out_char(o, ',');
	json_bytes(o, "bytes", s->bytes, s->size);
	out_char(o, ',');
	json_bytes(o, "prefix", s->prefix, s->prefix_size);
	out_char(o, ',');
	json_bool(o, "behind_prologue", s->flags & FATHOM_SITE_BEHIND_PROLOGUE);
	out_char(o, ',');
	json_bool(o, "changed", s->flags & FATHOM_SITE_CHANGED);
	out_str(o, ",\"reason\":null}\n");
}

void trace_print_slot(struct out *o, const struct fathom_sites *sites,
		      const struct fathom_call_slot *s)
{
	out_hex(o, s->address);
	out_char(o, ' ');
	print_text(o, s->symbol);
	out_str(o, s->flags & FATHOM_SLOT_DIRECT ? " slot direct" : " slot");
	if (s->refusal) {
		out_str(o, " left out: ");
		out_str(o, fathom_slot_refusal_name((enum fathom_slot_refusal)s->refusal));
	}
	print_module(o, sites, s->module);
}

void trace_print_slot_json(struct out *o, const struct fathom_sites *sites,
			   const struct fathom_call_slot *s)
{
	out_str(o, "{\"type\":\"slot\",");
	json_address(o, "address", s->address);
	out_char(o, ',');
	json_string(o, "module", fathom_sites_module_get(sites, s->module)->path);
	out_char(o, ',');
	json_address(o, "module_address", s->module_address);
	out_char(o, ',');
	json_string(o, "function", s->symbol);
	out_char(o, ',');
	json_string(o, "linkage_name", s->linkage_name);
	out_char(o, ',');
	json_bool(o, "direct", s->flags & FATHOM_SLOT_DIRECT);
	out_char(o, ',');
	json_string(o, "reason",
		    s->refusal ? fathom_slot_refusal_name((enum fathom_slot_refusal)s->refusal)
			       : NULL);
	out_str(o, "}\n");
}

void trace_print_missing(struct out *o, const char *query, const char *reason)
{
	out_str(o, "?? ");
	print_text(o, query);
	out_str(o, " (");
	out_str(o, reason);
	out_str(o, ")\n");
}

void trace_print_missing_json(struct out *o, const char *query, const char *reason)
{
	static const char *const unknown[] = {
		"address",          "module", "module_address", "function",        "linkage_name",
		"function_address", "kind",   "place",          "content",         "size",
		"prefix_size",      "bytes",  "prefix",         "behind_prologue", "changed",
	};

	out_str(o, "{\"type\":\"site\",");
	json_string(o, "query", query);
	out_char(o, ',');
	for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
		json_string(o, unknown[i], NULL);
		out_char(o, ',');
	}
	json_string(o, "reason", reason);
	out_str(o, "}\n");
}

/* Prints the counts of each word, after @before. */
static void print_counts(struct out *o, const char *before, const size_t *counts, unsigned n,
			 const char *(*word)(unsigned i))
{
	for (unsigned i = 0; i < n; i++) {
		if (!counts[i])
			continue;
		out_str(o, before);
		out_dec(o, counts[i]);
		out_char(o, ' ');
		out_str(o, word(i));
		before = ", ";
	}
}

static const char *kind_word(unsigned i)
{
	return fathom_site_kind_name((enum fathom_site_kind)i);
}

static const char *slot_word(unsigned i)
{
	return fathom_slot_refusal_name((enum fathom_slot_refusal)i);
}

/* Prints how many slots of calls there are, and why some are left out. */
static void print_slots(struct out *o, const struct fathom_sites *sites)
{
	size_t refused[8] = { 0 };
	const size_t n = fathom_sites_slot_count(sites);

	for (size_t i = 0; i < n; i++)
		refused[fathom_sites_slot_get(sites, i)->refusal & 7]++;
	refused[0] = 0;
	out_dec(o, n);
	out_str(o, n == 1 ? " slot of calls" : " slots of calls");
	print_counts(o, "; left out: ", refused, sizeof refused / sizeof *refused, slot_word);
	out_char(o, '\n');
}

static const char *refusal_word(unsigned i)
{
	return fathom_site_refusal_name((enum fathom_site_refusal)i);
}

/* Prints the modules for @machine that have no sites, and the flag that makes them. */
static void print_lacking(struct out *o, const struct fathom_sites *sites, uint32_t machine)
{
	const char *before = "no sites in ";

	for (size_t i = 0; i < fathom_sites_module_count(sites); i++) {
		const struct fathom_site_module *m = fathom_sites_module_get(sites, i);

		if (m->count || m->machine != machine)
			continue;
		out_str(o, before);
		print_text(o, m->path);
		before = ", ";
	}
	if (*before != ',') {
		return;
	}
	out_str(o, ": build with ");
	out_str(o, flag_for(machine));
	out_char(o, '\n');
}

void trace_print_summary(struct out *o, const struct fathom_sites *sites,
			 const struct trace_summary *summary)
{
	size_t refused[FATHOM_SITE_REFUSALS] = { 0 };

	for (size_t i = 0; i < fathom_sites_module_count(sites); i++)
		for (unsigned k = 0; k < FATHOM_SITE_REFUSALS; k++)
			refused[k] += fathom_sites_module_get(sites, i)->n_refused[k];
	print_lacking(o, sites, EM_X86_64);
	print_lacking(o, sites, EM_AARCH64);
	out_dec(o, summary->count);
	out_str(o, summary->count == 1 ? " site" : " sites");
	print_counts(o, ": ", summary->n_kind, FATHOM_SITE_KINDS, kind_word);
	print_counts(o, "; records not believed: ", refused, FATHOM_SITE_REFUSALS, refusal_word);
	out_char(o, '\n');
	if (summary->has_slots)
		print_slots(o, sites);
}

/* Prints an object with the counts that are not 0. */
static void json_counts(struct out *o, const char *key, const uint32_t *counts, unsigned n,
			const char *(*word)(unsigned i))
{
	const char *before = "{";

	json_key(o, key);
	for (unsigned i = 0; i < n; i++) {
		if (!counts[i])
			continue;
		out_str(o, before);
		json_number(o, word(i), counts[i]);
		before = ",";
	}
	out_str(o, *before == '{' ? "{}" : "}");
}

void trace_print_modules_json(struct out *o, const struct fathom_sites *sites)
{
	for (size_t i = 0; i < fathom_sites_module_count(sites); i++) {
		const struct fathom_site_module *m = fathom_sites_module_get(sites, i);

		out_str(o, "{\"type\":\"module\",");
		json_string(o, "module", m->path);
		out_char(o, ',');
		json_address(o, "bias", m->bias);
		out_char(o, ',');
		json_number(o, "sites", m->count);
		out_char(o, ',');
		json_number(o, "functions", m->n_functions);
		out_char(o, ',');
		json_counts(o, "kinds", m->n_kind, FATHOM_SITE_KINDS, kind_word);
		out_char(o, ',');
		json_counts(o, "refused", m->n_refused, FATHOM_SITE_REFUSALS, refusal_word);
		out_char(o, ',');
		json_string(o, "flag", m->count ? NULL : flag_for(m->machine));
		out_str(o, "}\n");
	}
}
