/* SPDX-License-Identifier: MIT */
#include "host/trace/syscall_set.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "host/file/file.h"

/* Names of classes, which stand after a %; is_old: also without it, as no call has the name. */
static const struct {
	const char *name;
	uint32_t class;
	bool is_old;
} classes[] = {
	{ "file", FATHOM_SYSCALL_FILE, true },
	{ "desc", FATHOM_SYSCALL_DESC, true },
	{ "memory", FATHOM_SYSCALL_MEMORY, true },
	{ "network", FATHOM_SYSCALL_NETWORK, true },
	{ "net", FATHOM_SYSCALL_NETWORK, false },
	{ "process", FATHOM_SYSCALL_PROCESS, true },
	{ "signal", FATHOM_SYSCALL_SIGNAL, false },
	{ "ipc", FATHOM_SYSCALL_IPC, true },
	{ "creds", FATHOM_SYSCALL_CREDS, false },
	{ "clock", FATHOM_SYSCALL_CLOCK, false },
	{ "pure", FATHOM_SYSCALL_PURE, false },
	{ "stat", FATHOM_SYSCALL_STAT, false },
	{ "lstat", FATHOM_SYSCALL_LSTAT, false },
	{ "fstat", FATHOM_SYSCALL_FSTAT, false },
	{ "%stat", FATHOM_SYSCALL_STAT_LIKE, false },
	{ "statfs", FATHOM_SYSCALL_STATFS, false },
	{ "fstatfs", FATHOM_SYSCALL_FSTATFS, false },
	{ "%statfs", FATHOM_SYSCALL_STATFS_LIKE, false },
};

void fathom_syscall_set_fill(struct fathom_syscall_set *ret)
{
	memset(ret->bits, 0xff, sizeof ret->bits);
	ret->has_unknown = true;
}

/* Adds the calls that @wants takes; returns whether there are some. */
static bool add_those(struct fathom_syscall_set *s,
		      bool (*wants)(const void *data, const struct fathom_syscall *call),
		      const void *data)
{
	bool is_some = false;

	for (size_t i = 0; i < FATHOM_SYSCALL_TABLES; i++) {
		const struct fathom_syscall_table *t = &fathom_syscall_tables[i];

		for (uint32_t k = 0; k < t->n && k < FATHOM_SYSCALL_SET_NUMBERS; k++) {
			const struct fathom_syscall *call = fathom_syscall_find(t->machine, k);

			if (!call || !wants(data, call))
				continue;
			s->bits[i][k / 64] |= UINT64_C(1) << k % 64;
			is_some = true;
		}
	}
	return is_some;
}

static bool has_name(const void *data, const struct fathom_syscall *call)
{
	return !strcmp(fathom_syscall_names + call->name, data);
}

static bool has_class(const void *data, const struct fathom_syscall *call)
{
	return call->classes & *(const uint32_t *)data;
}

static bool is_matched(const void *data, const struct fathom_syscall *call)
{
	return !regexec(data, fathom_syscall_names + call->name, 0, NULL, 0);
}

/* Adds class @word; false if there is none of that name. */
static bool add_class(struct fathom_syscall_set *s, const char *word, bool is_old)
{
	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
		if (!strcmp(word, classes[i].name) && (!is_old || classes[i].is_old))
			return add_those(s, has_class, &classes[i].class);
	return false;
}

static bool add_matching(struct fathom_syscall_set *s, const char *expression)
{
	regex_t regex;
	bool is_some;

	if (regcomp(&regex, expression, REG_EXTENDED | REG_NOSUB))
		return false;
	is_some = add_those(s, is_matched, &regex);
	regfree(&regex);
	return is_some;
}

/* Adds what @word is for; false if there is none. */
static bool add_word(struct fathom_syscall_set *s, const char *word)
{
	if (!strcmp(word, "none"))
		return true;
	if (!strcmp(word, "all")) {
		fathom_syscall_set_fill(s);
		return true;
	}
	if (word[0] == '/')
		return add_matching(s, word + 1);
	if (word[0] == '%')
		return add_class(s, word + 1, false);
	return add_class(s, word, true) || add_those(s, has_name, word);
}

static void invert(struct fathom_syscall_set *s)
{
	for (size_t i = 0; i < FATHOM_SYSCALL_TABLES; i++)
		for (size_t k = 0; k < FATHOM_SYSCALL_SET_NUMBERS / 64; k++)
			s->bits[i][k] = ~s->bits[i][k];
	s->has_unknown = !s->has_unknown;
}

fathom_err fathom_syscall_set_read(const char *text, struct fathom_syscall_set *ret,
				   struct fathom_errinfo *reterr)
{
	const bool is_inverted = *text == '!';
	char *copy = strdup(text + is_inverted);
	char *rest = copy;
	const char *word;

	*ret = (struct fathom_syscall_set){ .has_unknown = false };
	if (!copy)
		return fathom_fail_memory(reterr);
	while ((word = strsep(&rest, ","))) {
		if (add_word(ret, word))
			continue;
		(void)fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				  "there is no such system call, class or expression");
		fathom_errinfo_set_file(reterr, word);
		free(copy);
		return FATHOM_E_ARGUMENT;
	}
	free(copy);
	if (is_inverted)
		invert(ret);
	return FATHOM_OK;
}

bool fathom_syscall_set_has(const struct fathom_syscall_set *set, uint32_t machine, uint64_t number)
{
	number &= ~(uint64_t)FATHOM_SYSCALL_X32;
	for (size_t i = 0; i < FATHOM_SYSCALL_TABLES; i++)
		if (fathom_syscall_tables[i].machine == machine)
			return number < FATHOM_SYSCALL_SET_NUMBERS
				       ? set->bits[i][number / 64] >> number % 64 & 1
				       : set->has_unknown;
	return set->has_unknown;
}

void fathom_syscall_set_add(struct fathom_syscall_set *set, uint32_t machine, const char *name)
{
	const int32_t number = fathom_syscall_by_name(machine, name);

	for (size_t i = 0; number >= 0 && i < FATHOM_SYSCALL_TABLES; i++)
		if (fathom_syscall_tables[i].machine == machine)
			set->bits[i][number / 64] |= UINT64_C(1) << number % 64;
}

void fathom_syscall_set_join(struct fathom_syscall_set *set, const struct fathom_syscall_set *more)
{
	for (size_t i = 0; i < FATHOM_SYSCALL_TABLES; i++)
		for (size_t k = 0; k < FATHOM_SYSCALL_SET_NUMBERS / 64; k++)
			set->bits[i][k] |= more->bits[i][k];
	set->has_unknown |= more->has_unknown;
}
