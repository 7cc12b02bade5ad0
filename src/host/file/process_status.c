/* SPDX-License-Identifier: MIT */
#include "host/file/process_status.h"

#include <limits.h>
#include <stdio.h>
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

int fathom_status_filters(int tid)
{
	char path[64];
	const char *mode;
	const char *line;
	char *text;
	int n = INT_MAX;

	(void)snprintf(path, sizeof path, "/proc/%d/status", tid);
	text = fathom_status_read(path);
	mode = text ? fathom_status_line(text, "\nSeccomp:") : NULL;
	line = text ? fathom_status_line(text, "\nSeccomp_filters:") : NULL;
	if (mode && strtol(mode, NULL, 10) == 0)
		n = 0;
	else if (mode && strtol(mode, NULL, 10) == 2)
		/* Linux before 5.9 does not count them. */
		n = line ? (int)strtol(line, NULL, 10) : 1;
	free(text);
	return n;
}
