/* SPDX-License-Identifier: MIT */
#include "safe/base/error.h"

#include "safe/base/text.h"

const char *fathom_err_name(fathom_err err)
{
	switch (err) {
	case FATHOM_OK:
		return "success";
	case FATHOM_E_ARGUMENT:
		return "invalid argument";
	case FATHOM_E_MEMORY:
		return "out of memory";
	case FATHOM_E_OS:
		return "system error";
	case FATHOM_E_FORMAT:
		return "not a file that fathom reads";
	case FATHOM_E_CORRUPT:
		return "corrupt data";
	case FATHOM_E_LIMIT:
		return "limit reached";
	case FATHOM_E_UNSUPPORTED:
		return "unsupported";
	case FATHOM_E_MISMATCH:
		return "belongs to another file";
	case FATHOM_E_NOT_FOUND:
		return "not found";
	case FATHOM_E_TIMEOUT:
		return "timed out";
	case FATHOM_E_CANCELLED:
		return "cancelled";
	case FATHOM_E_CHANGED:
		return "changed while it was being read";
	default:
		return "unknown error";
	}
}

fathom_err fathom_fail(struct fathom_errinfo *info, fathom_err err, const char *section,
		       uint64_t offset, const char *what)
{
	if (info) {
		info->err = err;
		info->os_errno = 0;
		info->offset = offset;
		info->what = what;
		fathom_copy_cstr(info->section, sizeof info->section, section);
		info->file[0] = '\0';
		info->cause = FATHOM_CAUSE_NONE;
		info->part = 0;
	}
	return err;
}

fathom_err fathom_fail_by(struct fathom_errinfo *info, fathom_err err, enum fathom_cause cause,
			  const char *what)
{
	(void)fathom_fail(info, err, "", 0, what);
	if (info)
		info->cause = cause;
	return err;
}

/* Appends the part of a change that is wrong. Returns false if the cause is another. */
static bool add_change(struct fathom_text *t, const struct fathom_errinfo *info)
{
	static const char *const parts[] = { NULL, ", event ", ", line ", ", inline " };
	const char *part;

	if (info->cause < FATHOM_CAUSE_CHANGE || info->cause > FATHOM_CAUSE_INLINE)
		return false;
	part = parts[info->cause - FATHOM_CAUSE_CHANGE];
	fathom_text_cstr(t, "change ");
	fathom_text_dec(t, info->offset);
	if (part) {
		fathom_text_cstr(t, part);
		fathom_text_dec(t, info->part);
	}
	fathom_text_cstr(t, ": ");
	return true;
}

/* Returns whether the offset of @info, which names no section, is an offset in the file. */
static bool has_file_offset(const struct fathom_errinfo *info)
{
	return info->offset && (info->err == FATHOM_E_CORRUPT ||
				info->err == FATHOM_E_UNSUPPORTED || info->err == FATHOM_E_LIMIT);
}

size_t fathom_errinfo_format(const struct fathom_errinfo *info, char *buf, size_t cap)
{
	struct fathom_text t = text_init(buf, cap);

	if (info->file[0]) {
		fathom_text_cstr(&t, info->file);
		fathom_text_cstr(&t, ": ");
	}
	if (info->section[0]) {
		fathom_text_cstr(&t, info->section);
		fathom_text_char(&t, '+');
		fathom_text_hex(&t, info->offset);
		fathom_text_cstr(&t, ": ");
	} else if (info->cause == FATHOM_CAUSE_TEXT_LINE) {
		fathom_text_cstr(&t, "line ");
		fathom_text_dec(&t, info->offset);
		fathom_text_cstr(&t, ": ");
	} else if (!add_change(&t, info) && has_file_offset(info)) {
		fathom_text_cstr(&t, "at ");
		fathom_text_hex(&t, info->offset);
		fathom_text_cstr(&t, ": ");
	}
	fathom_text_cstr(&t, info->what ? info->what : fathom_err_name(info->err));
	fathom_text_end(&t);
	return t.len;
}

fathom_err fathom_fail_memory(struct fathom_errinfo *info)
{
	return fathom_fail(info, FATHOM_E_MEMORY, "", 0, "out of memory");
}

fathom_err fathom_fail_options(struct fathom_errinfo *info)
{
	return fathom_fail(info, FATHOM_E_ARGUMENT, "", 0,
			   "options that this version does not know");
}
