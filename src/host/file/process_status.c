/* SPDX-License-Identifier: MIT */
#include "host/file/process_status.h"

#include <stdlib.h>
#include <string.h>

#include "host/file/kernel_text.h"
#include "safe/base/limits.h"

char *fathom_status_read(const char *path)
{
	char *text;
	size_t size;

	if (fathom_text_read(path, FATHOM_MAX_TASK_STATUS, NULL, NULL, &text, &size, NULL))
		return NULL;
	return text;
}

const char *fathom_status_line(const char *text, const char *label)
{
	const char *at = strstr(text, label);

	return at ? at + strlen(label) : NULL;
}

void fathom_status_pids(const char *text, struct fathom_pids *ret)
{
	const char *line = text ? fathom_status_line(text, "\nNSpid:") : NULL;
	char *end;

	ret->n = 0;
	/* strtoull() would go on in the next line. */
	for (; line && (*line == '\t' || *line == ' ') && ret->n < FATHOM_MAX_PIDS; line = end) {
		const uint64_t number = strtoull(line, &end, 10);

		if (end == line)
			break;
		ret->at[ret->n++] = number;
	}
}
