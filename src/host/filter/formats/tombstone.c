/* SPDX-License-Identifier: MIT */
/*
 * Frames of Android's tombstones (system/core/debuggerd, libunwindstack: "relative pc"):
 *
 *	      #01 pc 00000000000512ab  /system/lib64/libc.so (abort+164) (BuildId: 17ed...)
 *	      #02 pc 0000000000012345  /data/app/base.apk!libfoo.so (offset 0x1000) (f+4)
 *
 * The number is the stated address, lowered already but in the first frame, where it is exact. A
 * library inside an APK is called by what is after the exclamation mark.
 */
#include "host/filter/formats.h"

/* Returns the module at @l->at, which ends before " (" or with the line. */
static struct fathom_str module_of(struct fathom_log_line *l)
{
	struct fathom_log_line rest = *l;
	const char *inside;

	if (!fathom_line_find(&rest, " ("))
		rest.at = l->end;
	inside = memrchr(l->at, '!', (size_t)(rest.at - l->at));
	return fathom_log_text(inside ? inside + 1 : l->at, rest.at);
}

bool fathom_log_read_tombstone(struct fathom_log_scan *s, struct fathom_log_line line)
{
	struct fathom_log_number n = { .base = FATHOM_LOG_STATED };
	uint32_t number = 0;
	bool is_frame = false;

	while (!is_frame && fathom_line_find(&line, "#")) {
		line.at++;
		is_frame =
			fathom_line_take_decimal(&line, &number) && fathom_line_take(&line, " pc ");
	}
	n.at = line.at;
	if (!is_frame || !fathom_line_take_hex(&line, &n.value) ||
	    (line.at - n.at != 8 && line.at - n.at != 16))
		return false;
	n.size = (size_t)(line.at - n.at);
	n.frame = number + 1;
	n.kind = number ? FATHOM_LOG_LOWERED : FATHOM_LOG_EXACT;
	if (!fathom_line_take(&line, "  "))
		return false;
	n.module = module_of(&line);
	fathom_log_take_build_id(line, &n);
	if (n.module.size)
		fathom_log_add(s, &n);
	return true;
}
