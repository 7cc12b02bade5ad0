/* SPDX-License-Identifier: MIT */
/* Why a thread died, as text and as JSON. */
#include <string.h>

#include "cli/json.h"
#include "cli/stack.h"

static void print_foreign(struct out *o, const char *text)
{
	out_text(o, text, strlen(text));
}

static void print_abort(struct out *o, const struct fathom_death *d)
{
	if (!d->abort_message && !d->abort_failed)
		return;
	out_str(o, "    abort message: ");
	if (d->abort_message) {
		print_foreign(o, d->abort_message);
		out_str(o, d->abort_is_cut ? "..." : "");
	} else {
		out_char(o, '(');
		out_str(o, d->abort_failed);
		out_char(o, ')');
	}
	out_char(o, '\n');
}

static void print_exception(struct out *o, const struct fathom_death *d)
{
	if (d->exception_state == FATHOM_EXCEPTION_NONE)
		return;
	out_str(o, d->exception_state == FATHOM_EXCEPTION_UNCAUGHT ? "    uncaught C++ exception: "
		   : d->exception_state == FATHOM_EXCEPTION_CAUGHT
			   ? "    C++ exception being handled: "
			   : "    C++ exception: ");
	print_foreign(o, d->exception);
	if (d->what) {
		out_str(o, ": \"");
		print_foreign(o, d->what);
		out_str(o, d->what_is_cut ? "\"..." : "\"");
	}
	out_char(o, '\n');
}

static const char *access_words(uint8_t access)
{
	switch (access) {
	case FATHOM_ACCESS_READ:
		return "read of ";
	case FATHOM_ACCESS_WRITE:
		return "write to ";
	case FATHOM_ACCESS_EXECUTE:
		return "jump to ";
	default:
		return "access to ";
	}
}

/* Prints what lies at the address, within parentheses. */
static void print_place(struct out *o, const struct fathom_death *d)
{
	switch (d->fault_place) {
	case FATHOM_FAULT_NULL:
		out_str(o, "null");
		if (d->fault_address) {
			out_str(o, " + ");
			out_hex(o, d->fault_address);
		}
		break;
	case FATHOM_FAULT_UNMAPPED:
		out_str(o, "not mapped");
		break;
	case FATHOM_FAULT_STACK_OVERFLOW:
		out_str(o, "stack overflow of thread ");
		out_dec(o, (uint64_t)d->stack_tid);
		break;
	case FATHOM_FAULT_STACK_GUARD:
		out_str(o, "below the stack of thread ");
		out_dec(o, (uint64_t)d->stack_tid);
		break;
	case FATHOM_FAULT_NO_ACCESS:
		out_str(o, "no access permitted");
		break;
	case FATHOM_FAULT_NOT_WRITABLE:
		out_str(o, "no write permission");
		break;
	case FATHOM_FAULT_NOT_EXECUTABLE:
		out_str(o, "no execute permission");
		break;
	case FATHOM_FAULT_NOT_CANONICAL:
		out_str(o, "not canonical");
		break;
	case FATHOM_FAULT_PAST_END:
		out_str(o, "no data there: the file was cut, or could not be read");
		break;
	}
	if (!d->file)
		return;
	out_str(o, ": ");
	print_foreign(o, d->file);
	out_str(o, " + ");
	out_hex(o, d->file_offset);
}

static void print_fault(struct out *o, const struct fathom_death *d)
{
	if (d->fault_place == FATHOM_FAULT_NONE)
		return;
	out_str(o, "    fault: ");
	if (d->fault_place == FATHOM_FAULT_NO_ADDRESS) {
		out_str(o, "general protection: the kernel states no address; mostly one that is "
			   "not canonical\n");
		return;
	}
	out_str(o, access_words(d->fault_access));
	out_hex(o, d->fault_address);
	out_str(o, " (");
	print_place(o, d);
	out_str(o, ")\n");
}

void stack_print_death(struct out *o, const struct fathom_death *d)
{
	print_abort(o, d);
	print_exception(o, d);
	print_fault(o, d);
}

static void json_flag(struct out *o, const char *key, bool value)
{
	json_key(o, key);
	out_str(o, value ? "true" : "false");
}

static void json_exception(struct out *o, const struct fathom_death *d)
{
	json_key(o, "exception");
	if (d->exception_state == FATHOM_EXCEPTION_NONE) {
		out_str(o, "null,");
	} else {
		out_char(o, '{');
		json_string(o, "type", d->exception);
		out_char(o, ',');
		json_string(o, "what", d->what);
		out_char(o, ',');
		json_flag(o, "what_cut", d->what_is_cut);
		out_char(o, ',');
		if (d->exception_state == FATHOM_EXCEPTION_CURRENT)
			out_str(o, "\"uncaught\":null");
		else
			json_flag(o, "uncaught", d->exception_state == FATHOM_EXCEPTION_UNCAUGHT);
		out_str(o, "},");
	}
	json_string(o, "exception_why", d->exception_failed);
}

static void json_fault(struct out *o, const struct fathom_death *d)
{
	json_key(o, "fault");
	if (d->fault_place == FATHOM_FAULT_NONE && d->fault_address == FATHOM_NO_ADDRESS) {
		out_str(o, "null");
		return;
	}
	out_char(o, '{');
	json_address_or_null(o, "address", d->fault_address != FATHOM_NO_ADDRESS, d->fault_address);
	out_char(o, ',');
	json_string(o, "access", fathom_access_name((enum fathom_access)d->fault_access));
	out_char(o, ',');
	json_string(o, "place", fathom_fault_place_name((enum fathom_fault_place)d->fault_place));
	out_char(o, ',');
	json_count(o, "stack_tid", (uint64_t)d->stack_tid);
	out_char(o, ',');
	json_string(o, "file", d->file);
	out_char(o, ',');
	json_address_or_null(o, "file_offset", d->file != NULL, d->file_offset);
	out_char(o, '}');
}

void stack_json_death(struct out *o, const struct fathom_death *d)
{
	json_key(o, "died");
	if (!d) {
		out_str(o, "null");
		return;
	}
	out_char(o, '{');
	json_string(o, "abort_message", d->abort_message);
	out_char(o, ',');
	json_flag(o, "abort_message_cut", d->abort_is_cut);
	out_char(o, ',');
	json_string(o, "abort_message_why", d->abort_failed);
	out_char(o, ',');
	json_exception(o, d);
	out_char(o, ',');
	json_fault(o, d);
	out_char(o, '}');
}
