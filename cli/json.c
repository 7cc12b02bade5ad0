/* SPDX-License-Identifier: MIT */
#include "cli/json.h"

void json_address(struct out *o, const char *key, uint64_t address)
{
	json_key(o, key);
	out_char(o, '"');
	out_hex(o, address);
	out_char(o, '"');
}

void json_address_or_null(struct out *o, const char *key, bool is_known, uint64_t address)
{
	if (is_known) {
		json_address(o, key, address);
	} else {
		json_key(o, key);
		out_str(o, "null");
	}
}

void json_count(struct out *o, const char *key, uint64_t value)
{
	json_key(o, key);
	if (value)
		out_dec(o, value);
	else
		out_str(o, "null");
}

void json_member_number(struct out *o, const char *key, uint64_t value)
{
	out_char(o, ',');
	json_key(o, key);
	out_dec(o, value);
}

void json_member_count(struct out *o, const char *key, uint64_t value)
{
	out_char(o, ',');
	json_count(o, key, value);
}

void json_member_truth(struct out *o, const char *key, bool is_true)
{
	out_char(o, ',');
	json_key(o, key);
	out_str(o, is_true ? "true" : "false");
}
