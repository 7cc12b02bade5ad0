/* SPDX-License-Identifier: MIT */
#include "safe/base/proc_stat.h"

#include <string.h>

/* Moves *@at to the word after the next blank; returns false if there is none. */
static bool next_word(const char **at, const char *end)
{
	while (*at < end && **at != ' ')
		++*at;
	if (end - *at < 2)
		return false;
	++*at;
	return true;
}

/* Returns the decimal number at @at; a negative one in two's complement. */
static uint64_t number_at(const char *at, const char *end)
{
	const bool is_negative = at < end && *at == '-';
	uint64_t number = 0;

	for (at += is_negative; at < end && *at >= '0' && *at <= '9'; at++)
		number = number * 10 + (uint64_t)(*at - '0');
	return is_negative ? 0 - number : number;
}

static void take_field(int field, uint64_t number, struct fathom_proc_stat *ret)
{
	switch (field) {
	case 4:
		ret->parent = (int32_t)number;
		break;
	case 9:
		ret->flags = (uint32_t)number;
		break;
	case 20:
		ret->n_threads = (uint32_t)number;
		break;
	case 22:
		ret->start_ticks = number;
		break;
	case 28:
		ret->first_stack = number;
		break;
	case 38:
		ret->exit_signal = (int32_t)number;
		break;
	case 52:
		ret->wait_status = (int32_t)number;
		break;
	default:
		break;
	}
}

/* "PID (NAME) STATE ...", where NAME may hold anything, but no other field a parenthesis. */
bool fathom_proc_stat_parse(const char *text, size_t size, struct fathom_proc_stat *ret)
{
	const char *end = text + size;
	const char *name = text;
	const char *at = end;
	size_t n;

	while (name < end && *name++ != '(')
		;
	while (at > name && *(at - 1) != ')')
		at--;
	if (at <= name || end - at < 2 || *at != ' ')
		return false;
	*ret = (struct fathom_proc_stat){ .pid = (int32_t)number_at(text, end), .state = at[1] };
	n = (size_t)(at - 1 - name);
	if (n > sizeof ret->name - 1)
		n = sizeof ret->name - 1;
	memcpy(ret->name, name, n);
	for (int field = 3; next_word(&at, end); field++)
		take_field(field, number_at(at, end), ret);
	return true;
}
